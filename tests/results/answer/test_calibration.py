"""The calibration: what is recorded keeps the promise of the docs, and a small part of it can be repeated."""

import json

import numpy as np
import pytest

from benchmarks.calibration import (
    KINDS,
    METHODS,
    SEARCHES,
    claims,
    compared,
    gains_seen,
    plan,
    searches_of,
)
from benchmarks.calibration_tables import exceptions
from results.answer.compare import gains_over
from results.answer.question import AskedMethod
from results.store.experiment_results import FOLDER
from tests.support.answers import asked

RECORDED = json.loads((FOLDER / "calibration.json").read_text(encoding="utf-8"))
# Two standard errors of a share of 5 %.
MOST = 0.05 + 2 * (0.05 * 0.95 / RECORDED["tables"]) ** 0.5
EXCEPTIONS = {
    **{"one x5": 0.085, "one x10": 0.16, "one x20": 0.19, "one bimodal": 0.24},
    **{"one fails 2 in 5 by 16": 0.36, "all fail 1 in 5 by 16": 0.085},
}
"""Largest shares of wrong tables where 5 % does not hold, as docs/comparisons.md says."""
OF_NUMBERS = {(2, 10, 5.0): 0.15, (3, 10, 3.0): 0.095, (10, 3, 0.2): 0.12}


def of(kind):
    return EXCEPTIONS.get(kind, MOST)


def test_every_cell_is_recorded():
    cells = [(row["methods"], row["searches"], row["kind"]) for row in RECORDED["repeated"]]
    assert cells == [(methods, searches, kind) for methods in METHODS for searches in SEARCHES for kind in KINDS]


def test_wrong_claims_and_ranks_are_as_rare_as_promised():
    for row in RECORDED["repeated"]:
        assert max(*row["wrong"].values(), row["wrong at the margin"], row["wrong ranks"]) <= of(row["kind"]), row
    for row in RECORDED["unequal_numbers"]:
        assert max(row["wrong"].values()) <= OF_NUMBERS.get(tuple(row["numbers"]), MOST), row
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
        if row["kind"] in ("normal", "half x3", "unequal", "all fail 1 in 20 by 16", "level 2", "log-normal"):
            assert row["coverage of the first"] >= 0.93, row
    for row in RECORDED["over_classes"]:
        assert min(row["single"] - 0.88, row["difference"] - 0.9) >= 0, row


def test_the_exceptions_of_the_docs_are_all_that_there_are():
    found = exceptions(RECORDED)
    assert {kind for kind, row in found.items() if any(is_one for _, is_one in row[:-1])} == EXCEPTIONS.keys()


def test_simulated_claims_and_gains_are_those_of_the_answer():
    generator = np.random.default_rng(5)
    tuned = searches_of("one fails 1 in 5 by 16", (60, 3, 5), generator) + np.array([4.0, 0.0, 20.0])[:, None]
    default = 30 + 0.5 * generator.standard_normal((60, 3, 4))
    claimed = gains_seen(tuned, default)
    verdicts = {"all": claims(compared(tuned), "all")[1], "named": claims(compared(tuned), "m0")[1]}
    for place, own in enumerate(tuned):
        methods = {f"m{number}": values for number, values in enumerate(own)}
        found = {"all": asked(methods, margin=1), "named": asked(methods, margin=1, compare="m0")}
        for compare, of in found.items():
            assert [pair.better is not None for pair in of.pairs] == verdicts[compare][place].tolist()
        given = {
            f"m{number}": (AskedMethod("", 0, 4, searched=False), values)
            for number, values in enumerate(default[place])
        }
        gains = {
            one.a: one for one in gains_over(found["all"].values, asked(given).values, {key: key for key in methods})
        }
        signs = [{"a better": 1, "b better": -1}.get(gains[key].direction, 0) for key in methods]
        assert signs == claimed[place].tolist()
    assert 0 < (claimed != 0).mean() < 1


CELLS = ["repeated", "unequal_numbers", "until_decided", "tuning", "one_search", "over_classes", "board"]


@pytest.mark.parametrize("name", CELLS)
def test_a_recorded_cell_can_be_repeated(name):
    again, row = plan()[name][1](tables=400), RECORDED[name][1]
    for key in again.keys() & {"wrong", "seen", "decided", "map_at_r"}:
        assert again[key] == pytest.approx(row[key], abs=0.06)
