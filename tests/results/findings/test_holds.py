"""Does an answer hold? Every condition against a computation of its own."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from reports.headline import headline
from reports.sentences import sentences
from reports.tables.formats import to_latex, to_markdown
from reports.tables.holds import holds_table, what_stands
from reports.tables.table import Cell, cell_text
from results.answer.answer_question import answer, answer_frame, answer_on
from results.answer.compare import compare, record_of_searches
from results.answer.deviations import nearest_search_deviation
from results.answer.question import Question
from results.findings.experiment import answer_of
from results.findings.holds import AS_ASKED, OtherConditions, first_pairs
from results.spec.range import Range
from results.store.experiment_results import MeasuredExperiment
from tests.support.limits import unlimited
from tests.support.page_material import searched as in_points
from tests.support.sample_records import changed_run, scores
from tests.support.sample_searches import searched

CLEAR = {"a": (30.0, 30.6, 30.3), "c": (27.9, 28.4, 28.6)}
AGREE, NEAR = (0.300, 0.301, 0.302), (0.280, 0.281, 0.282)
"""Searches that differ by far less than those of the records."""

RECORD = "if searches vary as in a record"


def checks(found, one="a", other="b"):
    return {check.condition: check for check in OtherConditions(found).of(found.pair(one, other))}


def answer_about(*methods, trials=12, searches=3, **settings):
    values = {name: [(one, one) for one in own] for name, own in zip("abc", methods, strict=False)}
    return answer_of(searched(values, searches=searches, trials=trials, **settings))


def in_rows(values):
    """A table of runs."""
    return pd.DataFrame([(key, one) for key, own in values.items() for one in own], columns=["method", "score"])


def with_models(world, separated=None, folds=4):
    """The experiment with single models of this MAP@R in percentage points, by method and search."""
    runs = []
    for run in world.measured.records:
        value = run.separated if separated is None else scores(0.04 * separated[run.method][run.search])
        runs.append(changed_run(run, fold_scores=(value,) * folds))
    return answer_of(unlimited(replace(world.measured, records=tuple(runs))))


def test_single_models_are_asked_at_the_level_of_the_first_question():
    world = in_points(**CLEAR)
    for separated, holds, better in (
        (None, True, "a"),
        ({"a": (30.0, 30.6, 30.3), "c": (30.1, 30.4, 30.0)}, False, None),
        ({"a": CLEAR["c"], "c": CLEAR["a"]}, False, "c"),
    ):
        found = with_models(world, separated)
        check = checks(found, "a", "c")["as single models"]
        assert (check.holds, check.pair.better) == (holds, better)
        other = answer_on(found, "map_at_r", "separated", found.question.alpha).pair("a", "c")
        assert check.pair.p_better == other.p_better
    assert "as single models" not in checks(with_models(world, folds=1), "a", "c")


def test_the_line_says_what_holds_what_does_not_and_what_was_not_measured():
    world = in_points(**CLEAR)
    found = with_models(world, {"a": (30.0, 30.6, 30.3), "c": (30.1, 30.4, 30.0)})
    assert headline(found) == "A beats C by 2.0 ± 0.9 points of MAP@R."
    line = what_stands(found)
    assert line.startswith(
        "This holds trained to the end, beyond the ranges, with equal batches and without one search; "
    )
    assert "; not as single models, not in P@1" in line
    cut = {key: replace(own, cut_off="after 400 steps") for key, own in found.question.methods.items()}
    held_up = answer_frame(found.frame, replace(found.question, methods=cut))
    assert what_stands(held_up).endswith("not measured: trained to the end.")
    assert any(one.endswith(what_stands(held_up)) for one in sentences(held_up))


def test_trainings_of_which_nothing_is_recorded_are_not_said_to_have_ended():
    world = in_points(**CLEAR)
    check = checks(answer_of(replace(world.measured, cut_off={})), "a", "c")["trained to the end"]
    assert (check.holds, check.note) == (None, "not recorded for C")


def test_nothing_is_said_of_open_pairs_and_before_all_searches_are_there():
    alike = in_points(a=(30, 31, 32), b=(29, 31.5, 32)).answer
    assert what_stands(alike) == ""
    assert holds_table(alike).rows, "what would be measured stands in the table all the same"
    assert first_pairs(in_points(a=CLEAR["a"], c=CLEAR["c"][:1]).answer) == []
    assert not holds_table(answer_of(MeasuredExperiment.kept("quickstart_one_search"))).rows


def test_a_method_that_was_held_up_names_the_option_that_measures_it():
    world = in_points(**CLEAR)
    ranges = {key: {"loss.margin": Range(scale="log", low=0.1, high=10.0, least=0.0)} for key in "ac"}
    records = [
        changed_run(run, hyperparameters={"loss.margin": 0.1 if run.method == "c" else 1.0})
        for run in world.measured.records
    ]
    rows = {key: row.model_copy(update={"ranges": ranges[key]}) for key, row in world.measured.plan.rows.items()}
    plan = world.measured.plan.model_copy(update={"rows": rows})
    found = answer_of(MeasuredExperiment(plan, tuple(records)))
    pair = found.pair("a", "c")
    assert (pair.better, pair.ahead) == (None, "a")
    check = checks(found, "a", "c")["beyond the ranges"]
    assert (check.holds, check.note, check.measure) == (
        None,
        "pressed: C loss.margin 0.1 (low)",
        "--set search.probe_ends=true",
    )
    cut = {key: replace(own, cut_off="after 400 steps", pressed="") for key, own in found.question.methods.items()}
    late = checks(answer_frame(found.frame, replace(found.question, methods=cut)), "a", "c")["trained to the end"]
    epochs = found.question.experiment.conditions.training.max_epochs
    assert (late.holds, late.measure) == (None, f"--set reproduction_epochs={4 * epochs}")


def test_the_quickstart_stands_but_after_the_steps_of_a_trial():
    found = answer_of(MeasuredExperiment.kept("quickstart"))
    own = checks(found, "proxy_anchor", "triplet")
    assert {key: check.holds for key, check in own.items() if not key.startswith("without one search")} == {
        AS_ASKED: True,
        "trained to the end": True,
        "after 200 steps": False,
        "beyond the ranges": True,
        "with equal batches": None,
        "as single models": True,
        "in P@1": True,
        "over other test classes": True,
        "without one other method": True,
    }
    batches = own["with equal batches"]
    assert batches.note == "images of a class: Proxy-Anchor 1, Triplet 4"
    assert batches.measure == "--set search.equal_spaces=true"
    assert "with equal batches" not in checks(found, "triplet", "untrained"), "nothing draws its batches"


@pytest.mark.parametrize(
    "record", ["reality_check_glyphs_4_tested_to_the_end", "search_variance_glyphs", "defaults_glyphs"]
)
def test_equal_batches_are_known_from_recipes_and_from_runs(record):
    """The plans of the last two records have no recipes, and the last one searches nothing."""
    found = answer_of(MeasuredExperiment.kept(record))
    drawn = {key: runs[0].specs[0].method.batch.samples_per_class for key, runs in found.measured.runs.items()}
    for pair in found.pairs:
        equal = drawn[pair.a] == drawn[pair.b]
        check = checks(found, pair.a, pair.b)["with equal batches"]
        assert check.holds == (True if equal else None)
        assert check.note.endswith("for both") == equal
        assert bool(check.measure) == (not equal and record == "search_variance_glyphs")


def test_other_classes_are_those_of_the_bootstrap():
    found = answer_of(unlimited(MeasuredExperiment.kept("embedder_start_pca_frozen_cub200_subset")))
    assert sum(pair.over_classes > pair.half_width for pair in found.pairs) == 3
    for pair in found.pairs:
        check = checks(found, pair.a, pair.b).get("over other test classes")
        assert (check is None) == (not pair.better), "a pair without a verdict has nothing to hold"
        if check:
            both = (pair.over_classes**2 + pair.half_width**2) ** 0.5
            assert check.pair.half_width == pytest.approx(both), "searches and classes vary"
            assert check.holds == (abs(pair.difference) > both) == bool(check.pair.better)


def test_several_verdicts_are_counted_by_condition():
    found = answer_of(MeasuredExperiment.kept("reality_check_glyphs"))
    line = what_stands(found)
    verdicts = [pair for pair in found.pairs if pair.better or pair.ahead or pair.size == "within"]
    asked = [checks(found, pair.a, pair.b) for pair in verdicts]
    assert line.startswith(f"{len(verdicts)} verdicts: ")
    assert f"without one search {sum(own['without one search'].holds for own in asked)} of {len(verdicts)}" in line
    open_ends = sum(own["beyond the ranges"].holds is None for own in asked)
    assert f" of {len(verdicts)} ({open_ends} not measured)" in line
    unequal = sum(own["with equal batches"].holds is None for own in asked)
    assert f"with equal batches {len(verdicts) - unequal} of {len(verdicts)} ({unequal} not measured)" in line
    assert line.endswith("not measured: trained to the end.")


def test_one_value_is_left_out_where_it_weakens_the_verdict_most():
    scores_of = {"a": (30.0, 31.0, 30.4, 30.6), "b": (27.4, 29.1, 28.5, 28.0)}
    table = {
        "method": [key for key in scores_of for _ in range(4)],
        "x": [one for own in scores_of.values() for one in own],
    }
    found = answer(pd.DataFrame(table), Question(scale="points"))
    check = checks(found)["without one run"]
    weakest = math.inf
    for key in scores_of:
        for place in range(4):
            left = {name: own[:place] + own[place + 1 :] if name == key else own for name, own in scores_of.items()}
            values = {name: replace(found.values[name], units=left[name]) for name in left}
            (pair,) = compare(found.question, values)
            ratio = pair.difference / pair.half_width
            if ratio < weakest:
                weakest, value, holds = ratio, scores_of[key][place], bool(pair.better)
    assert check.pair.difference / check.pair.half_width == pytest.approx(weakest)
    of = "a" if value in scores_of["a"] else "b"
    assert check.note == f"that of {of} with {found.scaling.score(value)} decides most"
    assert check.holds == holds


def test_two_that_are_equal_hang_on_the_value_whose_absence_takes_them_furthest_apart():
    scores_of = {"a": (70.0, 70.1, 70.05, 69.95), "b": (70.1, 69.92, 70.0, 70.02)}
    table = pd.DataFrame([(key, x) for key, own in scores_of.items() for x in own], columns=["method", "x"])
    found = answer(table, Question(scale="points", margin=1.0))
    assert found.pairs[0].size == "within"
    check = checks(found)["without one run"]
    reaches = {}
    for key, own in scores_of.items():
        for place, value in enumerate(own):
            values = {**found.values, key: replace(found.values[key], units=own[:place] + own[place + 1 :])}
            (pair,) = compare(found.question, values)
            reaches[key, value] = abs(pair.difference) + pair.half_width
    key, value = max(reaches, key=reaches.get)
    assert check.note == f"that of {key} with {found.scaling.score(value)} decides most"


def test_a_claim_that_hangs_on_another_method_names_it():
    found = answer_of(unlimited(MeasuredExperiment.kept("reality_check_handwriting")))
    check = checks(found, "soft_triple", "triplet")["without one other method"]
    others = set(found.question.compared) - {"soft_triple", "triplet"}
    gone = {
        key
        for key in others
        if ("soft_triple", "triplet")
        not in answer_frame(
            found.frame, found.question.only([one for one in found.question.compared if one != key])
        ).claims
    }
    assert gone
    assert check.holds is False
    assert check.note.removesuffix(" decides most") in {found.titles[key] for key in gone}


def recurring(values, least):
    """The claims of all pairs with variances not below a record's, by the formulas of the docs; of equal numbers."""
    count, methods = len(values[0]), len(values)
    variances = [np.var(own, ddof=1) for own in values]
    pooled, degrees = np.mean(variances), min(methods * (count - 1), 40)
    squares = [(1 + 1 / (count - 1) ** 2) * max(one, pooled, least**2) / count for one in variances]
    pairs = []
    for a, b in combinations(range(methods), 2):
        difference = np.mean(values[a]) - np.mean(values[b])
        p = 2 * stats.t.sf(abs(difference) / math.sqrt(squares[a] + squares[b]), degrees)
        pairs.append((p, (a, b) if difference > 0 else (b, a)))
    claims, worst = set(), 0.0
    for rank, (p, claim) in enumerate(sorted(pairs)):
        worst = max(worst, p * max(len(pairs) - rank, len(pairs) / 2) / 0.75)
        claims |= {claim} if worst < 0.05 else set()
    return claims


