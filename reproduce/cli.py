"""The command line: run, plan, status, table, methods, datasets, data."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress as RichProgress

from reproduce.data import app as data_app
from reproduce.reading import InputError
from results.measured import MeasuredExperiment
from results.store import Store, StoreError

app = typer.Typer(
    name="reproduce",
    help="Deep metric learning under the protocol of A Metric Learning Reality Check: fair comparisons, tables with "
    "intervals. Start with `reproduce run quickstart`; results are kept, so any command can be stopped and repeated.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(data_app)

Name = Annotated[
    str, typer.Argument(help="Name of an experiment (`reproduce experiments` lists them), or path of a .yaml file.")
]
Data = Annotated[Path | None, typer.Option("--data", help="Folder where the dataset's images lie.")]
Subset = Annotated[bool, typer.Option("--subset", help="The folder holds a part of the published dataset on purpose.")]
Skip = Annotated[bool, typer.Option("--skip-broken-images", help="Leave out images that cannot be decoded.")]
Methods = Annotated[str | None, typer.Option("--methods", help="Methods by comma, or paths of method cards.")]
Trials = Annotated[int | None, typer.Option("--trials", help="Search trials per method.")]
Reproductions = Annotated[int | None, typer.Option("--reproductions", help="Re-trainings of the best setting.")]
Folds = Annotated[int | None, typer.Option("--folds", help="How many of the four folds to train.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Base seed; all others derive from it.")]
ImageSize = Annotated[int | None, typer.Option("--image-size", help="Crop in pixels; the resize before it scales too.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, or auto.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Trainings side by side; by default the four folds or as many as there are cores, one on a GPU.",
    ),
]
StoreAt = Annotated[str, typer.Option("--store", help="File for studies and results, or a SQLAlchemy URL.")]
Artifacts = Annotated[Path | None, typer.Option("--artifacts", help="Folder of checkpoints; beside the store.")]
Cache = Annotated[Path | None, typer.Option("--cache", help="Folder of decoded images; beside the store.")]
Tables = Annotated[Path | None, typer.Option("--tables", help="Folder the tables are written to; beside the store.")]

STORE = "runs/store.sqlite"

_INTERRUPTED = 130
"""What typer makes of Ctrl-C."""

# Typer brings its own click or takes the installed one, depending on its release.
_USAGE_ERROR: type[typer.BadParameter] = typer.BadParameter.__bases__[0]


def _console() -> Console:
    # A table needs its columns; a pipe or a log has no width of its own.
    return Console() if sys.stdout.isatty() else Console(width=140)


@app.command()
def run(
    experiment: Name,
    data: Data = None,
    subset: Subset = False,
    skip_broken_images: Skip = False,
    methods: Methods = None,
    trials: Trials = None,
    reproductions: Reproductions = None,
    folds: Folds = None,
    seed: Seed = None,
    image_size: ImageSize = None,
    device: Device = "auto",
    workers: Workers = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
    tables: Tables = None,
) -> None:
    """Run an experiment, or what is missing of it, and print its table.

    Stop it with Ctrl-C whenever you like; the same command goes on where it was.
    """
    from reproduce import running
    from reproduce.session import check_device, default_workers, places
    from reproduce.terminal import show_table

    console, started = _console(), time.perf_counter()
    _check_workers(workers)
    overrides = _overrides(data, subset, skip_broken_images, methods, trials, reproductions, folds, seed, image_size)
    chosen = check_device(device)
    session = _open(experiment, overrides, places(store, artifacts, cache, tables), console)
    finished = running.run(session, chosen, workers or default_workers(chosen), console)
    show_table(finished.table, console)
    console.print(running.ending(finished, time.perf_counter() - started), highlight=False, soft_wrap=True)


@app.command()
def plan(
    experiment: Name,
    data: Data = None,
    subset: Subset = False,
    skip_broken_images: Skip = False,
    methods: Methods = None,
    trials: Trials = None,
    reproductions: Reproductions = None,
    folds: Folds = None,
    seed: Seed = None,
    image_size: ImageSize = None,
    device: Device = "auto",
    workers: Workers = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Say what an experiment would train, how much of it is in the store, and how long the rest takes."""
    from reproduce import planning
    from reproduce.session import check_device, default_workers, open_store, open_studies, places, studies_in_one_line
    from reproduce.terminal import show_plan

    console = _console()
    _check_workers(workers)
    overrides = _overrides(data, subset, skip_broken_images, methods, trials, reproductions, folds, seed, image_size)
    chosen = check_device(device)
    session = _open(experiment, overrides, places(store, artifacts, cache, None), console)
    opened = open_store(session.places)
    with studies_in_one_line(session.places):
        plans = planning.plan(session, opened, open_studies(session.places))
    show_plan(plans, planning.price(session, chosen), workers or default_workers(chosen), session, console)


