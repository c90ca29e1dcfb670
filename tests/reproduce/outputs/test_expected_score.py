"""What is said of an exported model's score: that of the table, and a warning where no training is better."""

import re

import pytest

from reproduce.outputs.export_models import expected_score
from reproduce.outputs.find_runs import find_runs
from results.answer.answer_question import answer_on
from results.answer.over_classes import class_half_widths
from results.findings.experiment import answer_of
from results.records.records import ClassScores, Scores
from results.spec.method import Method
from results.spec.range import Range
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from tests.support.page_material import searched
from tests.support.sample_records import changed_spec, put_experiment

HIGH, LOW = (30.0, 30.6, 30.3), (27.9, 28.4, 28.6)


def store_with(folder, *, trained=("mine",), classes=None, low_end=None, **means):
    """A store with three searches of each method; those that are not trained have no loss.

    All searches of `mine` end at `low_end`, if there is one.
    """
    measured = searched(titles={key: key.capitalize() for key in means}, **means).measured
    plan = measured.plan
    if low_end is not None:
        mine = plan.rows["mine"].model_copy(update={"ranges": {"loss.margin": low_end}})
        plan = plan.model_copy(update={"rows": {**plan.rows, "mine": mine}})
    records = []
    for run in measured.records:
        method = run.specs[0].method
        loss = method.loss if run.method in trained else None
        specs = tuple(
            changed_spec(spec, method=Method(name=run.method, loss=loss), seed=run.search) for spec in run.specs
        )
        records.append(run.model_copy(update={"specs": specs, "class_scores": classes}))
    store = Store(folder / "store.sqlite", folder)
    put_experiment(store, "e" * 32, "some", plan, records)
    return store, answer_of(MeasuredExperiment(plan, tuple(records)))


def said_of(store, kind="separated", method="mine"):
    return expected_score(store, find_runs(store, "some", method)[0], kind)


@pytest.mark.parametrize("kind", ["separated", "concatenated"])
def test_the_scores_are_those_of_the_table(tmp_path, kind):
    store, found = store_with(tmp_path, mine=HIGH, untrained=LOW)
    said = said_of(store, kind)
    for metric, title in (("map_at_r", "MAP@R"), ("precision_at_1", "P@1")):
        interval = answer_on(found, metric, kind).intervals["mine"]
        assert f"{title} {100 * interval.mean:.1f} % (± {100 * interval.half_width:.1f} over 3 searches)" in said
    models = {"separated": "single models", "concatenated": "joined models"}[kind]
    assert f"That is the mean of 3 searches of this method, {models} trained on a part of the classes" in said
    assert "Warning" not in said


def test_the_interval_over_the_test_classes_comes_first(tmp_path):
    """A model's score on new classes varies with the classes far more than with the search."""
    one = Scores(precision_at_1=1, r_precision=0.2, map_at_r=0.2)
    classes = [one, one, one.model_copy(update={"map_at_r": 0.4})]
    scores = ClassScores(queries=(10, 10, 20), separated=tuple(classes), concatenated=tuple(classes))
    store, _ = store_with(tmp_path, mine=HIGH, classes=scores)
    half = 100 * class_half_widths([10, 10, 20], [[0.2], [0.2], [0.4]])[0]
    assert re.search(rf"MAP@R [\d.]+ % \(± {half:.1f} over 3 test classes, ± 0.8 over 3 searches\)", said_of(store))
    assert said_of(store).endswith("add `untrained` to see whether training helps at all.")


def test_a_method_that_is_worse_than_no_training_is_warned_of(tmp_path):
    store, _ = store_with(tmp_path, mine=LOW, untrained=HIGH, lda=(33.0, 33.1, 33.2))
    said = said_of(store)
    assert "Warning: Untrained, which trains nothing, is better by 2.0 ± " in said
    assert "Warning: Lda, which trains nothing, is better by 4.8 ± " in said
    assert said.count("(separated MAP@R).") == 2
    assert said_of(store, method="lda").count("Warning") == 0


def test_no_training_that_is_ahead_of_a_method_that_was_held_up_is_warned_of(tmp_path):
    low_end = Range(scale="log", low=0.1, high=10.0, least=0.0)
    store, found = store_with(tmp_path, mine=LOW, untrained=HIGH, low_end=low_end)
    (pair,) = found.pairs
    assert (pair.better, pair.ahead) == (None, "untrained")
    said = said_of(store)
    assert re.search(
        r"Warning: Untrained, which trains nothing, is 2\.0 ± .* above it within the searched ranges\.$", said
    )


def test_a_better_trained_method_is_no_warning(tmp_path):
    store, _ = store_with(tmp_path, trained=("mine", "other"), mine=LOW, other=HIGH)
    assert "Warning" not in said_of(store)


def test_a_method_that_cannot_be_told_from_no_training_is_warned_of(tmp_path):
    store, found = store_with(tmp_path, mine=HIGH, untrained=(30.1, 30.5, 30.2))
    (pair,) = found.pairs
    assert pair.better is None
    assert "Warning: it is not shown to be better than Untrained, which trains nothing (+0.0 ± " in said_of(store)