def test_claims_that_the_deviation_of_the_record_takes_away_do_not_hold_with_it():
    gone = left = 0
    for seed in range(60):
        noise = np.random.default_rng(seed)
        values = (0.3 + noise.normal(0, 0.03, (3, 1)) + noise.normal(0, 0.01, (3, 3))).tolist()
        found = answer_about(*values)
        least = nearest_search_deviation(found.question.experiment, "map_at_r", "concatenated").deviation
        expected = {("abc"[better], "abc"[worse]) for better, worse in recurring(values, least)}
        held = {claim for claim in found.claims if checks(found, *claim)[RECORD].holds}
        assert held == found.claims & expected
        gone, left = gone + len(found.claims - held), left + len(held)
    assert min(gone, left) > 10


def test_a_lucky_deviation_changes_no_verdict_and_is_a_row():
    found = answer_about(AGREE, NEAR)
    check = checks(found)[RECORD]
    assert (found.claims, check.holds) == ({("a", "b")}, False)
    assert f"by {100 * record_of_searches(found).deviation:.2f} points" in check.note
    assert what_stands(found).endswith(f", not {RECORD}.")
    equal = answer_about(AGREE, [one + 0.0001 for one in AGREE])
    assert (equal.pairs[0].size, checks(equal)[RECORD].holds) == ("within", False)


