"""Result tables: numbers, missing rows, notes, and the three formats."""

import io
import math
from dataclasses import replace

import pandas as pd
import pytest

from reports.tables.formats import to_csv, to_latex, to_markdown
from reports.tables.result_table import RESULT_COLUMNS, score_title, table_of
from reports.tables.table import cell_text, with_notes
from results.findings.experiment import answer_of
from results.records.frame import EMBEDDING_KINDS
from results.records.records import Event
from results.store.experiment_results import MeasuredExperiment
from tests.support.published_world import MLRC
from tests.support.sample_records import scores, some_plan, some_run

TITLES = {"untrained": "Untrained trunk", "triplet": "Triplet", "cosface": "CosFace"}
SEPARATED = (0.50, 0.54, 0.61)


def records():
    trained = [some_run("triplet", run, value) for run, value in enumerate(SEPARATED)]
    return [*trained, some_run("untrained", 0, 0.31, hyperparameters={}, dimensions=1280)]


def table(given=None, **changes):
    plan = some_plan(**{"methods": TITLES, "title": "A test", "trials": 50, **changes})
    return table_of(answer_of(MeasuredExperiment(plan, tuple(records() if given is None else given))))


def measured_of(given):
    return MeasuredExperiment(some_plan(methods=TITLES, title="A test", trials=50), tuple(given))


def cell_of(of, key, kind, metric):
    return of.row(key)[score_title(kind, metric)]


def cells_beside(of, key):
    """The cells of a row in the columns of scores that not every table has."""
    beside = [column.title for column in of.columns if column.group not in ("", *EMBEDDING_KINDS)]
    return [of.row(key)[title] for title in beside]


def test_means_and_intervals_are_those_computed_by_hand():
    cell = cell_of(table(), "triplet", "separated", "precision_at_1")
    # mean = 0.55; deviations -0.05, -0.01, 0.06; s^2 = 0.0062 / 2; half width = 4.3026527 * s / sqrt(3)
    assert cell.value == pytest.approx(0.55)
    assert cell.half_width == pytest.approx(4.302652729911275 * math.sqrt(0.0031) / math.sqrt(3))
    assert cell_of(table(), "triplet", "concatenated", "map_at_r").value == pytest.approx(0.65 / 4)
    assert cell_of(table(), "triplet", "separated", "r_precision").value == pytest.approx(0.55 / 2)


def test_rows_that_are_not_compared_for_one_reason_share_a_note():
    notes = table(defaults={"triplet": "a", "untrained": "b"}, methods={"triplet": "A", "untrained": "B"}).notes
    assert any(note.startswith("§ A, B (1280-dim): The card's own settings") for note in notes)


def test_a_table_without_any_run_says_so():
    empty = table(given=[])
    assert empty.rows == ()
    assert "The store has no run of this experiment." in to_markdown(empty)
    assert len(to_csv(empty).splitlines()) == 1


def test_one_run_has_no_interval_anywhere():
    single = table(given=records()[:1], methods={"triplet": "Triplet"})
    assert cell_of(single, "triplet", "separated", "map_at_r").half_width is None
    lines = [line for line in to_markdown(single).splitlines() if line.startswith("| Triplet")]
    assert len(lines) == 1
    assert "| 50.00 | 25.00 | 12.50 | 60.00 | 30.00 | 15.00 |" in lines[0]
    assert "$50.00$ & $25.00$ &" in to_latex(replace(single, in_latex=()))
    frame = pd.read_csv(io.StringIO(to_csv(single)))
    assert frame["ci95_half_width"].isna().all()
    assert (frame["n"] == 1).all()


def test_other_dimensions_than_the_trained_ones_are_told():
    titles = {row.key: row.head for row in table().rows}
    assert titles == {"untrained": "Untrained trunk (1280-dim)", "triplet": "Triplet"}
    assert "mean of 4 128-dim models; concatenated: their 512-dim ensemble. Base seed 0." in " ".join(table().remarks)


def cells_of(of):
    return {(row.key, *column): cell_of(of, row.key, *column) for row in of.rows for column in RESULT_COLUMNS}


def test_csv_has_twelve_digits():
    drawn = table(given=[some_run("triplet", run, value) for run, value in enumerate((1 / 3, 2 / 7, 0.1 + 0.2))])
    frame = pd.read_csv(io.StringIO(to_csv(drawn)))
    assert list(frame.columns) == [
        *("method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n", "unit", "runs"),
        *("rank_low", "rank_high"),
    ]
    read = {(r.method, r.variant, r.metric): (r.mean, r.ci95_half_width) for r in frame.itertuples()}
    shown = {key: (cell.value, cell.half_width) for key, cell in cells_of(drawn).items()}
    assert read == {key: tuple(float(f"{value:.12g}") for value in cell) for key, cell in shown.items()}
    assert set(frame["n"]) == {3}


NEAR = [some_run("cosface", run, value) for run, value in enumerate((0.51, 0.53, 0.60))]
PAIR = {"methods": {"triplet": "Triplet", "cosface": "CosFace"}, "trials": 0}


FAR = [some_run("cosface", run, value - 0.4) for run, value in enumerate(SEPARATED)]


