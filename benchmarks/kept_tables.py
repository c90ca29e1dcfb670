"""`python -m benchmarks.kept_tables`: draws the tables of kept records in README.md and docs/ again.

What is drawn stands on a page between the comments `KIND: NAME` and `end of KIND`. `table` is the record
`results/measured/NAME.json.xz`, `closed forms` what losses add to those of the records `closed_forms_NAME`, `panels`
the means and contrasts of several panels of one experiment side by side, `steps` the means of losses after a trial's
steps and at the end of their trainings, `calibration` a table of what was simulated, and `what decides` what conditions
change. That and the places of the panels of 2026 are figures too.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.calibration_tables import calibration_table
from benchmarks.what_decides import decides_figure, early_of, shifts, what_decides
from reports.board.board_table import places_of
from reports.board.boards import Board, Source, boards_of
from reports.figures.score_figures import rank_plot
from reports.figures.style import files_of
from reports.tables.formats import to_markdown
from reports.tables.result_table import table_of
from reports.tables.table import Cell, cell_text, measured_cell, with_notes
from results.answer.answer_question import answer_on
from results.answer.answers import Answer
from results.answer.contrasts import ContrastAnswer, contrasts_of
from results.answer.limits import length_in_words
from results.atomic_files import write_atomically
from results.findings.experiment import answer_of
from results.numbers import PERCENT, POINTS
from results.records.frame import EMBEDDING_KINDS
from results.store.experiment_results import FOLDER, MeasuredExperiment

ROOT = Path(__file__).resolve().parents[1]
SCRATCH = ("reality_check_glyphs", "reality_check_handwriting")
"""The records of networks that learn from scratch."""


def pages_with_tables() -> list[Path]:
    """Pages that show a kept record."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in pages if any(map(_is_kept, _MARKED.finditer(page.read_text(encoding="utf-8"))))]


def with_tables(text: str) -> str:
    """Return the text of a page with the tables of the records as they are now."""
    return _MARKED.sub(lambda marked: _drawn(marked) if _is_kept(marked) else marked[0], text)


def _is_kept(marked: re.Match[str]) -> bool:
    """Whether it is drawn from a kept record; other programs draw tables too."""
    return marked["kind"] != "table" or _kept(marked["what"]).exists()


def _drawn(marked: re.Match[str]) -> str:
    text = _MARKDOWN[marked["kind"]](marked["what"])
    return f"{marked['opening']}\n\n{text}\n\n<!-- end of {marked['kind']} -->"


def _table(name: str) -> str:
    return to_markdown(with_notes(table_of(answer_of(MeasuredExperiment.kept(name))), "short")).strip()


def kept_board(records: Sequence[str] = SCRATCH) -> Board:
    """The board of kept records."""
    sources = [Source(name, f"{name}.json.xz", MeasuredExperiment.kept(name)) for name in records]
    return boards_of(sources)[0][0]


def with_closed_forms(name: str) -> MeasuredExperiment:
    """The kept record of an experiment with the rows of its closed forms, which were made later."""
    losses, forms = MeasuredExperiment.kept(name), MeasuredExperiment.kept(f"closed_forms_{name}")
    plan = forms.plan.model_copy(update={"rows": {**forms.plan.rows, **losses.plan.rows}})
    return MeasuredExperiment(plan, (*forms.records, *losses.records), searches={**forms.searches, **losses.searches})


_FORMS = ("within_class_whitening", "lda", "whitened_pca")


def _closed_forms(names: str) -> str:
    """Of every record and score the closed forms, and the losses against within-class whitening."""
    lines = [
        "| data | score | within-class whitening | discriminants | whitened PCA | highest loss | it adds "
        "| losses above, open, below |",
        "|---|---|--:|--:|--:|---|--:|--:|",
    ]
    for name in names.split(", "):
        found = answer_of(with_closed_forms(name), _FORMS[0])
        for kind, metric in product(EMBEDDING_KINDS, ("precision_at_1", "map_at_r")):
            data = name.removeprefix("reality_check_").partition("_")[0]
            lines.append(f"| {data} | {' | '.join(_of_forms(answer_on(found, metric, kind)))} |")
    return "\n".join(lines)


def _of_forms(found: Answer) -> Iterator[str]:
    yield found.question.score_name
    yield from (f"{100 * found.values[key].mean:.2f}" for key in _FORMS)
    losses = [key for key in found.order if found.question.methods[key].trained]
    pairs = [found.pair(key, _FORMS[0]) for key in losses]
    yield found.titles[losses[0]]
    yield cell_text(Cell(pairs[0].difference, pairs[0].half_width, form=POINTS))
    above, below = (sum(getattr(pair, of) == pair.a for pair in pairs) for of in ("better", "worse"))
    yield f"{above}, {len(pairs) - above - below}, {below}"