@pytest.mark.parametrize(
    "changes",
    [
        {"trials": 9},  # Searches of fewer trials vary more than any record says.
        {"trunk": {"name": "resnet50", "weights": "imagenet"}, "dataset": {"name": "cars196"}},  # No record is near.
    ],
)
def test_without_a_record_there_is_no_such_row(changes):
    found = answer_about(AGREE, NEAR, **changes)
    assert found.claims == {("a", "b")}
    assert RECORD not in checks(found)


def test_ten_degrees_of_freedom_say_as_much_as_a_record():
    own = [0.300 + 0.001 * place for place in range(6)]
    assert RECORD not in checks(answer_about(own, [one - 0.02 for one in own], searches=6))
    five = own[:5]
    assert checks(answer_about(five, [one - 0.02 for one in five], searches=5))[RECORD].holds is False
    assert checks(answer_about(five, [one - 0.06 for one in five], searches=5))[RECORD].holds


def test_looks_hold_if_one_of_them_would_show_the_claim_with_the_record():
    search = {"search": {"trials": 12, "searches": 3, "until_decided": True}}
    assert checks(answer_about(AGREE, NEAR, **search))[RECORD].holds is False
    assert checks(answer_about(AGREE, [one - 0.2 for one in AGREE], **search))[RECORD].holds


