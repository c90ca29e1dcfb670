"""Scores of anybody's table get the answers of an experiment, and bad tables one line with the row's number."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from reports.headline import headline
from reports.tables import result_table
from reports.tables.differences import differences
from reports.tables.formats import to_csv
from reports.tables.holds import holds_table
from results.answer import Question, answer
from results.answer.audit import audit, with_questions
from results.answer.deviations import SearchDeviation
from results.findings.experiment import answer_of
from results.reading.read_scores import read_scores
from results.reading.scores_table import Reading, ScoresError
from results.records.frame import ExportedRun, runs_table
from results.store.experiment_results import FOLDER, MeasuredExperiment
from tests.support import typical_search

KEPT = sorted(path.name.removesuffix(".json.xz") for path in FOLDER.glob("*.json.xz"))

RUNS = """\
method,seed,P@1
A,1,71.2
A,2,71.9
A,3,71.5
B,1,68.1
B,2,69.4
B,3,68.8
"""


def table_of(text):
    table = pd.read_csv(io.StringIO(text), sep="\t" if "\t" in text else ",", dtype=str, keep_default_na=False)
    return table.set_axis(range(2, len(table) + 2))


def only(found):
    ((_, one),) = found.answers.items()
    return one


def texts(found):
    return [finding.sentences for finding in found.findings]


def searches_table(seed):
    """A table of 2 to 12 methods with 2 to 8 searches of 1 to 3 runs, of which one search in ten fails, in percent."""
    noise = np.random.default_rng(seed)
    count, methods, runs = int(noise.integers(2, 9)), int(noise.integers(2, 13)), int(noise.integers(1, 4))
    values = noise.uniform(20, 90, (methods, 1)) ** noise.choice([0.9, 1]) + noise.standard_normal((methods, count))
    values = np.where(noise.random(values.shape) < 0.1, values * noise.uniform(0.05, 0.9, values.shape), values)
    rows = [
        (f"m{number}", f"s{search}", run, mean + (run - (runs - 1) / 2) * 0.1)
        for number, own in enumerate(values)
        for search, mean in enumerate(own)
        for run in range(runs)
    ]
    table = pd.DataFrame(rows, columns=["model", "search", "seed", "accuracy"])
    return table.sample(frac=1, random_state=seed, ignore_index=True)


def test_means_half_widths_claims_and_ranks_are_those_of_the_reference():
    claims = failed = 0
    for seed in range(200):
        table = searches_table(seed)
        found = only(audit(table))
        means = (table.assign(accuracy=table["accuracy"] / 100)).groupby(["model", "search"], sort=False)["accuracy"]
        values: dict[str, list[float]] = {}
        for (method, _), mean in means.mean().items():
            values.setdefault(method, []).append(mean)
        expected = typical_search.compare(values, half=False)
        assert {key: own.mean for key, own in found.intervals.items()} == pytest.approx(expected["means"], rel=1e-9)
        widths = {key: own.half_width for key, own in found.intervals.items()}
        assert widths == pytest.approx(expected["half widths"], rel=1e-9)
        assert (found.claims, found.rank_intervals) == (expected["claims"], expected["ranks"])
        claims, failed = claims + len(found.claims), failed + len(found.failed)
    assert min(claims, failed) > 100


def exported(name):
    measured = MeasuredExperiment.kept(name)
    about = (name, "f" * 32, measured.plan.title, measured.plan.trials, 1)
    return measured, runs_table(with_questions(measured, [ExportedRun(record, *about) for record in measured.records]))


def rounded(values):
    """Numbers with 11 digits: the methods stand in another order, and sums end with other digits."""
    return [float(f"{value:.11g}") if isinstance(value, float) else value for value in values]


@pytest.mark.parametrize("name", KEPT)
def test_exported_runs_of_every_kept_record_get_the_verdicts_of_their_table(name):
    measured, table = exported(name)
    written = pd.read_csv(io.StringIO(table.to_csv(index=False)), dtype=str, keep_default_na=False)
    for read in (written, table):
        found, own = only(audit(read)), answer_of(measured)
        intervals = [{key: rounded(vars(one).values()) for key, one in of.intervals.items()} for of in (found, own)]
        assert intervals[0] == intervals[1]
        assert found.claims == own.claims
        assert (found.final_ranks, found.leading, found.failed) == (own.final_ranks, own.leading, own.failed)
        assert found.left_out == own.left_out
        sheets = [differences(of).sheet for of in (found, own)]
        # The file of runs has no scores of classes, and tables of others have a plain test beside ours.
        both = [name for name in sheets[1].header if name != "over_classes"]
        places = [[of.header.index(name) for name in both] for of in sheets]
        rows = [
            sorted((rounded([row[place] for place in at]) for row in of.rows), key=str)
            for of, at in zip(sheets, places, strict=True)
        ]
        assert rows[0] == rows[1]


def test_a_method_of_an_exported_experiment_without_rows_is_not_finished():
    measured, table = exported("pfml_glyphs")
    gone = table["method"].iloc[0]
    found, whole = only(audit(table[table["method"] != gone])), answer_of(measured)
    assert found.question.compared == whole.question.compared, "the family is that of the experiment"
    assert found.missing == {gone: f"0 of {whole.question.methods[gone].searches} searches"}
    assert headline(found).startswith("Interim: ")
    without = [json.dumps({**json.loads(one), "methods": {}}) for one in table["reproduce_question"]]
    older = only(audit(table.assign(reproduce_question=without).query("method != @gone")))
    assert not older.interim, "older exports do not name their methods"
    assert gone not in older.question.methods


def test_own_rows_beside_an_export_join_the_experiment_of_their_dataset():
    _, table = exported("pfml_readings")
    rows = table[table["method"] == table["method"].iloc[0]].assign(method="mine")
    mine = rows[["method", "dataset", "search", "run", *(name for name in rows if name.startswith("concatenated_"))]]
    found = only(audit(pd.concat([table, mine], ignore_index=True)))
    own = only(audit(table))
    assert found.question.unit == own.question.unit
    assert found.question.methods["mine"].runs == own.question.methods[table["method"].iloc[0]].runs
    assert found.pair("mine", table["method"].iloc[0]).difference == 0
    elsewhere = audit(pd.concat([table, mine.drop(columns="search").assign(dataset="cars")], ignore_index=True))
    assert elsewhere.answers["cars"].question.unit == "run", "rows on another dataset are a table of their own"
    bare = only(audit(pd.concat([table, mine.drop(columns=["search", "run"])], ignore_index=True)))
    assert bare.values["mine"].units == found.values["mine"].units, "neither searches nor runs have to be numbered"
    other = table.assign(experiment_fingerprint="e" * 32)
    with pytest.raises(ScoresError, match=r"has 2 experiments; write in experiment_fingerprint which one they join"):
        audit(pd.concat([table, other, mine], ignore_index=True))
    broken = table.assign(reproduce_question="{}x")
    with pytest.raises(
        ScoresError, match="is not as `reproduce export runs` wrote it; export again, or leave both out"
    ):
        audit(broken)


def test_rows_of_no_experiment_are_left_out_of_an_export():
    _, table = exported("pfml_readings")
    empty = dict.fromkeys(("experiment_fingerprint", "reproduce_question", "reproduce_planned"), "")
    unlisted = table[table["method"] == table["method"].iloc[0]].assign(**empty, search=9)
    mine = unlisted.assign(fingerprint="", method="mine")
    found = only(audit(pd.concat([table, unlisted, mine], ignore_index=True)))
    expected = only(audit(pd.concat([table, mine], ignore_index=True)))
    assert (found.intervals, found.pairs) == (expected.intervals, expected.pairs)
    assert "Left out: rows 15, 16, 17, which no experiment lists any more." in texts(found)
    with pytest.raises(ScoresError, match="no row is of an experiment"):
        audit(unlisted)


def test_own_rows_without_a_search_are_runs_of_one_search_beside_several():
    _, table = exported("pfml_glyphs")
    known = table["method"].iloc[0]
    mine = table[table["method"] == known].assign(method="mine")[["method", "dataset", "concatenated_map_at_r"]]
    found = only(audit(pd.concat([table, mine], ignore_index=True)))
    assert found.question.methods["mine"].searches == 1
    assert found.pair(found.question.compare, "mine").untested == "single runs"
    assert any(text.startswith("mine names no search: 6 runs of one, ") for text in texts(found))
    assert found.claims == only(audit(table)).claims
    for empty in ({"reproduce_question": "", "reproduce_planned": ""}, {}):
        alone = table.assign(**empty) if empty else table.drop(columns=["reproduce_question", "reproduce_planned"])
        assert only(audit(alone)).question.unit == "search", "an export without its question is a table"
    with pytest.raises(ScoresError, match="--paired: `reproduce export runs` wrote this table"):
        audit(table, Reading(paired="run"))
    assert only(audit(table, Reading(lower_is_better=True))).question.lower_is_better
    assert list(only(audit(table, Reading(where=(("method", known),)))).values) == [known]
    lost = table.assign(search=[pd.NA, *table["search"].iloc[1:]])
    with pytest.raises(ScoresError, match="row 0: there is no search in 'search'"):
        audit(lost)


def test_without_searches_the_answer_is_about_settings_and_every_claim_has_its_break_even():
    found = audit(table_of(RUNS))
    assert found.read == "Scores: 2 methods, 6 runs, no searches; score P@1, taken as percent (within 0 and 100)."
    one = only(found)
    assert (one.question.unit, one.claims) == ("run", {("A", "B")})
    (pair,) = one.pairs
    assert any("the answer is about these settings" in text for text in texts(one))
    rows = {row.head: row for row in holds_table(one).rows}
    words = f"gone if searches of the two vary by more than {100 * pair.break_even:.2g} points"
    assert rows["with a search of each"].cells[-1].value == words


def test_wide_and_long_tables_and_a_frame_give_the_same_answer():
    wide = table_of(RUNS)
    long = wide.rename(columns={"P@1": "value"}).assign(metric="P@1")
    fractions = wide.assign(**{"P@1": wide["P@1"].astype(float) / 100})
    expected = [only(audit(table)).pairs for table in (wide, long)]
    expected += [answer(table, Question(score="P@1")).pairs for table in (wide, long)]
    assert all(pairs == expected[0] for pairs in expected)
    assert only(audit(fractions)).pairs[0].difference == pytest.approx(expected[0][0].difference)


def test_an_answer_has_frames_and_shows_itself_in_a_notebook():
    found = answer(table_of(RUNS.replace("A,", "<b>A</b>,")), Question(score="P@1"))
    assert found.methods[["mean", "n", "rank_low", "rank_high"]].values.tolist() == [
        [pytest.approx(0.71533, abs=1e-5), 3, 1, 1],
        [pytest.approx(0.68767, abs=1e-5), 3, 2, 2],
    ]
    (row,) = found.differences.to_dict("records")
    assert (row["better"], row["difference"]) == ("<b>A</b>", pytest.approx(found.pairs[0].difference))
    page = found._repr_html_()
    assert "<b>" not in page
    for said in ("71.53 ± ", "&lt;b&gt;A&lt;/b&gt; better", "+2.77 ± ", "the answer is about these settings"):
        assert said in page


def test_each_dataset_has_an_answer():
    cars = RUNS.replace("A,1,71.2", "A,1,72.2")
    both = pd.concat([table_of(text).assign(task=name) for name, text in (("cub", RUNS), ("cars", cars))])
    found = audit(both)
    assert list(found.answers) == ["cub", "cars"]
    assert "2 datasets (cub, cars)" in found.read
    with pytest.raises(ValueError, match="2 datasets"):
        answer(both, Question(score="P@1"))


def test_the_deviation_that_is_named_is_the_largest_that_gives_a_verdict():
    table = pd.DataFrame({"method": ["A", "B", "C"], "P@1": [69.7, 67.8, 65.7]})
    found = only(audit(table))
    assert not found.tested
    (named,) = [text for text in texts(found) if text.startswith("One run each, so there is no verdict about A, B and")]
    assert "A over B (1.9) below 0.51 points, A over C (4.0) below 1 points, as with --assume-deviation 1." in named

    def claims(points):
        return only(audit(table, assumed=SearchDeviation(points / 100, 40, given=True))).claims

    with pytest.raises(ValueError, match="a deviation is assumed only where no method was searched twice"):
        audit(searches_table(0), assumed=SearchDeviation(0.01, 40, given=True))
    assert claims(1.0) == {("A", "C")}
    assert ("A", "B") in claims(0.51)
    assert claims(1.1) == set()


def test_the_deviation_that_is_named_counts_the_rounding_of_scores():
    table = pd.DataFrame({"method": ["A", "B"], "P@1": [72, 71]})
    (named,) = [text for text in texts(only(audit(table))) if "--assume-deviation" in text]
    limit = float(named.partition("as with --assume-deviation ")[2].partition(". Three")[0])
    for points, claims in ((limit, {("A", "B")}), (limit / 10, {("A", "B")}), (1.5 * limit, set())):
        assert only(audit(table, assumed=SearchDeviation(points / 100, 40, given=True))).claims == claims
    equal = texts(only(audit(table.assign(**{"P@1": [71, 71]}))))
    assert "One run each, so there is no verdict about A and B. Three runs of each would give one." in equal


def test_methods_of_one_run_are_named_beside_others():
    found = only(audit(table_of(RUNS + "C,1,71.0\n")))
    assert found.pair("A", "C").untested == "single runs"
    assert found.claims == {("A", "B")}
    assert any(text.startswith("One run each, so there is no verdict about C.") for text in texts(found))


def test_what_is_unusual_is_said():
    copied = RUNS + "".join(f"C,{seed},{value}\n" for seed, value in enumerate((71.2, 71.9, 71.5)))
    copied += "".join(f"D,{seed},70.123\n" for seed in range(5))
    said = texts(only(audit(table_of(copied))))
    assert "A and C have the same 3 scores. One may be a copy of the other." in said
    assert any(text.startswith("D: 5 of 5 runs have the same score.") for text in said)
    assert any(text.startswith("Unequal numbers of runs: A 3, B 3, C 3, D 5.") for text in said)
    assert any(text.startswith("The scores are rounded to 0.1 points.") for text in texts(only(audit(table_of(RUNS)))))
    missing = texts(only(audit(table_of(RUNS + "A,4,\nA,5,nan\n"))))
    assert "A: 2 runs without a score, left out (rows 8, 9). If they failed, the mean of the others is too high." in (
        missing
    )


def test_searches_and_runs_that_a_difference_takes_are_those_of_planning():
    close = "method,seed,P@1\n" + "".join(
        f"{name},{seed},{70 + shift + noise}\n"
        for name, shift in (("A", 0.3), ("B", 0.0))
        for seed, noise in enumerate((-0.51, 0.02, 0.53, -0.3))
    )
    (said,) = [text for text in texts(only(audit(table_of(close)))) if text.startswith("Runs of each that would show")]
    assert "A over B (0.3) takes" in said


def test_lower_is_better_turns_the_sign_and_points_have_no_bounds():
    found = audit(table_of(RUNS), Reading(lower_is_better=True))
    assert only(found).claims == {("B", "A")}
    assert found.read.endswith("score P@1, taken as percent (within 0 and 100), lower is better.")
    assert headline(only(found)).startswith("B beats A by 2.8 ± ")
    assert only(found).methods["mean"].tolist() == pytest.approx([0.68767, 0.71533], abs=1e-5)
    large = table_of(RUNS.replace("71.2", "471.2"))
    with pytest.raises(ScoresError, match=r"row 2: 471.2 in 'P@1' is not within 0 and 100; .* --scale points"):
        read_scores(large)
    assert read_scores(large, Reading(scale="points")).scale == "points"
    assert headline(only(audit(large, Reading(scale="points")))).endswith(
        "136 apart; a difference of 730 would have shown."
    )


def test_the_suites_own_table_of_results_has_no_runs():
    found = answer_of(MeasuredExperiment.kept("quickstart"))
    for own, score in ((result_table.table_of(found), "mean"), (holds_table(found), "difference")):
        with pytest.raises(ScoresError, match=r"^this is a table of results, which the suite wrote; give the"):
            audit(table_of(to_csv(own)), Reading(score=score))


def test_of_several_columns_of_numbers_one_is_named_and_the_others_are_not_read():
    logged = table_of(RUNS).assign(loss="0.3", epoch="140", commit="abc", note="")
    first = audit(logged.assign(**{"R@2": "80"}))
    assert only(first).question.score == "P@1", "the first column with the name of a score"
    assert "Compared in P@1; --score names another (loss, R@2)." in first.read
    unnamed = table_of(RUNS.replace("P@1", "x")).assign(y="80")
    with pytest.raises(ScoresError, match="several columns could be the score; name one with --score: x, y"):
        audit(unnamed)
    assert only(audit(logged)).question.score == "P@1", "settings and counters are no scores"
    found = audit(logged, Reading(score="p@1"))
    assert only(found).claims == {("A", "B")}
    assert found.read.endswith("Not read: loss, epoch, commit, note.")
    known = audit(logged.assign(map_at_r=logged["P@1"], precision_at_1="50"))
    assert "; score map_at_r, " in known.read
    assert "Compared in map_at_r; --score names another (precision_at_1, P@1, loss)." in known.read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RUNS + "A,4,n. a.\n", "row 8: 'n. a.' in 'P@1' is no number"),
        (RUNS + 'A,4,"71,5"\n', "row 8: '71,5' in 'P@1' is no number; write a point in place of the comma"),
        (RUNS + "A,4,inf\n", "row 8: inf in 'P@1' is no score"),
        (RUNS + "A,4,-1\n", "row 8: -1 in 'P@1' is not within 0 and 100"),
        (RUNS + "A,2,71.8\n", "rows 3 and 8 are both method A, run 2"),
        (RUNS + "a ,4,71.9\n", "rows 2 and 8: 'A' and 'a' differ in blanks, dashes or case only"),
        (RUNS + ",4,71.9\n", "row 8: there is no method in 'method'"),
        ("method,search,P@1\nA,1,50\nA,,51\n", "row 3: there is no search in 'search'"),
        (
            RUNS.replace(",", ";").replace(".", ",").replace(";", "\t"),
            "row 2: '71,2' in 'P@1' is no number; write a point",
        ),
        (RUNS.replace("71.2", "71.2 %"), "row 2: '71.2 %' in 'P@1' is no number; write the number alone"),
        ("net,P@1\nA,50\n", "no column of words is called method, model, loss, name"),
        ("method,note\nA,x\n", "no column of numbers is a score; the columns are method, note"),
        ("method,P@1\n", "there are no rows"),
    ],
)
def test_a_bad_table_is_one_line_with_the_number_of_the_row(text, said):
    with pytest.raises(ScoresError) as caught:
        read_scores(table_of(text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_column_is_answered_with_those_that_are_there():
    with pytest.raises(ScoresError, match="there is no score 'mAP'; there are P@1"):
        read_scores(table_of(RUNS), Reading(score="mAP"))
    with pytest.raises(ScoresError, match="there is no column 'net'; the columns are method, seed, P@1"):
        read_scores(table_of(RUNS), Reading(method="net"))
