"""Result tables: numbers, missing rows, notes, and the three formats."""

import io
import math
import re
import shutil
import subprocess

import pandas as pd
import pytest
from scipy import stats

from reports.tables.result_table import METRICS, VARIANTS, build_table
from tests.support.sample_records import some_run
from tests.support.sound_latex import check_latex

TITLES = {"untrained": "Untrained trunk", "triplet": "Triplet", "cosface": "CosFace"}
SEPARATED = (0.50, 0.54, 0.61)


def records():
    trained = [some_run("triplet", run, value) for run, value in enumerate(SEPARATED)]
    return [*trained, some_run("untrained", 0, 0.31, hyperparameters={}, dimensions=1280)]


def table(given=None, **changes):
    settings = {"methods": TITLES, "title": "A test", "reproductions": 3, "trials": 50}
    return build_table(records() if given is None else given, **{**settings, **changes})


def row(of, key):
    return next(row for row in of.rows if row.key == key)


def test_means_and_intervals_are_those_computed_by_hand():
    cell = row(table(), "triplet").cells["separated", "precision_at_1"]
    # mean = 0.55; deviations -0.05, -0.01, 0.06; s^2 = 0.0062 / 2; half width = 4.3026527 * s / sqrt(3)
    assert cell.mean == pytest.approx(0.55)
    assert cell.half_width == pytest.approx(4.302652729911275 * math.sqrt(0.0031) / math.sqrt(3))
    assert cell.n == 3
    assert row(table(), "triplet").cells["concatenated", "map_at_r"].mean == pytest.approx(0.65 / 4)
    assert row(table(), "triplet").cells["separated", "r_precision"].mean == pytest.approx(0.55 / 2)


def test_folds_do_not_count_as_runs():
    assert row(table(), "triplet").n == 3


def test_rows_come_in_the_order_of_the_experiment():
    assert [row.key for row in table().rows] == ["untrained", "triplet"]
    assert [row.key for row in table(methods=dict(reversed(TITLES.items()))).rows] == ["triplet", "untrained"]


def test_a_method_without_runs_is_named_and_the_table_marked_partial():
    partial = table()
    assert not partial.complete
    assert partial.missing == ("CosFace was not run to the end",)
    for text in (partial.to_markdown(), partial.to_latex()):
        assert "Partial: CosFace was not run to the end." in text
    assert "cosface" not in partial.to_csv()


def test_a_method_with_some_of_its_runs_is_named_and_shown_with_those_it_has():
    partial = table(methods={"triplet": "Triplet", "untrained": "Untrained"}, runs={"triplet": 5, "untrained": 1})
    assert partial.missing == ("Triplet has 3 of 5 runs",)
    assert row(partial, "triplet").n == 3


def test_a_whole_table_is_not_marked_partial():
    whole = table(methods={"triplet": "Triplet"})
    assert whole.complete
    assert "Partial" not in whole.to_markdown() + whole.to_latex()


def test_a_table_without_any_run_says_so():
    empty = table(given=[])
    assert empty.rows == ()
    assert len(empty.missing) == 3
    assert "No run of it is in the store." in empty.to_markdown()
    assert len(empty.to_csv().splitlines()) == 1


def test_one_run_has_no_interval_anywhere():
    single = table(given=records()[:1], methods={"triplet": "Triplet"})
    assert row(single, "triplet").cells["separated", "map_at_r"].half_width is None
    lines = [line for line in single.to_markdown().splitlines() if line.startswith("| Triplet")]
    assert lines == ["| Triplet | 1 | 50.00 | 25.00 | 12.50 | 60.00 | 30.00 | 15.00 |"]
    assert r"Triplet & 1 & $50.00$ &" in single.to_latex()
    frame = pd.read_csv(io.StringIO(single.to_csv()))
    assert frame["ci95_half_width"].isna().all()
    assert (frame["n"] == 1).all()


def test_flags_are_notes_and_mark_their_row():
    flagged = [*records(), some_run("cosface", 2, 0.2, flags=("fold 1: training diverged (loss not finite)",))]
    drawn = table(given=flagged)
    assert drawn.notes == ["* CosFace: run 2, fold 1: training diverged (loss not finite)"]
    assert "| CosFace* | 1 |" in drawn.to_markdown()
    assert "| Triplet | 3 |" in drawn.to_markdown()
    assert "- * CosFace: run 2, fold 1: training diverged (loss not finite)" in drawn.to_markdown()
    assert "CosFace* & 1 &" in drawn.to_latex()


def test_other_dimensions_than_the_trained_ones_are_told():
    titles = {row.key: row.title for row in table().rows}
    assert titles == {"untrained": "Untrained trunk (1280-dim)", "triplet": "Triplet"}
    assert "mean of 4 128-dim models" in table().caption
    assert "512-dim ensemble" in table().caption


def test_the_caption_says_what_was_asked_for():
    for said in ("1498 images of 104 test classes", "3 asked for", "50 trials", "95 % Student-t", "Base seed 0"):
        assert said in table().caption


def cells_of(of):
    return {
        (row.key, variant, metric): row.cells[variant, metric]
        for row in of.rows
        for variant in VARIANTS
        for metric in METRICS
    }