def test_given_settings_say_how_much_searches_may_vary():
    values = {"a": (30.0, 30.5, 31.0, 30.2), "b": (27.4, 27.9, 28.5, 28.0)}
    table = {
        "method": [key for key in values for _ in range(4)],
        "acc": [one for own in values.values() for one in own],
    }
    found = answer(pd.DataFrame(table))
    check = checks(found)["with a search of each"]
    assert check.note == f"gone if searches of the two vary by more than {100 * found.pairs[0].break_even:.2g} points"
    assert check.pair is None


def test_the_table_has_a_row_for_each_condition_in_every_format():
    found = answer_of(MeasuredExperiment.kept("quickstart"))
    table = holds_table(found)
    own = OtherConditions(found).of(found.pair("proxy_anchor", "triplet"))
    rows = table.rows[: len(own)]
    assert [row.head for row in rows] == ["Proxy-Anchor − Triplet", *(check.condition for check in own[1:])]
    assert [row.below for row in rows] == [False, *[True] * (len(own) - 1)]
    for row, check in zip(rows, own, strict=True):
        shown = check.pair and cell_text(Cell(check.pair.difference, check.pair.half_width, form=row.cells[0].form))
        assert cell_text(row.cells[0]) == (shown or "")
    assert "over other test classes" in to_latex(table)
    assert "over other test classes" in to_markdown(table)
    assert len(table.sheet.rows) == len(table.rows)
    assert len(holds_table(found, every=True).rows) > len(table.rows)


def test_the_sheet_names_the_methods_in_the_order_of_its_differences():
    found = answer_of(MeasuredExperiment.kept("pfml_glyphs"))
    table = holds_table(found, every=True)
    a, b, condition, difference, verdict = map(
        table.sheet.header.index, ("a", "b", "condition", "difference", "verdict")
    )
    for row in table.sheet.rows:
        if row[condition] == AS_ASKED:
            pair = found.pair(row[a], row[b])
            assert row[difference] == pair.difference >= 0
            assert row[verdict] == found.verdict_words(pair)


def test_of_very_many_verdicts_only_the_first_ones_are_asked_again():
    values = {f"m{place:02}": [50.0 + place, 50.1 + place, 50.2 + place] for place in range(12)}
    found = answer(in_rows(values))
    assert len([pair for pair in found.pairs if pair.better]) > 50
    assert what_stands(found).startswith("Only 3 of 66 verdicts were asked again, the first of m11. 3 verdicts: ")
    again = [text for text in sentences(found) if " holds " in text]
    assert len(again) == 3
    assert all(text.startswith("m11 is better than ") for text in again)
