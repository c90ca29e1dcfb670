"""`experiments`, `methods`, `datasets`, `coverage` and `status`: what comes with the suite, and what a store holds."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, get_args

import typer

from reproduce.commands.options import STORE, StoreAt
from reproduce.errors import unknown
from reproduce.terminal import say, show_rows

_LATEST_FAILURES = 5
_RATES = "range of these rates"


def experiments() -> None:
    """List the experiments that come with the suite."""
    from reproduce.config.experiment_file import experiment_names, load_experiments

    rows = []
    for name in experiment_names():
        # A file with several panels shows the datasets of all and the largest number of methods in a panel.
        panels = list(load_experiments(name, {}).values())
        first, datasets = panels[0], ", ".join(dict.fromkeys(panel.dataset.name for panel in panels))
        counts = (max(len(panel.rows) for panel in panels), first.search.trials, first.reproductions)
        rows.append((name, first.title, first.protocol, datasets, *map(str, counts)))
    columns = ("experiment", "title", "protocol", "dataset", "methods", "trials", "reproductions")
    show_rows("experiments", columns, rows)


def methods(
    name: Annotated[str | None, typer.Argument(help="Name of a method, or path of a card, that is shown.")] = None,
) -> None:
    """List the methods, or show the card of one with its source, and what decides a fair comparison with others."""
    from protocols.training.build_method import is_taken
    from reproduce.config.method_card import card_file, card_names, read_card
    from reproduce.config.open_method import checked_card
    from results.spec.method import LOSS_LR

    if name is not None:
        card, hashed, recipe = checked_card(name)  # Fails if it cannot be used.
        words = {} if recipe is None else recipe.words()
        if rate := card.search.get(LOSS_LR):
            words[_RATES] = f"{rate.low} to {rate.high}; in the suite's cards {_rates_of_cards()}"
        facts = {f"# {what}: ": value for what, value in words.items()}
        for line in card_file(name).read_text(encoding="utf-8").rstrip("\n").splitlines():
            if not line.startswith(tuple(facts)):  # A card that began as a printed one has the facts of that one.
                say(line)
        for what, value in facts.items():
            say(f"{what}{value}")
        for source in hashed.values():
            say(f"source: {source}")
        return
    rows, refused = [], []
    for card in (read_card(card_file(known)) for known in card_names()):
        refused += [] if is_taken(card.method) else [card.key]
        loss = "-" if card.method.loss is None else card.method.loss.name
        searched = ", ".join(target.removeprefix("loss.") for target in card.search) or "-"
        rows.append((card.key, card.title, loss, str(card.method.batch.samples_per_class), searched))
    show_rows("methods", ("method", "title", "loss", "images per class", "searched"), rows, whole={"method"})
    if refused:
        say(f"refused under the installed pytorch-metric-learning: {', '.join(refused)}")
    say("`reproduce methods NAME` shows the whole card of one, or why it is refused.")


def _rates_of_cards() -> str:
    """Count the ranges in which the suite's cards search the learning rate of a loss's own parameters."""
    from reproduce.config.method_card import card_file, card_names, read_card
    from results.spec.method import LOSS_LR

    cards = [read_card(card_file(name)) for name in card_names()]
    counts = Counter(f"{rate.low} to {rate.high}" for card in cards if (rate := card.search.get(LOSS_LR)))
    return ", ".join(f"{ends} ({count})" for ends, count in counts.most_common())


def datasets() -> None:
    """List the datasets and whether they need a folder of images."""
    from protocols.datasets.dataset_registry import DATASETS
    from results.spec.data_choice import EMBEDDED

    rows = []
    for name, entry in DATASETS.items():
        counts = entry.publication
        size = (f"{counts.classes:,}", f"{counts.images:,}") if counts else ("-", "-")
        rows.append((name, entry.description, *size, "nothing" if name in EMBEDDED else "--data FOLDER"))
    columns = ("dataset", "what", "classes", "images", "needs")
    show_rows("datasets", columns, rows, right={"classes", "images"})
    for name, entry in DATASETS.items():
        if entry.publication is not None:
            say(f"{name} is from {entry.publication.page}")


def status(store: StoreAt = STORE) -> None:
    """List the contents of the store: experiments, trainings, test evaluations, failures."""
    from reproduce.storage import opened_store
    from results.store.versions import versions
    from results.wording import counted

    opened = opened_store(store)
    starts, failures = opened.starts(), opened.table("failures")
    say(
        f"{opened.url}: {counted(len(starts), 'experiment')}, {counted(opened.count('trainings'), 'training')}, "
        f"{counted(opened.count('runs'), 'test evaluation')}, {counted(len(failures), 'failure')}",
    )
    if starts:
        columns = ("experiment", "identity", "methods", "searches x trials", "last started", "runs")
        started = [
            (one.name, one.identity, ", ".join(one.plan.rows), one.budget, one.last_started[:19], str(one.runs))
            for one in starts
        ]
        show_rows("experiments, the latest first", columns, started, whole={"identity"})
        say("Commands take an identity in place of a name, which means its latest finished experiment.")
    if trained := versions(opened.database):
        rows = [
            (one.method, one.source, str(one.trainings), one.last[:19], ", ".join(one.experiments) or "-")
            for one in trained
        ]
        heads = ("method", "class with the hash of its source", "trainings", "last trained", "in the tables of")
        show_rows("versions of your own classes, the latest first", heads, rows, right={"trainings"})
    for failure in failures.tail(_LATEST_FAILURES).itertuples():
        say(f"failure at {str(failure.at)[:19]}: {failure.reason}")


def coverage(
    table: Annotated[str | None, typer.Argument(help="A published table, to see each of its rows.")] = None,
) -> None:
    """Count the rows of every published table by whether this suite can reproduce them.

    A row counts once for each dataset of its table. `not runnable` are rows that a paper measured, but whose settings
    cannot be determined. A quoted row was measured in another paper, so no run under this paper's conditions
    reproduces it. Most rows of methods that are not in the suite are quoted too.
    """
    from results.published.tables import Reproducibility, covered_rows, published_tables

    if table is not None and table not in published_tables():
        raise unknown(f"no published table {table!r}", table, published_tables(), "table")
    if table is not None:
        lines = []
        for row in covered_rows(table):
            reading = f" (our reading: {row.origin.our_reading})" if row.origin.our_reading else ""
            lines.append((row.label, row.dataset, row.status, row.detail + reading))
        show_rows(table, ("row", "dataset", "status", "by, from, or why not"), lines)
        return
    rows = [row for name in published_tables() for row in covered_rows(name)]
    statuses = get_args(Reproducibility)
    counts = Counter((name, row.status) for row in rows for name in (row.table, "all"))
    sums = [(name, *(str(counts[name, status]) for status in statuses)) for name in (*published_tables(), "all")]
    title = "published rows, counted once for each dataset"
    show_rows(title, ("table", *statuses), sums, right=set(statuses))
    for reason in dict.fromkeys(f"{r.table}, {r.label}: {r.detail}" for r in rows if r.status == "not runnable"):
        say(f"- not runnable: {reason}")
    say("`reproduce coverage TABLE` lists the rows of one table.")
