"""`reproduce export`: writes models, test embeddings and results for other tools. `fit`: trains a model to export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reproduce.commands.options import STORE, Artifacts, Cache, DataFolder, Device, StoreAt, StoredName, Weights
from reproduce.errors import InputError, writing_to
from reproduce.storage import StoragePaths, opened_store, storage_paths
from reproduce.terminal import say
from results.atomic_files import atomic_folder

if TYPE_CHECKING:
    from reproduce.outputs.find_runs import StoredRun
    from reproduce.run.open_data import OpenedData
    from results.records.frame import ExportedRun
    from results.store.store import Store

app = typer.Typer(
    name="export",
    help="Export contents of the store for other tools: a model that runs by itself, test embeddings as .npy, results "
    "as Parquet or CSV. An export that fails leaves no files behind.",
    no_args_is_help=True,
)

MethodKey = Annotated[str, typer.Option("--method", help="Name of the method, as `reproduce methods` lists it.")]
RunNumber = Annotated[int, typer.Option("--run", min=1, help="Number of the reproduction, from 1.")]
SearchNumber = Annotated[
    int | None,
    typer.Option(
        "--search",
        min=1,
        help="Number of the search that the run belongs to, from 1. Default: the one with the best validation score.",
    ),
]
FoldNumber = Annotated[
    int | None,
    typer.Option("--fold", help="Number of the fold, counted from 0. Default: the models of all folds as one."),
]
ModelFormat = Annotated[
    Literal["torch", "onnx"],
    typer.Option("--format", help="onnx writes model.onnx beside torch's files; it needs the extra onnx."),
]
NewFolder = Annotated[Path, typer.Option("--to", help="Folder to write into; it must be new or empty.")]


@app.command()
def model(
    name: StoredName,
    method: MethodKey,
    to: NewFolder,
    run: RunNumber = 1,
    search: SearchNumber = None,
    fold: FoldNumber = None,
    output: ModelFormat = "torch",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Write the models of all folds as one, whose scores the table calls concatenated, or the best one of a fold.

    The files run without this suite: model.pt2 is torch's exported program, model.pt the state dict, model.json the
    description. NOTE.txt has the lines that load and use the model. `reproduce fit` trains a model on all classes.
    """
    from reproduce.outputs.export_models import export_model
    from reproduce.outputs.find_runs import find_runs
    from reproduce.run.progress import Bars

    opened = opened_store(store, artifacts)
    (stored_run,) = find_runs(opened, name, method, search, run)
    folds = sorted(stored_run.trainings) if fold is None else [fold]
    with new_folder(to) as folder, Bars() as bars:
        onnx, writing = _as_onnx(output), bars.of("writing the model")
        difference = export_model(opened, stored_run, folds, folder, onnx=onnx, writing=writing)
    _say_exported(to, difference)


