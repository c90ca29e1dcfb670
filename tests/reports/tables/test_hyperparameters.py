"""The table of hyperparameters beside MLRC's."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.tables.formats import to_markdown
from reports.tables.hyperparameters import hyperparameters
from results.spec.search_settings import SearchedRange
from results.store.experiment_results import MeasuredExperiment
from tests.support.measured_experiment import VALUES, measured, read, specs_of, with_trainings
from tests.support.sample_records import some_run


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
    missing = specs_of(whole, "contrastive", 1)[2].fingerprint
    known = {name: kept for name, kept in whole.trainings.items() if name != missing}
    frame = read(hyperparameters(MeasuredExperiment(whole.summary, whole.records, known))).set_index("method")
    assert set(frame.loc["contrastive", "n"]) == {2}
    assert set(frame.loc["triplet", "n"]) == {3}
    assert read(hyperparameters(measured()))["validation_map_at_r"].isna().all()


def test_hyperparameters_on_other_datasets_have_nothing_beside_them():
    runs = [some_run("contrastive", run, 0.5, hyperparameters={"loss.neg_margin": 0.5}) for run in range(2)]
    frame = read(hyperparameters(MeasuredExperiment(measured().summary, tuple(runs))))
    assert frame["mlrc"].isna().all()
    assert len(frame) == 1


def test_values_at_the_end_of_a_range_are_named_below_the_table():
    known = measured(hyperparameters={"loss.neg_margin": 1.0})
    ranges = {"triplet": {"loss.neg_margin": SearchedRange(scale="linear", low=0.0, high=1.0)}}
    summary = known.summary.model_copy(update={"ranges": ranges})
    notes = hyperparameters(MeasuredExperiment(summary, known.records)).notes
    assert any("end of their range: Triplet: loss.neg_margin 1 (highest)." in note for note in notes)
