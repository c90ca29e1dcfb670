"""`reproduce export`: models, test embeddings and results for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.options import STORE, Artifacts, Cache, Device, StoreAt
from reproduce.commands.terminal import output_console, say
from reproduce.storage import opened_store

app = typer.Typer(
    name="export",
    help="Hand what is in the store to other tools: a model as a state dict, test embeddings as .npy, results as "
    "Parquet or CSV. What is written is whole or absent.",
    no_args_is_help=True,
)

StoredName = Annotated[str, typer.Argument(help="Name of an experiment in the store; `reproduce status` lists them.")]
MethodKey = Annotated[str, typer.Option("--method", help="Method, as in `reproduce methods`.")]
RunNumber = Annotated[int, typer.Option("--run", help="Which reproduction, from 0.")]
NewFolder = Annotated[Path, typer.Option("--to", help="Folder to write; a new or an empty one.")]


@app.command()
def model(
    name: StoredName,
    method: MethodKey,
    to: NewFolder,
    run: RunNumber = 0,
    fold: Annotated[int, typer.Option("--fold", help="Which fold's model, from 0.")] = 0,
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Write the best model of a fold: its state dict, what it is as JSON, and a script that loads it.

    `python DIR/load_model.py IMAGES` embeds image files with it.
    """
    from reproduce.outputs.export_models import export_model
    from reproduce.outputs.export_tables import new_folder
    from reproduce.outputs.find_runs import find_run

    opened = opened_store(store, artifacts)
    found = find_run(opened, name, method, run)
    with new_folder(to) as folder:
        export_model(opened, found, fold, folder)
    _say_written(to)


@app.command()
def embeddings(
    name: StoredName,
    method: MethodKey,
    to: NewFolder,
    run: RunNumber = 0,
    fold: Annotated[
        int | None, typer.Option("--fold", help="Only this fold's model, from 0; by default all and their ensemble.")
    ] = None,
    data: Annotated[Path | None, typer.Option("--data", help="Folder where the dataset's images lie.")] = None,
    batch: Annotated[int, typer.Option("--batch", help="Images embedded at once.", min=1)] = 64,
    device: Device = "auto",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
    cache: Cache = None,
) -> None:
    """Write the embeddings of the test images as .npy, with their labels."""
    from reproduce.execution.devices import check_device, prepare_process
    from reproduce.monitoring.bars import Bars
    from reproduce.outputs.export_models import Images, export_embeddings
    from reproduce.outputs.export_tables import new_folder
    from reproduce.outputs.find_runs import find_run
    from reproduce.storage import storage_paths

    opened = opened_store(store, artifacts)
    found = find_run(opened, name, method, run)
    folds = sorted(found.trainings) if fold is None else [fold]
    chosen = check_device(device)
    prepare_process(chosen)
    with new_folder(to) as folder, Bars(output_console()) as bars:
        kept = storage_paths(store, artifacts, cache, None).cache
        images = Images(data, kept, chosen, batch, bars.of("reading images"))
        export_embeddings(opened, found, folds, images, folder)
    _say_written(to)


@app.command()
def runs(
    to: NewFolder,
    output: Annotated[str, typer.Option("--format", help="parquet or csv.")] = "parquet",
    store: StoreAt = STORE,
    artifacts: Artifacts = None,
) -> None:
    """Write all results of the store as tables: runs, folds, curves, test points, class scores."""
    from reproduce.outputs.export_tables import export_tables, new_folder

    opened = opened_store(store, artifacts)
    with new_folder(to) as folder:
        export_tables(opened, output, folder)
    _say_written(to)


def _say_written(to: Path) -> None:
    files = ", ".join(sorted(path.name for path in to.iterdir()))
    say(output_console(), f"written to {to}: {files}")
