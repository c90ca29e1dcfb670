"""`table`, `claims` and `board`: tables of one experiment, of papers' claims, and of several datasets."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reproduce.commands.options import STORE, Format, StoreAt
from reproduce.errors import InputError, read_text, unknown
from reproduce.storage import existing_store, latest_name, opened_store
from reproduce.terminal import print_table, say

if TYPE_CHECKING:
    from reports.published.eligibility import StoredExperiment
    from reports.tables.table import Table
    from results.findings.experiment import ExperimentAnswer
    from results.published.claims import Claim
    from results.store.experiment_results import MeasuredExperiment


def table(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A published table, which is drawn beside your own runs, name or identity of an experiment in the "
            "store, or a record (.json, .json.xz). NAME/PANEL selects one panel. Without a name, all are listed."
        ),
    ] = None,
    output: Format = "terminal",
    what: Annotated[
        Literal[
            "published",
            "results",
            "differences",
            "holds",
            "sentences",
            "peeking",
            "hyperparameters",
            "costs",
        ]
        | None,
        typer.Option(
            "--what",
            help="Kind of table. published: a paper's table beside your own runs; others: tables of an experiment. "
            "holds: each verdict under other conditions. "
            "sentences: a sentence for a paper on each pair, in LaTeX with --format latex. "
            "Default: published for the name of a published table, results for an experiment.",
        ),
    ] = None,
    notes: Annotated[
        Literal["short", "all", "none"] | None,
        typer.Option(
            "--notes", help="Notes below the table; short: what a reader must know. By default short in LaTeX."
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option("--compare", help="Compare all pairs (all), each with the best, or each with this one."),
    ] = None,
    columns: Annotated[
        str, typer.Option("--columns", help="Only these columns, by heading or group: concatenated, or P@1,MAP@R.")
    ] = "",
    rows: Annotated[str, typer.Option("--rows", help="Only these methods and their pairs, separated by commas.")] = "",
    store: StoreAt = STORE,
) -> None:
    """Draw a published table beside your own runs, or a table of an experiment in the store.

    A name means the latest finished experiment of this name; `reproduce status` lists the identities of all. An
    experiment with several panels gets one table per panel.
    """
    from results.published.tables import published_tables

    if what == "sentences" and (columns or output not in ("terminal", "latex")):
        raise InputError(
            "sentences are text, in LaTeX with --format latex: leave out --columns and other formats; "
            "--rows A,B takes the pair of two methods"
        )
    published = published_tables()
    if name is None:
        opened = existing_store(store)
        stored = [] if opened is None else sorted(opened.latest_experiments())
        say(f"published tables: {', '.join(published)}")
        say(f"experiments in the store: {', '.join(stored) or 'none'}")
        say("`reproduce table NAME` draws a table.")
    elif what == "published" or (what is None and name in published):
        _show(_published(name, store), output, notes, columns, rows)
    else:
        for label, measured in _measured(name, store, f"published tables ({', '.join(published)})"):
            if output == "json" and what in (None, "results") and not (compare or columns or rows):
                sys.stdout.write(measured.without_trainings().to_json())
            elif what == "sentences":
                _say_sentences(_answer(measured, compare, rows, of_pairs=True), latex=output == "latex")
            else:
                kind = what or "results"
                found = _answer(measured, compare, rows, of_pairs=kind in ("differences", "holds"))
                drawn = _table(found, kind, output, said=bool(compare or rows))
                labelled = replace(drawn, label=f"{label} {kind} {compare or ''} {rows}")
                _show(labelled, output, notes, columns, "")


def _answer(measured: MeasuredExperiment, compare: str | None, rows: str, *, of_pairs: bool) -> ExperimentAnswer:
    """Answer what an experiment asks, or `compare`; about these rows alone, if there are any, by key or title."""
    from reproduce.outputs.tables import compared_by

    found = compared_by(measured, compare)
    names = {name.casefold(): key for key, title in found.titles.items() for name in (title, key)}
    asked = [one.strip() for one in rows.split(",") if one.strip()]
    if unknown_ones := [one for one in asked if one.casefold() not in names]:
        raise InputError(f"no row {unknown_ones[0]!r}; there are {', '.join(found.titles.values())}")
    if of_pairs and len(asked) == 1:
        raise InputError(f"--rows {rows}: a pair takes two methods; --compare {rows} takes all pairs of one")
    return found.about({names[one.casefold()] for one in asked}) if asked else found


def _say_sentences(found: ExperimentAnswer, *, latex: bool) -> None:
    from reports.sentences import sentences

    for line in sentences(found, latex=latex):
        sys.stdout.write(f"{line}\n")


def _show(table: Table, output: str, notes: str | None, columns: str, rows: str) -> None:
    from reports.tables.table import chosen, with_notes

    table = with_notes(table, notes or ("short" if output == "latex" else "all"))
    if columns or rows:
        named = ([one.strip() for one in text.split(",") if one.strip()] for text in (columns, rows))
        try:
            table = chosen(table, *named)
        except ValueError as error:
            raise InputError(f"{table.title}: {error}") from error
    print_table(table, output)


def _published(name: str, store_location: str) -> Table:
    from reports.published.join import join, published_layout
    from reproduce.outputs.tables import stored_experiments
    from results.published.tables import published_table, published_tables

    if name not in published_tables():
        raise unknown(f"no published table {name!r}", name, published_tables(), "table")
    table, store = published_table(name), existing_store(store_location)
    if store is None:
        typer.echo(f"{store_location}: there is no store yet, so the table has no runs", err=True)
    return published_layout(join(table, [] if store is None else stored_experiments(store, table)))


def _measured(name: str, store_location: str, published: str) -> Iterator[tuple[str, MeasuredExperiment]]:
    """Yield the experiments of a name, each with the beginning of its tables' labels, its name."""
    from reproduce.outputs.find_runs import find_experiments, later_starts
    from reproduce.outputs.tables import RECORD, named_sources
    from results.store.experiment_results import MeasuredExperiment

    if name.endswith(RECORD):
        yield from ((source.name, source.measured) for source in named_sources(None, [name]))
        return
    store = opened_store(store_location, hint=f"; {published} need none")
    found = find_experiments(store, [name], f"; there are also {published}")
    if not any(one.fingerprint.startswith(name) for one in found):
        for line in later_starts(store, found):
            typer.echo(line, err=True)
    for experiment in found:
        yield latest_name(experiment.name), MeasuredExperiment.from_store(store, experiment.fingerprint, trainings=True)


