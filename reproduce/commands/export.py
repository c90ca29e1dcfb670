"""`reproduce export`: writes models, test embeddings and results for other tools. `fit`: trains a model to export."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, Cache, Device, StoreAt, Weights
from reproduce.commands.terminal import output_console, say
from reproduce.errors import InputError
from reproduce.storage import opened_store
from results.whole_files import whole_folder

if TYPE_CHECKING:
    import pandas as pd

    from results.store.store import Store

FORMATS = ("parquet", "csv")

app = typer.Typer(
    name="export",
    help="Export contents of the store for other tools: a model that runs by itself, test embeddings as .npy, results "
    "as Parquet or CSV. An export that fails leaves no files behind.",
    no_args_is_help=True,
)

StoredName = Annotated[
    str, typer.Argument(help="Name or identity of an experiment in the store; `reproduce status` lists them.")
]
MethodKey = Annotated[str, typer.Option("--method", help="Name of the method, as `reproduce methods` lists it.")]
RunNumber = Annotated[int, typer.Option("--run", help="Number of the reproduction, counted from 0.")]
SearchNumber = Annotated[
    int, typer.Option("--search", help="Number of the search that the run belongs to, counted from 0.")
]
Onnx = Annotated[bool, typer.Option("--onnx", help="Write model.onnx too; needs the extra onnx.")]
NewFolder = Annotated[Path, typer.Option("--to", help="Folder to write into; it must be new or empty.")]


@app.command()
def model(
    name: StoredName,
    method: MethodKey,
    to: NewFolder,
    run: RunNumber = 0,
    search: SearchNumber = 0,
    fold: Annotated[int | None, typer.Option("--fold", help="Number of the fold, counted from 0. Default: 0.")] = None,
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="All folds' models as one, whose scores the table calls concatenated.")
    ] = False,
    onnx: Onnx = False,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Write the best model of a fold, or those of all folds as one, as files that run without this suite.

    model.pt2 is torch's exported program, model.pt the state dict, model.json the description. NOTE.txt has the lines
    that load and use the model. `reproduce fit` trains a model on all classes.
    """
    from reproduce.outputs.export_models import export_ensemble, export_model
    from reproduce.outputs.find_runs import find_run

    if ensemble and fold is not None:
        raise InputError("--fold and --ensemble: choose one of them")
    opened = opened_store(store, artifacts)
    stored_run = find_run(opened, name, method, run, search)
    with new_folder(to) as folder:
        if ensemble:
            difference = export_ensemble(opened, stored_run, folder, onnx=onnx)
        else:
            difference = export_model(opened, stored_run, fold or 0, folder, onnx=onnx)
    say_exported(to, difference)


def say_exported(to: Path, difference: float) -> None:
    """Name the files of an exported model, what it is, and how exact it is."""
    _say_written(to)
    say(output_console(), (to / "NOTE.txt").read_text(encoding="utf-8").rstrip())
    say(output_console(), f"the exported model's embeddings differ from the suite's by {difference:.0e} at most")


