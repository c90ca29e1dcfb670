"""The calibration: what is recorded keeps the promise of the docs, and a small part of it can be repeated."""

import json

import pytest

from results.store.experiment_results import FOLDER
from tests.benchmarks.calibration import KINDS, METHODS, SEARCHES, plan

RECORDED = json.loads((FOLDER / "calibration.json").read_text(encoding="utf-8"))
# Two standard errors of a share of 5 %.
MOST = 0.05 + 2 * (0.05 * 0.95 / RECORDED["tables"]) ** 0.5
EXCEPTIONS = {"one x5": 0.085, "one fails 2 in 5 by 16": 0.2}
"""Largest shares of wrong tables where 5 % does not hold, as docs/comparisons.md says."""


def of(kind):
    return EXCEPTIONS.get(kind, MOST)


def test_every_cell_is_recorded():
    cells = [(row["methods"], row["searches"], row["kind"]) for row in RECORDED["repeated"]]
    assert cells == [(methods, searches, kind) for methods in METHODS for searches in SEARCHES for kind in KINDS]


def test_wrong_claims_and_ranks_are_as_rare_as_promised():
    for row in RECORDED["repeated"]:
        shares = (row["wrong"]["all"], row["wrong"]["best"], row["wrong at the margin"], row["wrong ranks"])
        assert max(shares) <= of(row["kind"]), row
    for row in RECORDED["one_search"]:
        assert row["wrong"] <= (0.1 if row["unequal"] else MOST), row
    for row in RECORDED["board"]:
        assert row["wrong"]["all, surviving"] <= MOST, row


def test_planned_looks_keep_the_level_and_decide():
    for row in RECORDED["until_decided"]:
        assert row["wrong"] <= of(row["kind"]), row
        if (row["kind"], row["methods"]) == ("normal", 2):
            assert row["decided"] > 0.97
            assert row["searches"] < 5.5


def test_gains_of_tuning_are_claimed_where_there_are_some():
    for row in RECORDED["tuning"]:
        assert row["wrong"] <= (0.075 if row["kind"] == "residuals" else MOST), row
        assert row["kind"] != "normal" or row["seen"] > 0.9, row


def test_intervals_contain_the_typical_level_as_often_as_promised():
    for row in RECORDED["repeated"]:
        if row["kind"] in ("normal", "half x3", "unequal", "all fail 1 in 20 by 16"):
            assert row["coverage of the first"] >= 0.93, row


@pytest.mark.parametrize("name", ["repeated", "until_decided", "tuning", "one_search", "board"])
def test_a_recorded_cell_can_be_repeated(name):
    again, row = plan()[name][1](tables=400), RECORDED[name][1]
    for key in again.keys() & {"wrong", "seen", "decided"}:
        assert again[key] == pytest.approx(row[key], abs=0.06)
