"""The answer in one sentence, and what limits it."""

import re
from dataclasses import replace
from statistics import mean

import numpy as np
import pytest

from reports.page.material import Material
from reports.page.sections.answer import headline, limits, verdicts_of
from reports.tables.result_table import table_of
from results.records.experiment_summary import StoppedMethod
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import A, B, C, material, said, values
from tests.support.published_world import MLRC
from tests.support.sample_page import measured, runs_of

NOISY = [0.58, 0.63, 0.60, 0.59]


def test_the_quickstarts_answer_is_one_sentence_and_its_limits_another():
    experiment = measured()
    known = Material("quickstart", experiment)
    best = max(experiment.summary.methods, key=lambda method: mean(runs_of(experiment, method)))
    assert re.fullmatch(rf"{experiment.summary.methods[best]} (and|leads|,).*\.", headline(known))
    said = limits(known)
    assert said.startswith("What limits this answer: 6 of 50 trials; 3 of 10 reproductions; one search per method; ")
    assert re.search(r"differences below about \d+\.\d points can stay unseen", said)


def test_a_part_of_a_dataset_limits_the_answer():
    experiment = MeasuredExperiment.kept("cub200_small_subset")
    assert limits(Material("cub200_small", experiment)).startswith(
        "What limits this answer: a part of the dataset, 100 classes of cub200; 6 of 50 trials; "
    )
    assert "a part of" not in limits(Material("quickstart", measured()))
    note = "Only a part of the dataset was used: 100 classes of cub200. Scores on the whole of it differ."
    assert note in table_of(experiment).notes


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ({"a": A, "b": B}, "A leads. It is better than every other method."),
        ({"a": A, "b": B, "c": NOISY}, "A and C lead; 4 runs cannot separate them."),
        ({"a": A, "b": B, "c": C}, "A and C lead; they are equal within 0.5 points."),
        ({"a": A, "b": NOISY}, "Nothing can be told apart: 4 runs cannot separate the 2 methods."),
        ({"a": A}, "Only A has runs. There is nothing to compare it with."),
        (
            {"a": A[:1], "b": B[:1]},
            "Nothing can be told apart: there are too few runs for a test. A has the highest mean.",
        ),
        ({}, "Nothing was run yet."),
    ],
)
def test_the_headline_claims_no_more_than_the_comparison(runs, sentence):
    assert headline(material(values(**runs), titles={"a": "A", "b": "B", "c": "C"})) == sentence


def test_equal_methods_are_called_equal():
    steps = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 4e-4
    equal = {"a": 0.5 + steps, "b": 0.5 + steps[::-1]}
    assert headline(material(values(**equal))) == "All 2 methods are equal within 0.5 points."
    below = values(**equal, c=0.3 + steps)
    assert headline(material(below)) == "A and B lead; they are equal within 0.5 points."


def test_a_lead_below_the_margin_is_called_so():
    steps = np.array([-1, 0, 1, 0, 1, -1, 0, 1, -1, 0]) * 4e-4
    runs = values(a=0.5 + steps, b=0.498 + steps[::-1], c=0.3 + steps)
    beginning = "A leads. It is better than every other method"
    assert headline(material(runs)) == f"{beginning}, though its lead over B is below 0.5 points."
    reversed_order = dict(reversed(runs.items()))
    assert headline(material(reversed_order)) == f"{beginning}, though its lead over B is below 0.5 points."
    assert headline(material(values(a=0.5 + steps, b=0.46 + steps[::-1], c=0.3 + steps))) == f"{beginning}."


def test_titles_with_commas_are_kept_apart():
    titles = {"a": "A, cosine", "b": "B", "c": "C"}
    said = headline(material(values(a=A, b=B, c=NOISY), titles=titles))
    assert said == "A, cosine; and C lead; 4 runs cannot separate them."


def test_many_leading_methods_are_counted():
    world = material(values(a=A, b=B, **{name: [x - 0.0004 * n for x in A] for n, name in enumerate("cdef")}))
    assert headline(world).startswith("A, C and 3 more lead; ")


def test_an_experiment_without_runs_has_no_limits():
    assert limits(material({"a": []})) == ""


def with_stopped(world, *methods):
    stops = [StoppedMethod(method=key, runs=3, leader="a", difference=0.1, p=1e-4, level=1e-3) for key in methods]
    summary = world.measured.summary.model_copy(update={"stopped": tuple(stops)})
    return replace(world, measured=replace(world.measured, summary=summary))


def test_methods_that_were_stopped_early_are_behind_and_not_absent():
    world = material(values(a=A, b=B, c=C))
    assert headline(with_stopped(world, "b", "c")) == "A leads. 2 methods were stopped early, clearly behind."
    best = said(verdicts_of(with_stopped(world, "b", "c")), "best")[0]
    assert "the primary score: A has" in best
    assert "No other method is in the final comparison." in best
    assert headline(with_stopped(world, "b")).endswith(" 1 method was stopped early, clearly behind.")
    assert "other conditions" not in headline(with_stopped(world, "b"))


def test_a_single_row_under_the_common_conditions_is_named_as_such():
    settings = {**MLRC, "dataset": {"name": "glyphs"}, "methods": ["a", "b"], "with": {"b": {"embedding_size": 64}}}
    assert headline(material(values(a=A, b=B), settings=settings)) == (
        "A is the only method under the common conditions. There is nothing to compare it with. "
        "1 row is under other conditions and not compared."
    )
