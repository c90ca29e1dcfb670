"""Tables of one experiment beside its results: differences, peeking, hyperparameters, costs."""

import io

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.tables.costs import costs
from reports.tables.csv_and_json import to_csv
from reports.tables.differences import differences
from reports.tables.formats import WRITERS
from reports.tables.hyperparameters import hyperparameters
from reports.tables.markdown import to_markdown
from reports.tables.peeking import peeking_table
from results import records
from results.experiment_results import MeasuredExperiment
from results.records import Scores
from tests.support.sample_records import some_result, some_run, some_spec
from tests.support.sound_latex import check_latex

TITLES = {"contrastive": "Contrastive | A_B", "triplet": "Triplet", "cosface": "CosFace", "absent": "Absent"}
VALUES = {"contrastive": (0.60, 0.62, 0.65), "triplet": (0.59, 0.625, 0.64), "cosface": (0.40, 0.42, 0.46)}


def measured(**changes):
    runs = [
        some_run(method, run, value, **{"dataset": "cub200", **changes})
        for method, values in VALUES.items()
        for run, value in enumerate(values)
    ]
    return MeasuredExperiment({"title": "A test", "methods": TITLES}, tuple(runs))


def with_trainings():
    """Every training of every run is kept, with a test curve whose best point is 0.05 above the chosen one."""
    world, trainings, curves = measured(hyperparameters={"loss.neg_margin": 0.5, "loss_optimizer.lr": 0.01}), {}, {}
    for record in world.records:
        for fold, name in enumerate(record.fold_fingerprints):
            result = some_result(some_spec(), map_at_r=record.separated.map_at_r + 0.01 * fold)
            trainings[name] = (some_spec(), result.model_copy(update={"fingerprint": name}))
            values = ((100, 0.05), (200, 0.0), (300, -0.05))
            points = [
                records.TestPoint(
                    iteration=iteration,
                    scores=Scores(precision_at_1=0.5, r_precision=0.3, map_at_r=record.separated.map_at_r + more),
                )
                for iteration, more in values
            ]
            curves[name] = records.TestCurve(fingerprint=name, points=tuple(points))
    return MeasuredExperiment(world.summary, world.records, trainings, curves)


def read(table):
    return pd.read_csv(io.StringIO(to_csv(table)))


ALL = {
    "differences": differences(measured()),
    "peeking": peeking_table(with_trainings()),
    "hyperparameters": hyperparameters(with_trainings()),
    "costs": costs(measured(steps=400)),
    "no peeking": peeking_table(measured()),
    "no differences": differences(MeasuredExperiment({"title": "None", "methods": TITLES}, ())),
}


@pytest.mark.parametrize("table", ALL.values(), ids=ALL)
def test_every_table_is_written_in_every_format(table):
    texts = {form: write(table) for form, write in WRITERS.items()}
    check_latex(texts["latex"])
    for form in ("markdown", "html", "latex"):
        for row in table.rows:
            assert row.head.split()[0].rstrip(":") in texts[form]
    assert len(read(table)) == len(table.rows)


def test_differences_are_those_of_scipy_with_holms_correction():
    frame = read(differences(measured(), metric="precision_at_1", kind="separated"))
    pairs = [("contrastive", "triplet"), ("contrastive", "cosface"), ("triplet", "cosface")]
    assert list(zip(frame["a"], frame["b"], strict=True)) == pairs
    tests = [stats.ttest_rel(VALUES[a], VALUES[b]) for a, b in pairs]
    assert list(frame["p"]) == pytest.approx([test.pvalue for test in tests])
    order, floor, adjusted = np.argsort([test.pvalue for test in tests]), 0.0, [0.0] * 3
    for rank, place in enumerate(order):
        floor = max(floor, min(1.0, (3 - rank) * tests[place].pvalue))
        adjusted[place] = floor
    assert list(frame["p_holm"]) == pytest.approx(adjusted)
    for place, test in enumerate(tests):
        interval = test.confidence_interval(0.95)
        assert (frame["low"][place], frame["high"][place]) == (
            pytest.approx(interval.low),
            pytest.approx(interval.high),
        )
    assert list(frame["real"]) == ["not shown", "yes", "yes"]
    assert "paired t" in set(frame["test"])