def _panels(names: str) -> str:
    """A column for a record: means in the primary score, and the contrasts."""
    answers = {_data(name): answer_of(MeasuredExperiment.kept(name)) for name in names.split(", ")}
    head = [f"| Method | {' | '.join(answers)} |", f"|---|{'--:|' * len(answers)}"]
    titles, order = next(iter(answers.values())).titles, _by_mean_place(list(answers.values()))
    rows = [f"| {titles[key]} | {' | '.join(_mean(one, key) for one in answers.values())} |" for key in order]
    lines = [*head, *rows]
    contrasts = [contrasts_of(found, found.measured.plan.experiment.contrasts) for found in answers.values()]
    if asked := [one.asked.title for one in contrasts[0]]:
        lines += ["", f"| Contrast | {' | '.join(answers)} |", head[1]]
        for title, of_panels in zip(asked, zip(*contrasts, strict=True), strict=True):
            lines.append(f"| {title} | {' | '.join(map(_of_contrast, of_panels))} |")
    return "\n".join(lines)


def _steps(name: str) -> str:
    """The means of losses after a trial's steps and at the end of their trainings, with the order of the means."""
    found = answer_of(MeasuredExperiment.kept(name))
    early = early_of(found)
    losses = [key for key in found.order if found.question.methods[key].trained]
    first = sorted(losses, key=lambda key: -early.values[key].mean)
    after_trials = f"after {length_in_words(found.measured.plan.experiment.conditions.training)}"
    lines = [f"| Method | {after_trials} | order of means | to the end | order of means |", "|---|--:|--:|--:|--:|"]
    for place, key in enumerate(losses, start=1):
        before, after = (cell_text(measured_cell(one.intervals[key], PERCENT)) for one in (early, found))
        lines.append(f"| {found.titles[key]} | {before} | {first.index(key) + 1} | {after} | {place} |")
    return "\n".join(lines)


def _row(found: Answer, method: str) -> str:
    """The key of a method's row in a panel; that with four images of a class has variants."""
    return method if method in found.final_ranks else f"{method}_4"


def _mean(found: Answer, method: str) -> str:
    return cell_text(measured_cell(found.intervals[_row(found, method)], PERCENT))


def _data(name: str) -> str:
    """What a panel of 2026 is on, as its record names it."""
    return _ON[name.removeprefix("reality_check_2026_")]


def _by_mean_place(answers: Sequence[Answer]) -> list[str]:
    """The methods of all answers, those with the best mean place of their means first."""

    def place(method: str) -> int:
        means = ((found.values, _row(found, method)) for found in answers)
        return sum(sum(own.mean > values[key].mean for own in values.values()) for values, key in means)

    return sorted(answers[0].final_ranks, key=place)


def _of_contrast(one: ContrastAnswer) -> str:
    if one.untested or one.p_better is None:
        return one.untested or ""
    says = "shown" if one.shown else f"{100 * (one.smallest or 0):.1f} would have shown"
    says = f"shown {one.extent}" if one.ahead else says
    return f"{cell_text(Cell(one.difference, one.half_width, form=POINTS))} ({says})"


def ranks_of_2026() -> Figure:
    """Draw the places of the methods in the panels of 2026 that are kept."""
    found = {_data(name): answer_of(MeasuredExperiment.kept(name)) for name in _OF_2026 if _kept(name).exists()}
    titles, order = next(iter(found.values())).titles, _by_mean_place(list(found.values()))
    rows = {title: {_row(one, key): titles[key] for key in order} for title, one in found.items()}
    return rank_plot({title: places_of(one, rows[title]) for title, one in found.items()})


_ON = {
    "birds_subset": "frozen birds",
    "birds_lite2_subset": "birds, Lite2",
    "glyphs": "glyphs",
    "handwriting": "handwriting",
    "glyphs_4": "glyphs, 4 images",
}
_OF_2026 = tuple(f"reality_check_2026_{name}" for name in _ON)


def _kept(name: str) -> Path:
    return FOLDER / f"{name}.json.xz"


_MARKDOWN: dict[str, Callable[[str], str]] = {
    **{"table": _table, "closed forms": _closed_forms, "panels": _panels},
    "steps": _steps,
    "calibration": calibration_table,
    "what decides": lambda _: to_markdown(what_decides(shifts())).strip(),
}
_MARKED = re.compile(
    rf"(?P<opening><!-- (?P<kind>{'|'.join(_MARKDOWN)}): (?P<what>[^>]+) -->)\n.*?<!-- end of (?P=kind) -->",
    flags=re.DOTALL,
)


if __name__ == "__main__":
    for page in pages_with_tables():
        write_atomically(page, with_tables(page.read_text(encoding="utf-8")))
    for name, figure in (("ranks_2026", ranks_of_2026()), ("what_decides", decides_figure(shifts()))):
        write_atomically(ROOT / "docs" / "images" / f"{name}.svg", files_of(figure)["svg"])