def leaders_of(of):
    return {place for place, cell in cells_of(of).items() if cell.leads}


def test_methods_that_none_is_shown_to_be_better_than_are_bold_in_the_primary_score():
    clear = table(given=[*records()[:3], *FAR], **PAIR)
    assert leaders_of(clear) == {("triplet", "concatenated", "map_at_r")}
    assert "| 55.00 ± 9.98 |" in to_markdown(clear)
    assert "**16.25 ± 2.49**" in to_markdown(clear)
    assert r"$\mathbf{16.25 \pm 2.49}$" in to_latex(clear)
    assert "Bold: no other method is shown to be better." in to_markdown(clear)
    primary = {"metric": "precision_at_1", "embeddings": "separated"}
    named = table(given=[*records()[:3], *FAR], **PAIR, settings={**MLRC, "primary": primary}, reproductions=3)
    assert leaders_of(named) == {("triplet", "separated", "precision_at_1")}
    assert "Compared in the primary score, separated P@1: all pairs." in named.caption


def test_nothing_is_bold_while_nothing_is_claimed():
    given = [*records()[:3], *FAR]
    assert leaders_of(table(given=[*records()[:3], *NEAR], **PAIR)) == set()
    interim = table(given=given[:-1], **PAIR)
    assert leaders_of(interim) == set()
    assert "Interim: searches or runs are missing, so no value is bold." in interim.caption
    unknown = table(given=given, **{**PAIR, "trials": 5})
    assert leaders_of(unknown) == set()
    assert "How far searches of this kind vary is not known" in " ".join(unknown.notes)
    assert leaders_of(table(given=[given[0], given[3]], **PAIR, reproductions=1)) == set()
    named = table(given=given, **PAIR, settings={"primary": {"compare": "cosface"}})
    assert leaders_of(named) == set()
    assert "each method with CosFace." in named.caption
    best = table(given=given, **PAIR, settings={"primary": {"compare": "best"}})
    assert leaders_of(best) == {("triplet", "concatenated", "map_at_r")}


def repeated(last_epoch=False, searches=3, runs=2):
    """Searches with means of 50, 60 and 55 % P@1, whose runs differ little, and a trunk with one run."""
    given = [
        some_run(
            "triplet",
            run,
            mean + 0.01 * run - 0.005,
            search=search,
            fingerprint=f"{search}-{run}",
            last_epoch=scores(mean + 0.01 * run - 0.005) if last_epoch else None,
        )
        for search, mean in enumerate((0.50, 0.60, 0.55)[:searches])
        for run in range(runs)
    ]
    settings = {"search": {"trials": 10, "searches": 3}}
    planned = {"triplet": 6, "untrained": 1}
    methods = {"triplet": "Triplet", "untrained": "Untrained"}
    return table([*given, records()[-1]], settings=settings, trials=10, reproductions=2, runs=planned, methods=methods)


def test_searches_and_their_runs_are_counted_apart():
    drawn = repeated()
    assert [cell.written for cell in drawn.column("searches × runs")] == ["3 × 2", "1 run"]
    cell = cell_of(drawn, "triplet", "separated", "precision_at_1")
    # The variance of one method's three searches, raised by the factor 1.25.
    expected = 4.302652729911275 * math.sqrt(1.25 * 0.0025 / 3)
    assert (cell.value, cell.half_width) == (pytest.approx(0.55), pytest.approx(expected))
    frame = pd.read_csv(io.StringIO(to_csv(drawn))).set_index("method")
    assert set(zip(frame["n"], frame["unit"], frame["runs"], strict=True)) == {(3, "search", 6), (1, "run", 1)}
    assert "95 % interval over 3 searches" in drawn.caption
    assert "Single searches, concatenated MAP@R: Triplet 15.00, 17.50, 16.25." in drawn.notes
    assert "over n runs of the settings that one search found" in table().caption
    assert repeated(searches=2).row("triplet")["searches × runs"].written == "2 × 2"
    assert cell_of(repeated(runs=1), "triplet", "separated", "precision_at_1").half_width is None


def with_last_epoch():
    """Runs of the protocol `standard` with one model: the last epoch's scores are 0.1 below the chosen one's."""
    changes = {"protocol": "standard", "fold_fingerprints": ("f",), "chosen_by": ("a", "b")}
    return [
        some_run("triplet", run, value, last_epoch=scores(value - 0.1), **changes)
        for run, value in enumerate(SEPARATED)
    ]


def test_the_last_epoch_is_shown_beside_without_marks():
    both = [*with_last_epoch(), *(some_run("cosface", run, 0.9, last_epoch=scores(0.95)) for run in range(3))]
    drawn = table(given=both, methods={"triplet": "Triplet", "cosface": "CosFace"})
    assert [column.name for column in drawn.columns if column.group == "last epoch"] == ["P@1", "RP", "MAP@R"]
    beside = cells_beside(drawn, "triplet")
    assert [cell.value for cell in beside] == pytest.approx([0.45, 0.225, 0.1125])
    assert not any(cell.leads for row in drawn.rows for cell in cells_beside(drawn, row.key))
    assert cell_of(drawn, "triplet", "separated", "precision_at_1").value == pytest.approx(0.55)
    assert "Last epoch: the same trainings at their end, without a choice of the epoch." in drawn.remarks
    frame = pd.read_csv(io.StringIO(to_csv(drawn)))
    last = frame[(frame["method"] == "triplet") & (frame["variant"] == "last_epoch")].set_index("metric")
    assert last.loc["map_at_r", "mean"] == pytest.approx(0.1125)
    assert (last["n"] == 3).all()