def test_differences_are_shown_in_percentage_points_and_too_few_runs_are_said():
    text = to_markdown(differences(measured(), metric="precision_at_1", kind="separated"))
    assert "| Triplet − CosFace | +19.17 ± " in text
    assert "of separated P@1 in percentage points" in text
    single = MeasuredExperiment(measured().summary, (some_run("contrastive", 0, 0.5), some_run("triplet", 0, 0.4)))
    (row,) = [line for line in to_markdown(differences(single)).splitlines() if line.startswith("| Contrastive")]
    assert row.endswith("| +2.50 |  |  | 1 | none | too few runs |")


def test_peeking_is_the_best_of_the_curve_less_the_chosen_point():
    frame = read(peeking_table(with_trainings())).set_index("method")
    assert list(frame.index) == list(VALUES)
    assert frame["gain"].to_list() == pytest.approx([0.05] * 3)
    assert frame.loc["triplet", "honest"] == pytest.approx(np.mean(VALUES["triplet"]) / 4)
    assert frame["n"].to_list() == [3, 3, 3]
    assert peeking_table(with_trainings()).notes == ("No test curves: Absent.",)
    assert peeking_table(measured()).rows == ()


def test_hyperparameters_stand_beside_mlrcs_with_validation_scores():
    names = {"cosface": {"loss_optimizer.lr": "weights lr"}}
    table = hyperparameters(with_trainings(), names)
    frame = read(table).set_index(["method", "parameter"])
    ours = frame.loc[("contrastive", "loss.neg_margin")]
    assert (ours["ours"], ours["mlrc"]) == (0.5, 0.3841191369511769)
    assert ours["mlrc_validation_map_at_r"] == pytest.approx(0.436833)
    assert frame.loc[("cosface", "loss_optimizer.lr"), "mlrc_printed"] == pytest.approx(2.53e-3)
    assert pd.isna(frame.loc[("contrastive", "loss_optimizer.lr"), "mlrc"]), "MLRC has no such parameter"
    # Mean over folds of MAP@R + 0.00, 0.01, 0.02, 0.03; over runs.
    expected = [value / 4 + 0.015 for value in VALUES["contrastive"]]
    assert ours["validation_map_at_r"] == pytest.approx(np.mean(expected))
    half = stats.t.ppf(0.975, 2) * stats.sem(expected)
    assert (ours["validation_half_width"], ours["n"]) == (pytest.approx(half), 3)
    assert "| Contrastive \\| A_B: loss.neg_margin | 0.5 | 0.3841 | 17.08 ± " in to_markdown(table)


def test_validation_scores_need_all_trainings_of_a_run():
    whole = with_trainings()
    known = {name: kept for name, kept in whole.trainings.items() if name != "contrastive-1-2"}
    frame = read(hyperparameters(MeasuredExperiment(whole.summary, whole.records, known))).set_index("method")
    assert set(frame.loc["contrastive", "n"]) == {2}
    assert set(frame.loc["triplet", "n"]) == {3}
    assert read(hyperparameters(measured()))["validation_map_at_r"].isna().all()


def test_hyperparameters_on_other_datasets_have_nothing_beside_them():
    runs = [some_run("contrastive", run, 0.5, hyperparameters={"loss.neg_margin": 0.5}) for run in range(2)]
    frame = read(hyperparameters(MeasuredExperiment(measured().summary, tuple(runs))))
    assert frame["mlrc"].isna().all()
    assert len(frame) == 1


def test_costs_are_steps_of_one_model_and_seconds_of_a_run():
    frame = read(costs(measured(steps=400))).set_index("method")
    assert list(frame.index) == list(VALUES)
    assert set(frame["steps"]) == {100.0}
    assert set(frame["models"]) == {4}
    assert set(frame["seconds"]) == {12.0}
    assert set(frame["seconds_in_all"]) == {36.0}
    without = costs(measured())
    assert read(without)["steps"].isna().all()
    assert without.notes[0].startswith("Steps were not recorded: Contrastive")
