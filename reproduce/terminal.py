"""Tables for the terminal; what is only drawn needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.table import Table

from reports.tables import METRICS, VARIANTS, ResultTable
from reproduce.forecast import in_words
from results.intervals import Interval
from results.store import Store

if TYPE_CHECKING:
    from protocols.datasets.registry import DatasetEntry
    from reproduce.cards import MethodCard
    from reproduce.experiment import Experiment
    from reproduce.planning import MethodPlan, Rates
    from reproduce.session import Session


def show_table(table: ResultTable, console: Console) -> None:
    """A result table; percentages with 95 % intervals."""
    drawn = Table(title=table.title, caption=table.caption, caption_justify="left")
    # Long titles are broken over lines, numbers never.
    drawn.add_column("method", overflow="fold")
    drawn.add_column("n", justify="right", no_wrap=True, min_width=2)
    for variant in VARIANTS:
        for name in METRICS.values():
            drawn.add_column(f"{variant}\n{name}", justify="right", no_wrap=True)
    for row in table.rows:
        cells = [_percent(row.cells[variant, metric]) for variant in VARIANTS for metric in METRICS]
        drawn.add_row(row.title + ("*" if row.notes else ""), str(row.n), *cells)
    console.print(drawn)
    for note in table.notes:
        console.print(note, highlight=False)


def _percent(cell: Interval) -> str:
    mean = f"{100 * cell.mean:.2f}"
    return mean if cell.half_width is None else f"{mean} ±{100 * cell.half_width:.2f}"


def show_plan(plans: Sequence[MethodPlan], rates: Rates, workers: int, session: Session, console: Console) -> None:
    """What would be trained, what is there, and the time left: measured where the store knows, at most otherwise."""
    drawn = Table(title=f"{session.name}: {session.experiment.title}")
    for name in ("method", "trainings", "in store", "to do", "iterations each", "each", "time left"):
        drawn.add_column(name, justify="left" if name == "method" else "right")
    total, known = 0.0, True
    for each in plans:
        to_do = each.trainings - each.in_store
        seconds = each.longest(rates) if each.seconds_each is None else each.seconds_each
        known &= each.seconds_each is not None or to_do == 0
        total += to_do * seconds / workers
        bound = "" if each.seconds_each is not None else "at most "
        drawn.add_row(
            each.title,
            str(each.trainings),
            str(each.in_store),
            str(to_do),
            f"<= {each.iterations:,}" if each.iterations else "-",
            bound + in_words(seconds),
            "-" if to_do == 0 else bound + in_words(to_do * seconds / workers),
        )
    console.print(drawn)
    done, trainings = sum(each.in_store for each in plans), sum(each.trainings for each in plans)
    bound = "about" if known else "at most"
    console.print(f"{trainings} trainings, {done} in the store; {bound} {in_words(total)} left, {workers} at a time")
    console.print(
        f"{rates.training:.1f} images a second in training, {rates.evaluation:.1f} in evaluation, {rates.source}; "
        "early stopping ends most trainings before the longest",
        highlight=False,
    )


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
