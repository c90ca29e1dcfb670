"""The tables of hyperparameters beside published ones, of costs, and of what peeking gains."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.tables.formats import to_markdown
from reports.tables.method_tables import costs, hyperparameters, peeking_table
from results.findings.experiment import answer_of
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import VALUES, measured, read, specs_of, with_trainings
from tests.support.sample_records import some_run


def test_hyperparameters_stand_beside_published_ones_with_validation_scores():
    table = hyperparameters(answer_of(with_trainings()), {"contrastive": {"loss.neg_margin": 0.3841191369511769}})
    frame = read(table).set_index(["Method", "hyperparameter"])
    ours = frame.loc["Contrastive | A_B", "loss.neg_margin"]
    assert (ours["ours"], ours["published"]) == (0.5, pytest.approx(0.3841191369511769))
    assert pd.isna(frame.loc[("Contrastive | A_B", "loss_optimizer.lr"), "published"])
    # Mean over folds of MAP@R + 0.00, 0.01, 0.02, 0.03; over runs.
    expected = [value / 4 + 0.015 for value in VALUES["contrastive"]]
    assert ours["validation MAP@R"] == pytest.approx(100 * np.mean(expected))
    half = stats.t.ppf(0.975, 2) * stats.sem(expected)
    assert (ours["validation MAP@R ±"], ours["n"]) == (pytest.approx(100 * half), 3)
    text = to_markdown(table)
    assert "| Contrastive \\| A_B |  |  | 17.08 ± " in text
    assert "| loss.neg_margin | 0.5 | 0.3841 |  |  |" in text


def test_validation_scores_need_all_trainings_of_a_run():
    whole = with_trainings()
    missing = specs_of(whole, "contrastive", 1)[2].fingerprint
    known = {name: kept for name, kept in whole.trainings.items() if name != missing}
    frame = read(hyperparameters(answer_of(MeasuredExperiment(whole.plan, whole.records, known)))).set_index(
        ["Method", "hyperparameter"]
    )
    assert frame.loc[("Contrastive | A_B", "loss.neg_margin"), "n"] == 2
    assert frame.loc[("Triplet", "loss.neg_margin"), "n"] == 3
    runs = [some_run("contrastive", run, 0.5, hyperparameters={"loss.neg_margin": 0.5}) for run in range(2)]
    elsewhere = read(hyperparameters(answer_of(MeasuredExperiment(measured().plan, tuple(runs)))))
    assert elsewhere[["validation MAP@R", "published"]].isna().all().all()


def test_costs_are_steps_of_one_model_and_seconds_of_a_run():
    frame = read(costs(answer_of(measured(steps=400))))
    assert len(frame) == len(VALUES)
    known = {"steps a model": 100.0, "models": 4, "seconds a run": 12.0}
    assert {name: frame[name].unique().tolist() for name in known} == {name: [value] for name, value in known.items()}
    without = costs(answer_of(measured()))
    assert read(without)["steps a model"].isna().all()
    assert without.notes[0].startswith("Steps were not recorded: Contrastive")


def test_no_cost_is_below_zero_and_a_column_without_a_value_is_not_shown():
    steady, other = (
        [some_run(key, run, 0.5, wall_time=seconds) for run, seconds in enumerate(times)]
        for key, times in (("contrastive", (10.0, 10.5, 11.0)), ("triplet", (1.0, 1.0, 30.0)))
    )
    drawn = costs(answer_of(MeasuredExperiment(measured().plan, (*steady, *other))))
    first, second = (cell for cell in drawn.column("seconds a run"))
    assert (first.half_width is None, second.half_width) == (False, None)
    assert second.value == pytest.approx(32 / 3)
    assert "without ± where that reaches below zero" in drawn.caption
    assert [column.name for column in drawn.columns] == ["n", "models", "seconds a run", "device"]
    assert "ms a step" not in drawn.caption


def test_the_cost_of_a_step_is_that_of_the_trainings_with_their_validations():
    world = with_trainings()
    frame = read(costs(answer_of(world))).set_index("Method")
    for key, title in world.plan.titles.items():
        if key not in world.runs:
            continue
        of_runs = [[world.trainings[name] for name in run.fold_fingerprints] for run in world.runs[key]]
        expected = [
            1000 * np.sum([one.wall_time for one in own]) / np.sum([one.iterations for one in own]) for own in of_runs
        ]
        assert frame.loc[title, "ms a step"] == pytest.approx(np.mean(expected))
    assert read(costs(answer_of(measured(steps=400))))["ms a step"].isna().all(), "without trainings it is not known"


def test_peeking_is_the_best_of_the_curve_less_the_chosen_point():
    frame = read(peeking_table(answer_of(with_trainings()))).set_index("Method")
    assert frame["gain"].to_list() == pytest.approx([5] * 3)
    assert frame.loc["Triplet", "honest"] == pytest.approx(100 * np.mean(VALUES["triplet"]) / 4)
    assert frame["n"].to_list() == [3, 3, 3]
    assert peeking_table(answer_of(with_trainings())).notes == (
        "No test curves (`test_curves: true` records them): Absent.",
    )
    assert peeking_table(answer_of(measured())).rows == ()


def test_a_gain_that_is_zero_by_construction_is_not_shown():
    world = with_trainings()
    last = {
        name: curve.model_copy(update={"points": tuple(point for point in curve.points if point.iteration == 200)})
        if world.trainings[name].spec.method.name == "triplet"
        else curve
        for name, curve in world.test_curves.items()
    }
    table = peeking_table(answer_of(replace(world, test_curves=last)))
    assert [row.key for row in table.rows] == ["contrastive", "cosface"]
    assert table.notes[0].startswith("Not shown: Triplet. All trainings were cut off")
