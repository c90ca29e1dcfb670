"""Tables for the terminal; what is only drawn needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from reports.drawing import Cell, Column, Drawing, Mark
from reproduce.forecast import in_words
from results.store import Store

if TYPE_CHECKING:
    from protocols.datasets.registry import DatasetEntry
    from reproduce.cards import MethodCard
    from reproduce.experiment import Experiment
    from reproduce.planning import MethodPlan, Rates
    from reproduce.session import Session

_SIGNS: dict[Mark, str] = {"best": "**", "tied": "*"}
_HEADS = 32
"""Columns of the console that rows' heads are given at most, where there are too many columns."""


def show_drawing(drawing: Drawing, console: Console) -> None:
    """A drawn table; one that is too wide for the console comes in parts that are not, each with the rows' heads."""
    for columns in _parts(drawing, console.width):
        drawn = Table(title=escape(drawing.title))
        # Long heads are broken over lines, numbers never.
        drawn.add_column(escape(drawing.first), overflow="fold")
        if drawing.has_line_names:
            drawn.add_column("", no_wrap=True)
        for place in columns:
            column = drawing.columns[place]
            drawn.add_column(
                escape(_title(column)), justify="right" if column.numeric else "left", no_wrap=column.numeric
            )
        for row in drawing.rows:
            for line in row.lines:
                head = escape(row.head) if line is row.lines[0] else ""
                names = [escape(line.name)] if drawing.has_line_names else []
                cells = [_cell_text(line.cells[place], styled=console.is_terminal) for place in columns]
                drawn.add_row(head, *names, *cells, end_section=line is row.lines[-1] and len(row.lines) > 1)
        console.print(drawn)
    for note in (drawing.caption, drawing.legend, *drawing.notes, *drawing.remarks):
        if note:
            console.print(note, highlight=False, markup=False)


def _parts(drawing: Drawing, width: int) -> list[list[int]]:
    """The columns' places in as many parts as fit beside the rows' heads; groups of columns are kept whole if they fit.

    A drawing without columns has one empty part.
    """
    whole = width - _heads_width(drawing)
    parts: list[list[int]] = [[]]
    room, places = whole, iter(range(len(drawing.columns)))
    for _, count in drawing.groups:
        group = [next(places) for _ in range(count)]
        wide = sum(_width(drawing, place) for place in group)
        pieces = [group] if wide <= whole else [[place] for place in group]
        for piece in pieces:
            needed = sum(_width(drawing, place) for place in piece)
            if needed > room and parts[-1]:
                parts.append([])
                room = whole
            parts[-1] += piece
            room -= needed
    return parts


def _heads_width(drawing: Drawing) -> int:
    """Of what stands before the columns: long heads are broken over lines, names of lines are not."""
    names = [len(line.name) for row in drawing.rows for line in row.lines] if drawing.has_line_names else []
    heads = [len(drawing.first), *(len(row.head) for row in drawing.rows)]
    return 4 + min(_HEADS, max(heads)) + (3 + max(names) if names else 0)


def _width(drawing: Drawing, place: int) -> int:
    """Of a column, with the lines and spaces beside it."""
    cells = [_shown(line.cells[place]) for row in drawing.rows for line in row.lines]
    return 3 + max(len(text) for text in (*_title(drawing.columns[place]).splitlines(), *cells))


def _title(column: Column) -> str:
    """Narrow: a word on each line."""
    return "\n".join([*column.group.split(), *column.name.split()])


def _shown(cell: Cell) -> str:
    """A cell's text as wide as it can get: with the signs that marks have where there is no bold and no italic."""
    sign = _SIGNS.get(cell.mark, "") if cell.text else ""
    text = f"{sign}{cell.text.replace('± ', '±')}{'?' if cell.mark == 'untested' else sign}"
    return " ".join(part for part in (text, cell.aside) if part)


def _cell_text(cell: Cell, *, styled: bool) -> Text:
    if not styled or cell.mark not in _SIGNS:
        return Text(_shown(cell))
    return Text(_shown(replace(cell, mark="")), style={"best": "bold", "tied": "italic"}[cell.mark])


def show_table_names(published: Sequence[str], stored: Sequence[str], console: Console) -> None:
    """What `table` can draw."""
    console.print(f"published tables: {', '.join(published)}", highlight=False)
    console.print(f"experiments in the store: {', '.join(stored) or 'none'}", highlight=False)
    console.print("`reproduce table NAME` draws one of them.", highlight=False)