@app.command()
def status(store: StoreAt = STORE, artifacts: Artifacts = None) -> None:
    """Say what the store holds: experiments, trainings, test evaluations, failures."""
    from reproduce.terminal import show_status

    show_status(_existing_store(store, artifacts), _console())


@app.command()
def table(
    experiment: Name,
    output: Annotated[
        str, typer.Option("--format", help="terminal, markdown, csv, latex, or json: the records behind it.")
    ] = "terminal",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Draw the table of an experiment's latest run from the store."""
    from reports.tables import table_of
    from reproduce.experiment import short_name
    from reproduce.terminal import show_table

    opened = _existing_store(store, artifacts)
    known = opened.experiments()
    mine = known[known["name"] == short_name(experiment)]
    if mine.empty:
        names = ", ".join(sorted(set(known["name"]))) or "none"
        raise InputError(f"no experiment {experiment!r} in {opened.url}; it holds: {names}")
    measured = MeasuredExperiment.from_store(opened, str(mine.iloc[0]["fingerprint"]))
    drawn = table_of(measured)
    texts = {
        "markdown": drawn.to_markdown,
        "csv": drawn.to_csv,
        "latex": drawn.to_latex,
        "json": measured.to_json,
    }
    if output == "terminal":
        show_table(drawn, _console())
    elif output in texts:
        sys.stdout.write(texts[output]())
    else:
        raise InputError(f"--format {output!r}: use terminal, markdown, csv, latex or json")


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="One method, to see its card.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a card, for editors.")] = False,
) -> None:
    """List the methods, or show one with its loss, search space and source."""
    from reproduce.cards import card_names, card_schema, load_card
    from reproduce.terminal import show_card, show_cards

    if schema:
        sys.stdout.write(card_schema())
    elif name is None:
        show_cards([load_card(each) for each in card_names()], _console())
    else:
        show_card(load_card(name), _console())


@app.command()
def datasets() -> None:
    """List the datasets and what each needs."""
    from protocols.datasets.registry import DATASETS
    from reproduce.terminal import show_datasets

    show_datasets(DATASETS, _console())


@app.command()
def experiments() -> None:
    """List the experiments that come with the suite."""
    from reproduce.experiment import experiment_names, load_experiment
    from reproduce.terminal import show_experiments

    show_experiments({name: load_experiment(name, {}) for name in experiment_names()}, _console())


def _overrides(
    data: Path | None,
    subset: bool,
    skip: bool,
    methods: str | None,
    trials: int | None,
    reproductions: int | None,
    folds: int | None,
    seed: int | None,
    image_size: int | None,
) -> dict[str, Any]:
    from reproduce.session import methods_option

    return {
        "dataset.root": None if data is None else str(data),
        "dataset.subset": subset or None,
        "dataset.skip_broken_images": skip or None,
        "methods": methods_option(methods),
        "search.trials": trials,
        "reproductions": reproductions,
        "folds": folds,
        "seed": seed,
        "image_size": image_size,
    }


def _open(name: str, overrides: dict[str, Any], where: Any, console: Console) -> Any:
    """The session, with a bar while images are decoded for the first time."""
    from reproduce.experiment import load_experiment
    from reproduce.session import open_session

    experiment = load_experiment(name, overrides)
    with RichProgress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading images", visible=False)
        return open_session(
            name, experiment, where, lambda done, total: bar.update(task, completed=done, total=total, visible=True)
        )


def _existing_store(store: str, artifacts: Path | None) -> Store:
    from reproduce.session import open_store, places

    file = store.removeprefix("sqlite:///").partition("?")[0]
    if "://" not in file and not Path(file).exists():
        raise InputError(f"{store}: no store here yet; make one with `reproduce run`, or name another with --store")
    return open_store(places(store, artifacts, None, None))


def _check_workers(workers: int | None) -> None:
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}: at least one is needed")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """What a person can mend is told in one line, with exit code 2; Ctrl-C says that nothing is lost."""
    from reproduce.scheduling import WorkFailedError

    errors = Console(stderr=True, soft_wrap=True)
    try:
        yield
    except (InputError, StoreError, WorkFailedError) as error:
        errors.print(f"error: {error}", highlight=False, markup=False)
        sys.exit(2)
    except _USAGE_ERROR as error:
        # Without a word there is a page of help, which typer has printed.
        if said := error.format_message():
            errors.print(f"error: {said.rstrip('.')}; see `reproduce --help`", highlight=False, markup=False)
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        errors.print(
            f"error: {where}{error.strerror or error}; everything finished is kept", highlight=False, markup=False
        )
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        errors.print("stopped; everything finished is kept, the same command goes on from there", highlight=False)
        sys.exit(130)


def main() -> None:
    """Entry point of `python -m reproduce`."""
    with _one_line_errors():
        code = app(standalone_mode=False)
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
    sys.exit(code or 0)