def _table(found: ExperimentAnswer, kind: str, output: str, *, said: bool) -> Table:
    """Draw a table; `said` prints the answer in words before it."""
    from reports.headline import comparison_lines, headline
    from reports.tables.holds import what_stands
    from reproduce.outputs.tables import KINDS, WHY_EMPTY

    if said and output == "terminal":
        for line in filter(None, (headline(found), *comparison_lines(found), what_stands(found))):
            say(line)
    drawn = KINDS[kind](found)
    if kind in WHY_EMPTY and not drawn.rows:
        early = kind == "holds" and found.interim
        why = "searches or runs are missing, so there is no verdict yet" if early else WHY_EMPTY[kind]
        raise InputError(" ".join((f"{found.question.title}: {why}.", *drawn.notes)).rstrip("."))
    if kind == "differences" and not drawn.rows and output in ("latex", "markdown"):
        raise InputError(f"{found.question.title}: fewer than two methods are compared, so there is no table of pairs")
    return drawn


def claims(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A CSV file of claims; docs/papers.md explains its columns. Without a file, the main claims of the "
            "papers."
        ),
    ] = None,
    output: Format = "terminal",
    any_dataset: Annotated[
        bool,
        typer.Option("--any-dataset", help="Let runs on other datasets answer where a claim's own was not run."),
    ] = False,
    store: StoreAt = STORE,
) -> None:
    """Judge claims that one method is better than another, by the printed numbers and by the runs in the store.

    Print alone tells whether a difference is larger than the noise of the runs behind it. Runs answer holds or
    contradicted under the claim's conditions; under others seen here too, not seen here or the other way here; else
    cannot tell, not compared or not run.
    """
    from reports.published.claims import answer_claims, claims_table
    from reproduce.config.method_card import card_names, suite_cards
    from reproduce.outputs.tables import kept_experiments, stored_experiments
    from results.published.claims import key_by_print, read_claims, shipped_claims

    titles = {key: card.title for key, card in suite_cards(card_names()).items()}
    read = shipped_claims() if file is None else read_claims(read_text(file), str(file), key_by_print(titles))
    opened = existing_store(store)
    stored = kept_experiments() if opened is None else stored_experiments(opened)
    if opened is None:
        own = "so the suite's own records in results/measured answer"
        none = "and an installed package has no records of the suite's own, so print alone is judged"
        typer.echo(f"{store}: there is no store yet, {own if stored else none}", err=True)
    _warn_of_names(read, stored)
    title = "Claims" if file else "Main claims of the papers"
    print_table(claims_table(answer_claims(read, stored, any_dataset), title), output)