def fit(
    name: StoredName,
    method: MethodKey,
    to: NewFolder,
    search: SearchNumber = None,
    data: DataFolder = None,
    weights: Weights = None,
    device: Device = "auto",
    output: ModelFormat = "torch",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Train the setting that an experiment found on all classes, and write the model as `export model` does.

    It is trained for the mean of the epochs that the trainings of the setting's runs kept. Nothing tests this model,
    since it has seen the test classes: it is made to be used. The store does not change.
    """
    from reproduce.outputs.export_models import fit_model
    from reproduce.outputs.find_runs import find_runs
    from reproduce.run.open_data import check_weights

    opened = opened_store(store, artifacts)
    runs, where = find_runs(opened, name, method, search), storage_paths(store, artifacts, cache)
    with new_folder(to) as folder, _data_of(name, runs[0], data, device, where) as images:
        check_weights(next(iter(runs[0].trainings.values())).spec, weights)
        training = images.bar("training on all classes")
        writing, onnx = images.bar("writing the model"), _as_onnx(output)
        summary, difference = fit_model(opened, runs, images, folder, training=training, onnx=onnx, writing=writing)
    say(summary)
    _say_exported(to, difference)


@app.command()
def embeddings(
    name: StoredName,
    method: MethodKey,
    to: NewFolder,
    run: RunNumber = 1,
    search: SearchNumber = None,
    fold: FoldNumber = None,
    data: DataFolder = None,
    device: Device = "auto",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Write the embeddings of the test images with their labels, as a folder that the dataset `features` reads."""
    from reproduce.outputs.export_models import export_embeddings
    from reproduce.outputs.find_runs import find_runs

    opened = opened_store(store, artifacts)
    (stored_run,) = find_runs(opened, name, method, search, run)
    folds = sorted(stored_run.trainings) if fold is None else [fold]
    where = storage_paths(store, artifacts, cache)
    with new_folder(to) as folder, _data_of(name, stored_run, data, device, where) as images:
        export_embeddings(opened, stored_run, folds, images, folder)
    say(f"test embeddings of {stored_run.called}")
    _say_written(to)


@app.command()
def study(
    name: StoredName,
    to: Annotated[Path, typer.Option("--to", help="SQLite file to write; it must be new.")],
    store: StoreAt = STORE,
) -> None:
    """Write the searches of an experiment as studies of Optuna, for its plots, its importances and optuna-dashboard."""
    from reproduce.outputs.export_studies import export_studies, url_of
    from reproduce.outputs.find_runs import find_experiment
    from reproduce.run.progress import Bars

    opened = opened_store(store)
    with Bars() as bars:
        names = export_studies(opened, find_experiment(opened, name), to, bars.of("writing studies"))
    # The URL is for optuna-dashboard.
    say(f"written to {url_of(to)}: {', '.join(names)}")


@app.command()
def runs(
    to: NewFolder,
    output: Annotated[Literal["parquet", "csv"], typer.Option("--format", help="Format of the files.")] = "parquet",
    store: StoreAt = STORE,
) -> None:
    """Write the results of the store as tables: runs, folds, curves, test points, class scores.

    A run has a row for each experiment that it is in. Only rows of one experiment and method repeat each other.
    """
    from reports.tables.table import short
    from results.records.frame import runs_table

    opened = opened_store(store)
    frames = opened.training_tables()
    if frames["folds"].empty:
        raise InputError(f"{opened.url}: there is no finished training yet; make some with `reproduce run`")
    frames["runs"] = runs_table([run for one in _by_experiment(opened) for run in one])
    frames |= {name: opened.table(name) for name in ("test_points", "class_scores")}
    with new_folder(to) as folder:
        for name, frame in frames.items():
            scores = frame.select_dtypes("float").columns
            frame = frame.assign(**{column: frame[column].map(short) for column in scores})
            write = frame.to_parquet if output == "parquet" else frame.to_csv
            write(folder / f"{name}.{output}", index=False)
    _say_written(to)


@app.command()
def evaleval(
    name: Annotated[
        str, typer.Argument(help="Name or identity of an experiment in the store, or a record (.json, .json.xz).")
    ],
    to: NewFolder,
    store: StoreAt = STORE,
) -> None:
    """Write the answer of an experiment as records of Every Eval Ever (schema 0.2.1), one for each method.

    A record has the compared score with standard error, 95 % interval, its method, and the number of searches or runs.
    `reproduce audit FOLDER` reads records back.
    """
    from reproduce.outputs.evaleval import evaleval_records
    from reproduce.outputs.tables import named_sources
    from reproduce.storage import existing_store
    from results.atomic_files import folder_names

    with new_folder(to) as folder:
        for source in named_sources(existing_store(store), [name]):
            records = evaleval_records(source.answer, source.measured.plan.dataset, source.name)
            files = folder_names(record["evaluation_id"] for record in records)
            for record in records:
                text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
                (folder / f"{files[record['evaluation_id']]}.json").write_text(text, encoding="utf-8")
    _say_written(to)


def _by_experiment(store: Store) -> Iterator[list[ExportedRun]]:
    """The runs of each experiment with what it asks."""
    from results.answer.audit import with_questions
    from results.store.experiment_results import MeasuredExperiment

    for fingerprint, own in groupby(store.exported_runs(), lambda run: run.experiment_fingerprint):
        yield with_questions(MeasuredExperiment.from_store(store, fingerprint), list(own))


@contextmanager
def _data_of(name: str, run: StoredRun, data: Path | None, device: str, where: StoragePaths) -> Iterator[OpenedData]:
    """Open the data of a run: in the folder that `--data` gives, or in that of the experiment's own file."""
    from reproduce.outputs.find_runs import own_folders
    from reproduce.run.devices import check_device, prepare_process
    from reproduce.run.open_data import OpenedData
    from reproduce.run.progress import Bars

    torch_device, dataset = check_device(device), run.start.plan.dataset
    prepare_process(torch_device)
    with Bars() as bars:
        roots = {dataset: data or own_folders(name, run.start.name).get(dataset)}
        yield OpenedData(where, torch_device, bars, roots=roots)


@contextmanager
def new_folder(to: Path) -> Iterator[Path]:
    """Give a temporary folder to write into, and rename it to `to` when everything is written.

    After an error there is no folder `to`, so an export is never incomplete.
    """
    target = to.absolute()
    with ExitStack() as stack:
        with writing_to(to):
            if target.exists() and any(target.iterdir()):
                raise InputError(f"--to {to}: the folder is not empty; give a new folder")
            folder = stack.enter_context(atomic_folder(target))
        yield folder


def _as_onnx(output: str) -> bool:
    """Return whether to write ONNX too, and say that it takes long: nothing tells how far the exporter is."""
    if output == "onnx":
        say("ONNX takes about a minute for a large network, and several on a busy machine")
    return output == "onnx"


def _say_exported(to: Path, difference: float) -> None:
    """Name the files of an exported model, what it is, and how exact it is."""
    _say_written(to)
    say((to / "NOTE.txt").read_text(encoding="utf-8").rstrip())
    say(f"the exported model's embeddings differ from the suite's by {difference:.1g} at most")


def _say_written(to: Path) -> None:
    files = ", ".join(sorted(path.name for path in to.iterdir()))
    say(f"written to {to}: {files}")