def fit(
    name: StoredName,
    method: MethodKey,
    to: NewFolder,
    search: Annotated[
        int | None,
        typer.Option(
            "--search",
            help="Number of the search whose setting is trained, counted from 0. Default: the one that found the best "
            "validation score.",
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder with the dataset's images or features.")] = None,
    weights: Weights = None,
    onnx: Onnx = False,
    device: Device = "auto",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Train the setting that an experiment found on all classes, and write the model as `export model` does.

    It is trained for the mean of the epochs that the trainings of the setting's runs kept. Nothing tests this model,
    since it has seen the test classes: it is made to be used. The store does not change.
    """
    from reproduce.execution.devices import check_device, prepare_process
    from reproduce.monitoring.bars import Bars
    from reproduce.outputs.export_models import Images
    from reproduce.outputs.fit_model import best_search, fit_model, found_runs
    from reproduce.storage import storage_paths, with_writable_cache
    from reproduce.store_care.train_again import check_weights

    console, where = output_console(), storage_paths(store, artifacts, cache, None)
    opened = opened_store(store, artifacts)
    chosen = best_search(opened, name, method) if search is None else search
    runs = found_runs(opened, name, method, chosen)
    torch_device = check_device(device)
    prepare_process(torch_device)
    with new_folder(to) as folder, with_writable_cache(where) as paths, Bars(console) as bars:
        check_weights(next(iter(runs[0].trainings.values()))[0], weights, bars.of("fetching the trunk's weights"))
        images = Images(data, paths.cache, torch_device, bars.of("reading images"))
        fitted = fit_model(opened, runs, images, folder, onnx=onnx, training=bars.of("training on all classes"))
    say(
        console,
        f"the setting of search {chosen}, trained on all {fitted.classes} classes ({fitted.samples:,} images or rows) "
        f"for {fitted.epochs} epochs: the mean of the epochs that its {len(fitted.epochs_of)} trainings kept "
        f"({min(fitted.epochs_of)} to {max(fitted.epochs_of)})",
    )
    say_exported(to, fitted.difference)


@app.command()
def embeddings(
    name: StoredName,
    method: MethodKey,
    to: NewFolder,
    run: RunNumber = 0,
    search: SearchNumber = 0,
    fold: Annotated[
        int | None,
        typer.Option(
            "--fold", help="Use only the model of this fold, counted from 0; by default all folds and their ensemble."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder with the dataset's images.")] = None,
    device: Device = "auto",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Write the embeddings of the test images with their labels, as a folder that the dataset `features` reads."""
    from reproduce.execution.devices import check_device, prepare_process
    from reproduce.monitoring.bars import Bars
    from reproduce.outputs.export_models import Images, export_embeddings
    from reproduce.outputs.find_runs import find_run
    from reproduce.storage import storage_paths

    opened = opened_store(store, artifacts)
    stored_run = find_run(opened, name, method, run, search)
    folds = sorted(stored_run.trainings) if fold is None else [fold]
    torch_device = check_device(device)
    prepare_process(torch_device)
    with new_folder(to) as folder, Bars(output_console()) as bars:
        image_cache = storage_paths(store, artifacts, cache, None).cache
        images = Images(data, image_cache, torch_device, bars.of("reading images"))
        export_embeddings(opened, stored_run, folds, images, folder)
    _say_written(to)


@app.command()
def study(
    name: StoredName,
    to: Annotated[Path, typer.Option("--to", help="SQLite file to write; it must be new.")],
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Write the searches of an experiment as studies of Optuna, for its plots, its importances and optuna-dashboard."""
    from reproduce.outputs.export_studies import export_studies, url_of
    from reproduce.outputs.find_runs import find_experiment

    opened = opened_store(store, artifacts)
    names = export_studies(opened, find_experiment(opened, name), to)
    # The URL is for optuna-dashboard.
    say(output_console(), f"written to {url_of(to)}: {', '.join(names)}")


@app.command()
def runs(
    to: NewFolder,
    output: Annotated[str, typer.Option("--format", help="Format of the files: parquet or csv.")] = "parquet",
    experiment: Annotated[
        str | None,
        typer.Option(
            "--experiment", help="Only this experiment: a name or an identity, as `reproduce status` lists them."
        ),
    ] = None,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Write the results of the store as tables: runs, folds, curves, test points, class scores.

    A run has a row for each experiment that it is in. Only rows of one experiment and method repeat each other.
    """
    opened = opened_store(store, artifacts)
    with new_folder(to) as folder:
        export_tables(opened, output, folder, experiment)
    _say_written(to)


@contextmanager
def new_folder(to: Path) -> Iterator[Path]:
    """Give a temporary folder to write into, and rename it to `to` when everything is written.

    After an error there is no folder `to`, so an export is never incomplete.
    """
    target = to.absolute()
    with ExitStack() as stack:
        try:
            if target.exists() and any(target.iterdir()):
                raise InputError(f"--to {to}: the folder is not empty; give a new folder")
            folder = stack.enter_context(whole_folder(target))
        except OSError as error:
            raise InputError(f"--to {to}: cannot be written ({error.strerror}); choose another folder") from error
        yield folder


def export_tables(store: "Store", form: str, folder: Path, experiment: str | None = None) -> None:
    """Write runs, folds, curves, test points and class scores as `runs.parquet`, `runs.csv` and so on.

    Args:
        store: The store.
        form: One of `FORMATS`.
        folder: Where to write.
        experiment: Name of the only experiment to write; None writes all.
    """
    if form not in FORMATS:
        raise InputError(f"--format {form!r}: use {' or '.join(FORMATS)}")
    frames = {"folds": store.folds()}
    if frames["folds"].empty:
        raise InputError(f"{store.url}: there is no finished training yet; make some with `reproduce run`")
    frames |= {
        "runs": store.runs(),
        "curves": store.curves(),
        "test_points": store.test_points(),
        "class_scores": store.class_scores(),
    }
    if experiment is not None:
        frames = _of_experiment(store, experiment, frames)
    for name, frame in frames.items():
        if form == "parquet":
            frame.to_parquet(folder / f"{name}.parquet", index=False)
        else:
            frame.to_csv(folder / f"{name}.csv", index=False)


def _of_experiment(store: "Store", name: str, frames: "dict[str, pd.DataFrame]") -> "dict[str, pd.DataFrame]":
    """The rows of one experiment's runs, and of the trainings of its runs and of its trials."""
    from reproduce.outputs.find_runs import find_experiment

    fingerprint = find_experiment(store, name).fingerprint
    records = store.experiment_runs(fingerprint)
    trainings = {training for record in records for training in (*record.fold_fingerprints, *record.chosen_by)}
    for study in store.searches.of_experiment(fingerprint).values():
        trainings |= {training for trial in study.trials for training in trial.trainings}
    runs = frames["runs"]
    kept = {"runs": runs[runs["experiment_fingerprint"] == fingerprint]}
    wanted = {"class_scores": {record.fingerprint for record in records}}
    for table in frames.keys() - kept.keys():
        kept[table] = frames[table][frames[table]["fingerprint"].isin(wanted.get(table, trainings))]
    return {table: kept[table] for table in frames}


def _say_written(to: Path) -> None:
    files = ", ".join(sorted(path.name for path in to.iterdir()))
    say(output_console(), f"written to {to}: {files}")