def test_findings_stand_below_the_table_what_must_be_known_first():
    flagged = [*records(), some_run("cosface", 2, 0.2, events=(Event(kind="diverged", fold=1),))]
    drawn = table(given=flagged)
    found = answer_of(measured_of(flagged))
    *notes, star = drawn.notes
    assert [one.sentences for one in found.findings if one.level != "note"] == notes
    assert star.startswith("* A training diverged, ")
    assert {one.sentences for one in found.findings if one.level == "note"} <= set(drawn.remarks)
    assert drawn.notes[0].startswith("Not finished: Untrained trunk has 1 of 3 runs; CosFace has 1 of 3 runs.")
    assert "CosFace: 1 of 4 trainings diverged; the best checkpoint before that counts." in drawn.notes
    assert "\n| CosFace* | " in to_markdown(drawn)
    assert "\nCosFace{*} & " in to_latex(drawn)


def test_notes_can_be_left_out():
    assert with_notes(table(), "all") == table()
    assert (with_notes(table(), "short").notes, with_notes(table(), "short").remarks) == (table().notes, ())
    assert with_notes(table(), "none").notes == ()


OWN = "lab/my_metrics.py:spread (sha256 0123456789abcdef)"
OTHER = "lab/others.py:spread (sha256 fedcba9876543210)"


def with_metrics(*names, without=0):
    further = {"metrics_concatenated": dict.fromkeys(names, 3.5)}
    runs = [
        some_run("triplet", run, 0.5, metrics_separated=dict.fromkeys(names, 0.25 + 0.25 * run), **further)
        for run in range(2)
    ]
    return table(given=[*runs, *(some_run("cosface", run, 0.5) for run in range(without))])


def test_further_metrics_are_columns_under_short_names():
    drawn = with_metrics(OWN, "recall@2")
    titles = [f"further, {kind} {name}" for kind in ("separated", "concatenated") for name in ("spread", "R@2")]
    assert [column.title for column in drawn.columns if column.group.startswith("further")] == titles
    texts = [cell_text(drawn.row("triplet")[title]).partition(" ")[0] for title in titles]
    assert texts == ["0.375", "37.50", "3.5", "350.00"], "a share is a percentage, another number is as it is"
    assert {f"Metrics of the user: spread is {OWN}.", "Not percentages: spread."} <= set(drawn.remarks)
    frame = pd.read_csv(io.StringIO(to_csv(drawn))).set_index(["variant", "metric"])
    assert frame.loc[("separated", "spread"), "mean"] == 0.375
    assert (frame.loc[("concatenated", "recall@2"), "mean"], frame["n"].iloc[-1]) == (3.5, 2)
    alike = [column.name for column in with_metrics(OWN, OTHER).columns if column.group == "further, separated"]
    assert alike == [OWN, OTHER], "alike, so with files"


def test_a_method_without_a_metric_has_empty_cells_and_a_table_without_metrics_no_columns():
    assert all(cell.value is None for cell in cells_beside(with_metrics("nmi", without=2), "cosface"))
    assert {column.group for column in with_metrics().columns} == {"", *EMBEDDING_KINDS}
    assert not any("percentages:" in note for note in with_metrics().remarks)


def test_intervals_end_where_scores_end_and_two_searches_say_so():
    given = [
        some_run(key, run, value, fingerprint=f"{key}-{run}")
        for key, values in {"triplet": (0.40, 0.60), "cosface": (0.02, 0.03)}.items()
        for run, value in enumerate(values)
    ]
    drawn = table(given=given, **PAIR, reproductions=2, runs={"triplet": 2, "cosface": 2})
    wide, low = (cell_of(drawn, key, "separated", "precision_at_1") for key in ("triplet", "cosface"))
    assert wide.half_width > 0.5
    assert cell_text(wide) == "50.00"
    assert cell_text(low).startswith("2.50 [0.00, ")
    of = "that would reach from the lowest to the highest score"
    assert f"An interval over 2 runs {of} is not printed: Triplet" in " ".join(drawn.notes)
    assert "± half width of the 95 % interval, or [its ends] where scores end, over n runs" in drawn.caption
    assert r"$2.50\ [0.00, " in to_latex(replace(drawn, in_latex=()))
    assert "-" not in to_csv(drawn).split("\n")[1], "the file keeps the half width"


def test_the_method_that_others_are_compared_with_comes_first():
    kept = MeasuredExperiment.kept("quickstart")
    last = [*kept.plan.titles][-1]
    rows = [row.key for row in table_of(answer_of(kept, last)).rows]
    assert rows[0] == last
    assert rows[1:] == [row.key for row in table_of(answer_of(kept, "all")).rows if row.key != last]
