"""The calibration: what is recorded keeps the promise of the docs, and a small part of it can be repeated."""

import json

import numpy as np
import pytest

from results.statistics.early_stopping import SimulatedTables, simulated_runs
from results.store.experiment_results import FOLDER
from tests.benchmarks.calibration import calibrate, limma_t, power, settings, wrong_claims

RECORDED = json.loads((FOLDER / "calibration.json").read_text(encoding="utf-8"))


def test_every_setting_is_recorded():
    recorded = [
        SimulatedTables(*(row[name] for name in ("methods", "runs", "kind", "correlation")))
        for row in RECORDED["settings"]
    ]
    assert recorded == settings()


@pytest.mark.parametrize("row", RECORDED["settings"], ids=lambda row: f"{row['methods']}-{row['runs']}-{row['kind']}")
def test_wrong_claims_are_as_rare_as_promised(row):
    shares = [row["wrong_better_without_differences"], *(wrong["any"] for wrong in row["wrong_at_margin"].values())]
    # Negative correlations are the exception that docs/comparisons.md names.
    assert max(shares) <= (RECORDED["alpha"] if row["correlation"] >= 0 else 0.0561)


def test_the_moderated_test_sees_more_than_the_others_where_methods_vary_alike():
    for row in RECORDED["settings"]:
        if row["kind"] == "equal" and row["correlation"] == 0 and row["methods"] > 2:
            for seen in row["power"].values():
                assert seen["moderated t"] >= max(seen["paired t"], seen["Welch t"]) - 0.01


@pytest.mark.parametrize("number", [0, 62])
def test_a_recorded_setting_can_be_repeated(number):
    row = RECORDED["settings"][number]
    again = calibrate(number, settings()[number], row["tables"])
    name = "wrong_better_without_differences"
    assert again[name] == pytest.approx(row[name], abs=0.002)
    assert again["power"]["4.0"]["moderated t"] == pytest.approx(row["power"]["4.0"]["moderated t"], abs=0.01)


def test_limmas_own_prior_claims_too_much_where_one_method_is_noisy():
    tables = SimulatedTables(15, 2, "one noisy")
    ours = wrong_claims(tables, 1000, np.random.default_rng(1))
    limmas = wrong_claims(tables, 1000, np.random.default_rng(1), test=limma_t)
    assert ours.any < 0.05 < 0.1 < limmas.any


@pytest.mark.parametrize("correlation", [-0.18, 0.0, 0.3])
def test_simulated_runs_have_the_wanted_deviations_and_correlations(correlation):
    runs = simulated_runs(SimulatedTables(4, 50, "unequal", correlation), 200, np.random.default_rng(0))
    assert runs.std(axis=(0, 2)) == pytest.approx([1, 3, 1, 3], rel=0.03)
    matched = np.corrcoef(runs.transpose(1, 0, 2).reshape(4, -1))
    assert matched[np.triu_indices(4, 1)] == pytest.approx([correlation] * 6, abs=0.03)


def test_a_clear_difference_is_seen_by_every_test_and_a_single_run_is_one():
    assert min(power(SimulatedTables(3, 10, "equal"), 50, 0, 8.0).values()) > 0.99
    single = simulated_runs(SimulatedTables(5, 3, "one single run"), 4, np.random.default_rng(0))
    assert np.isnan(single).sum(axis=2).tolist() == [[2, 0, 0, 0, 0]] * 4