def test_csv_loses_no_digit():
    drawn = table(given=[some_run("triplet", run, value) for run, value in enumerate((1 / 3, 2 / 7, 0.1 + 0.2))])
    frame = pd.read_csv(io.StringIO(drawn.to_csv()))
    assert list(frame.columns) == ["method", "variant", "metric", "dimensions", "mean", "ci95_half_width", "n"]
    read = {(r.method, r.variant, r.metric): (r.mean, r.ci95_half_width, r.n) for r in frame.itertuples()}
    assert read == {key: (cell.mean, cell.half_width, cell.n) for key, cell in cells_of(drawn).items()}


def test_csv_says_the_dimensions_of_each_variant():
    frame = pd.read_csv(io.StringIO(table().to_csv())).set_index(["method", "variant"])
    assert set(frame.loc[("triplet", "separated"), "dimensions"]) == {128}
    assert set(frame.loc[("triplet", "concatenated"), "dimensions"]) == {512}
    assert set(frame.loc[("untrained", "concatenated"), "dimensions"]) == {5120}


def markdown_frame(text: str) -> pd.DataFrame:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    head, rule, *body = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert all(set(cell) <= set("-:") for cell in rule)
    assert {len(cells) for cells in [head, rule, *body]} == {8}
    return pd.DataFrame(body, columns=head).set_index("Method")


def test_markdown_shows_percentages_of_the_cells():
    frame = markdown_frame(table().to_markdown())
    for (key, variant, metric), cell in cells_of(table()).items():
        shown = frame.loc[row(table(), key).title, f"{variant} {METRICS[metric]}"]
        numbers = [float(part) for part in shown.strip("*?").split(" ± ")]
        expected = [100 * cell.mean] if cell.half_width is None else [100 * cell.mean, 100 * cell.half_width]
        assert numbers == pytest.approx(expected, abs=0.00501)
    assert frame.loc["Triplet", "n"] == "3"


def test_a_bar_in_a_title_does_not_break_markdown():
    frame = markdown_frame(table(methods={"triplet": "Triplet | hard"}).to_markdown())
    assert list(frame.index) == [r"Triplet \| hard"]


AWKWARD = r"50 % of_A & B #1 {x} $5 ~ a^2 \hline"


def body_rows(latex: str) -> list[str]:
    inside = latex.split("\\midrule\n")[1].split("\\bottomrule")[0]
    return inside.strip().splitlines()


def test_ties_with_the_best_are_marked_and_explained():
    """Tested as scipy does: paired over the runs; p of the one comparison needs no correction."""
    near = [some_run("cosface", run, value) for run, value in enumerate((0.51, 0.53, 0.60))]
    far = [some_run("cosface", run, value - 0.2) for run, value in enumerate(SEPARATED)]
    tied = table(given=[*records()[:3], *near], methods={"triplet": "Triplet", "cosface": "CosFace"})
    assert stats.ttest_rel(SEPARATED, (0.51, 0.53, 0.60)).pvalue > 0.05
    place = ("separated", "precision_at_1")
    assert (row(tied, "triplet").marks[place], row(tied, "cosface").marks[place]) == ("best", "tied")
    assert "| Triplet | 3 | **55.00 ± 13.83** |" in tied.to_markdown()
    assert "| CosFace | 3 | *54.67 ± 11.74* |" in tied.to_markdown()
    assert r"$\mathit{54.67 \pm 11.74}$" in tied.to_latex()
    assert "Bold: the highest mean" in tied.to_markdown()
    assert "Italic: not significantly below it" in tied.to_markdown()
    clear = table(given=[*records()[:3], *far], methods={"triplet": "Triplet", "cosface": "CosFace"})
    assert row(clear, "cosface").marks.get(place, "") == ""
    assert "Italic" not in clear.to_markdown()


def test_a_method_with_too_few_runs_is_not_called_worse():
    assert row(table(), "untrained").marks["separated", "map_at_r"] == "untested"
    assert "7.75?" in table().to_markdown()
    assert "Question mark: too few runs" in table().to_markdown()


def test_a_single_method_has_nothing_to_be_better_than():
    single = table(methods={"triplet": "Triplet"})
    assert set(row(single, "triplet").marks.values()) <= {""}
    assert "Bold" not in single.to_markdown()


def test_latex_is_sound():
    check_latex(table().to_latex())


def test_latex_is_sound_for_any_title_and_note():
    awkward = [some_run("triplet", 0, 0.5, flags=(AWKWARD,)), some_run("triplet", 1, 0.6)]
    latex = table(given=awkward, methods={"triplet": AWKWARD}, title=AWKWARD).to_latex()
    check_latex(latex)
    assert r"50 \% of\_A \& B \#1 \{x\} \$5 \textasciitilde{} a\textasciicircum{}2 \textbackslash{}hline*" in latex


def test_latex_shows_the_numbers_of_markdown():
    shown = markdown_frame(table().to_markdown()).loc["Triplet"].tolist()
    line = next(line for line in body_rows(table().to_latex()) if line.startswith("Triplet"))
    cells = [cell.strip(" $").replace(r"\pm", "±") for cell in line.removesuffix(r" \\").split("&")]
    assert cells[1:] == [re.sub(r"\*\*(.*)\*\*", r"\\mathbf{\1}", cell) for cell in shown]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_latex_compiles(tmp_path):
    body = table(methods={**TITLES, "triplet": AWKWARD}).to_latex()
    head = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
    (tmp_path / "table.tex").write_text(head + body + "\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