def _warn_of_names(read: Iterable[Claim], stored: Iterable[StoredExperiment]) -> None:
    """Say which names are neither in the suite nor in the store, since a misspelled name is never run."""
    from reproduce.config.method_card import card_names
    from results.published.tables import DATASETS, read_published

    run = {record.method for one in stored for record in one.measured.records}
    methods = {*card_names(), *read_published("cells")["key"], *run}
    datasets = {*DATASETS.values(), *(one.dataset for one in stored)}
    named = [("method", name, methods) for claim in read for name in (claim.a, claim.b)]
    named += [("dataset", claim.dataset, datasets) for claim in read]
    for kind, name in dict.fromkeys((kind, name) for kind, name, known in named if name not in known):
        typer.echo(f"no {kind} is called {name!r}; `reproduce {kind}s` lists the names", err=True)


def board(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names or identities of experiments in the store, or files that `table NAME --format json` wrote. "
            "Default: the latest finished experiment of each dataset."
        ),
    ] = None,
    compare: Annotated[
        str,
        typer.Option(
            "--compare", help="all pairs, the method with the best mean rank with each other one (best), or NAME."
        ),
    ] = "all",
    output: Format = "terminal",
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the page and the table in every format into this folder.")
    ] = None,
    store: StoreAt = STORE,
) -> None:
    """Draw what several datasets say together: each difference on each dataset, and whether it is the same on all.

    The ranking comes first. Experiments under unlike conditions stand on separate boards. In another format than that
    of the terminal the table of pairs is printed.
    """
    from reports.board.board_table import headline, pairs_table, ranking_table
    from reports.board.boards import boards_of
    from reproduce.outputs.tables import latest_sources, named_sources, write_board

    opened = existing_store(store)
    asked = named_sources(opened, name) if name else latest_sources(opened)
    lacking = [
        f"{one.name} ({one.place}) is not drawn: searches or runs are missing; finish it with `reproduce run`"
        for one in asked
        if one.answer.interim
    ]
    sources = [one for one in asked if not one.answer.interim]
    drawn = [one for one in sources if compare in one.trained] or sources
    without = [] if drawn is sources else [one for one in sources if compare not in one.trained]
    lacking += [f"{one.name} ({one.place}) is not drawn: it has no {compare}" for one in without]
    boards, left_out = boards_of(drawn)
    for line in (*lacking, *left_out):
        typer.echo(line, err=True)
    if not boards:
        raise InputError("no two datasets can stand on one board; run an experiment on a second one, or import one")
    for one in boards:
        if compare not in ("all", "best", *one.methods):
            methods = ", ".join(one.methods)
            raise InputError(f"--compare {compare}: is not on all datasets; use all, best, or one of {methods}")
        if compare == "best" and len(one.best) > 1:
            raise InputError(f"--compare best: {', '.join(one.best)} are tied, so none is the best; name one of them")
    for number, one in enumerate(boards, start=1):
        if to is None:
            if output == "terminal":
                say(headline(one))
                print_table(ranking_table(one, with_headline=False), output)
            print_table(pairs_table(one, compare, decided=output == "terminal" and compare == "all"), output)
        else:
            from reproduce.outputs.page import drawn_line  # Imports what draws figures.

            folder = to / f"board_{number}" if len(boards) > 1 else to
            page, *files = write_board(one, compare, folder, drawn_line())
            datasets = ", ".join(dataset.title for dataset in one.datasets)
            say(f"{datasets}: {page}; beside it {', '.join(file.name for file in files)}")
