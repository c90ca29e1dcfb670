"""Tables for the terminal."""

from collections.abc import Mapping, Sequence

import yaml
from rich.console import Console
from rich.table import Table

from protocols.datasets.registry import DatasetEntry
from reports.tables import METRICS, VARIANTS, ResultTable
from reproduce.cards import MethodCard
from reproduce.experiment import Experiment
from reproduce.forecast import in_words
from reproduce.planning import MethodPlan, Pricing
from reproduce.session import Session
from results.intervals import Interval
from results.store import Store


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


def show_plan(
    plans: Sequence[MethodPlan], pricing: Pricing | None, workers: int, session: Session, console: Console
) -> None:
    """What would be trained, what is there, and the time left: measured where the store knows, at most otherwise."""
    drawn = Table(title=f"{session.experiment.title}: trainings")
    for name in ("method", "trainings", "in store", "to do", "each", "time left"):
        drawn.add_column(name, justify="left" if name == "method" else "right")
    total, known = 0.0, True
    for each in plans:
        to_do = each.trainings - each.in_store
        seconds = each.seconds_each if each.seconds_each is not None else _longest(each, pricing)
        known &= each.seconds_each is not None or to_do == 0
        total += to_do * seconds / workers
        bound = "" if each.seconds_each is not None else "at most "
        drawn.add_row(
            each.title,
            str(each.trainings),
            str(each.in_store),
            str(to_do),
            bound + in_words(seconds),
            "-" if to_do == 0 else bound + in_words(to_do * seconds / workers),
        )
    console.print(drawn)
    done, trainings = sum(each.in_store for each in plans), sum(each.trainings for each in plans)
    bound = "about" if known else "at most"
    console.print(f"{trainings} trainings, {done} in the store; {bound} {in_words(total)} left, {workers} at a time")
    if pricing:
        console.print(
            f"measured now on the first fold: {1000 * pricing.per_iteration:.1f} ms per iteration, "
            f"{pricing.per_validation:.2f} s per validation; early stopping ends most trainings before the longest",
            highlight=False,
        )


def _longest(plan: MethodPlan, pricing: Pricing | None) -> float:
    """Seconds that a training of the method can take; the untrained trunk is only validated."""
    if pricing is None:
        return 0.0
    return pricing.longest if plan.trains else pricing.per_validation


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


def show_experiments(experiments: Mapping[str, Experiment], console: Console) -> None:
    """The experiments, one line each."""
    drawn = Table(title="experiments")
    for name in ("experiment", "title", "dataset", "methods", "trials", "reproductions"):
        drawn.add_column(name)
    for name, each in experiments.items():
        drawn.add_row(
            name,
            each.title,
            each.dataset.name,
            str(len(each.methods)),
            str(each.search.trials),
            str(each.reproductions),
        )
    console.print(drawn)