def show_plan(
    plans: Sequence[MethodPlan], rates: Rates | str, workers: int, session: Session, console: Console
) -> None:
    """What would be trained, what is there, and the time left: measured where the store knows, bounds otherwise.

    rates: or why there are none.
    """
    drawn = Table(title=f"{session.name}: {session.experiment.title}")
    for name in ("method", "trainings", "in store", "to do", "iterations each", "each", "time left"):
        drawn.add_column(name, justify="left" if name == "method" else "right")
    least, most = 0.0, 0.0
    for each in plans:
        to_do = each.trainings - each.in_store
        bounds = _seconds(each, rates)
        left = "?"
        if bounds is not None:
            least, most = least + to_do * bounds[0] / workers, most + to_do * bounds[1] / workers
            left = _between(*(in_words(to_do * bound / workers) for bound in bounds))
        drawn.add_row(
            each.title,
            str(each.trainings),
            str(each.in_store),
            str(to_do),
            _between(f"{each.shortest.iterations:,}", f"{each.longest.iterations:,}"),
            "?" if bounds is None else _between(*(in_words(bound) for bound in bounds)),
            "-" if to_do == 0 else left,
        )
    console.print(drawn)
    done, trainings = sum(each.in_store for each in plans), sum(each.trainings for each in plans)
    if isinstance(rates, str):
        console.print(f"{trainings} trainings, {done} in the store; no times: {rates}; give --rate", highlight=False)
        return
    left = _between(in_words(least), in_words(most))
    console.print(f"{trainings} trainings, {done} in the store; {left} left, {workers} at a time", highlight=False)
    console.print(
        f"{rates.training:.1f} images a second in training, {rates.evaluation:.1f} in evaluation, {rates.source}; "
        "early stopping decides how long a training is",
        highlight=False,
    )


def _seconds(plan: MethodPlan, rates: Rates | str) -> tuple[float, float] | None:
    """Bounds of a training's duration; one value twice where it was measured; None if nothing is known."""
    if plan.seconds_each is not None:
        return plan.seconds_each, plan.seconds_each
    return None if isinstance(rates, str) else (plan.shortest.seconds(rates), plan.longest.seconds(rates))


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def show_status(store: Store, console: Console) -> None:
    """What is in a store."""
    experiments, folds, runs, failures = store.experiments(), store.folds(), store.runs(), store.failures()
    console.print(
        f"{store.url}: {len(experiments)} experiment(s), {len(folds)} training(s), {len(runs)} test evaluation(s), "
        f"{len(failures)} failure(s)",
        highlight=False,
        soft_wrap=True,
    )
    if len(experiments):
        drawn = Table(title="experiments, the latest first")
        for name in ("experiment", "id", "last started", "runs"):
            drawn.add_column(name)
        for row in experiments.itertuples():
            count = len(store.experiment_runs(str(row.fingerprint)))
            drawn.add_row(str(row.name), str(row.fingerprint)[:12], str(row.last_started)[:19], str(count))
        console.print(drawn)
    if len(folds):
        drawn = Table(title="trainings")
        for name in ("dataset", "method", "trainings", "diverged", "best validation MAP@R", "hours"):
            drawn.add_column(name)
        for (dataset, method), group in folds.groupby(["dataset", "method"]):
            drawn.add_row(
                str(dataset),
                str(method),
                str(len(group)),
                str(int((group["status"] == "nan").sum())),
                f"{group['best_map_at_r'].max():.4f}",
                f"{group['wall_time'].sum() / 3600:.2f}",
            )
        console.print(drawn)
    for row in failures.tail(5).itertuples():
        console.print(f"failure at {str(row.at)[:19]}: {row.reason}", highlight=False)


def show_cards(cards: Sequence[MethodCard], console: Console) -> None:
    """The methods, one line each."""
    drawn = Table(title="methods")
    for name in ("method", "title", "loss", "images per class", "searched"):
        drawn.add_column(name)
    for card in cards:
        loss = "-" if card.loss is None else card.loss.name
        searched = ", ".join(target.removeprefix("loss.") for target in card.search) or "-"
        drawn.add_row(card.key, card.title, loss, str(card.batch.samples_per_class), searched)
    console.print(drawn)
    console.print("`reproduce methods NAME` shows one of them whole.")


def show_card(card: MethodCard, console: Console) -> None:
    """One card, as a card file would say it."""
    content = card.model_dump(mode="json", exclude_defaults=True)
    console.print(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100), highlight=False, end="")


def show_datasets(datasets: Mapping[str, DatasetEntry], console: Console) -> None:
    """The datasets, one line each."""
    drawn = Table(title="datasets")
    for name in ("dataset", "what", "classes", "images", "needs"):
        drawn.add_column(name, justify="right" if name in ("classes", "images") else "left")
    for name, entry in datasets.items():
        counts = entry.publication.counts if entry.publication else None
        size = (f"{counts.classes:,}", f"{counts.images:,}") if counts else ("-", "-")
        drawn.add_row(name, entry.description, *size, "--data FOLDER" if entry.needs_root else "nothing")
    console.print(drawn)
    console.print("`reproduce data fetch NAME --to FOLDER` gets one, or says from whom to get it.", highlight=False)


def show_experiments(files: Mapping[str, Mapping[str, Experiment]], console: Console) -> None:
    """The experiment files, one line each; one with several panels says how many datasets it covers."""
    drawn = Table(title="experiments")
    for name in ("experiment", "title", "protocol", "dataset", "methods", "trials", "reproductions"):
        drawn.add_column(name)
    for name, panels in files.items():
        first = next(iter(panels.values()))
        drawn.add_row(
            name,
            first.title,
            first.protocol,
            ", ".join(dict.fromkeys(each.dataset.name for each in panels.values())),
            str(max(len(each.methods) + len(each.variants) for each in panels.values())),
            str(first.search.trials),
            str(first.reproductions),
        )
    console.print(drawn)
