"""The options that commands share, each written once."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from reproduce.errors import InputError

ExperimentName = Annotated[
    str,
    typer.Argument(
        help="Name of an experiment (`reproduce experiments` lists them), or path of a .yaml file; NAME/PANEL for one "
        "panel of a table with several."
    ),
]
DataFolders = Annotated[
    list[str] | None,
    typer.Option(
        "--data", help="Folder where the dataset's images lie; DATASET=FOLDER, repeated, for a table with several."
    ),
]
Subset = Annotated[bool, typer.Option("--subset", help="The folder holds a part of the published dataset on purpose.")]
Skip = Annotated[bool, typer.Option("--skip-broken-images", help="Leave out images that cannot be decoded.")]
Methods = Annotated[str | None, typer.Option("--methods", help="Methods by comma, or paths of method cards.")]
Trials = Annotated[int | None, typer.Option("--trials", help="Search trials per method.")]
Reproductions = Annotated[int | None, typer.Option("--reproductions", help="Re-trainings of the best setting.")]
Folds = Annotated[int | None, typer.Option("--folds", help="How many of the four folds to train.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Base seed; all others derive from it.")]
ImageSize = Annotated[int | None, typer.Option("--image-size", help="Crop in pixels; the resize before it scales too.")]
Weights = Annotated[Path | None, typer.Option("--weights", help="File of the trunk's weights, or the folder it is in.")]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, or auto.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Trainings side by side; by default the four folds or as many as there are cores, one on a GPU.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        help="Train on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT; local starts one on this machine. All nodes "
        "must see the checkout, the cache and the artifacts; by default it is used as far as it goes.",
    ),
]
StoreAt = Annotated[str, typer.Option("--store", help="File for studies and results, or a SQLAlchemy URL.")]
Artifacts = Annotated[Path | None, typer.Option("--artifacts", help="Folder of checkpoints; beside the store.")]
Cache = Annotated[Path | None, typer.Option("--cache", help="Folder of decoded images; beside the store.")]
Track = Annotated[
    list[str] | None,
    typer.Option("--track", help="Show curves and scores as they come in tensorboard or wandb; repeat it for both."),
]
Tables = Annotated[Path | None, typer.Option("--tables", help="Folder the tables are written to; beside the store.")]

STORE = "runs/store.sqlite"


@dataclass(frozen=True)
class Choices:
    """What a person may change about an experiment from the command line."""

    data: DataFolders = None
    subset: Subset = False
    skip_broken_images: Skip = False
    methods: Methods = None
    trials: Trials = None
    reproductions: Reproductions = None
    folds: Folds = None
    seed: Seed = None
    image_size: ImageSize = None
    weights: Weights = None

    def overrides(self) -> dict[str, Any]:
        """Dotted keys of an experiment and what replaces them; None leaves the file's value."""
        return {
            "dataset.subset": self.subset or None,
            "dataset.skip_broken_images": self.skip_broken_images or None,
            "methods": None if self.methods is None else [m.strip() for m in self.methods.split(",") if m.strip()],
            "search.trials": self.trials,
            "reproductions": self.reproductions,
            "folds": self.folds,
            "seed": self.seed,
            "image_size": self.image_size,
        }

    def root_of(self, dataset: str, all_datasets: set[str]) -> Path | None:
        """The folder given for a dataset of a file that uses `all_datasets`; raises InputError for one that fits none.

        A folder without a dataset's name is the only dataset's.
        """
        folders: dict[str, Path] = {}
        for item in self.data or []:
            name, equals, folder = item.partition("=")
            if equals and name in all_datasets:
                folders[name] = Path(folder)
            elif len(all_datasets) == 1:
                folders[dataset] = Path(item)
            else:
                each = " ".join(f"--data {known}=FOLDER" for known in sorted(all_datasets))
                raise InputError(f"--data {item}: say which dataset it is: {each}")
        return folders.get(dataset)


def with_choices(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `Choices` in the place of its parameter `choices`."""
    hints = get_type_hints(Choices, include_extras=True)
    names = [field.name for field in fields(Choices)]
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if parameter.name != "choices":
            parameters.append(parameter)
            continue
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=field.default, annotation=hints[field.name]
            )
            for field in fields(Choices)
        ]

    @functools.wraps(command)
    def expanded(**arguments: Any) -> None:
        chosen = Choices(**{name: arguments.pop(name) for name in names})
        command(**arguments, choices=chosen)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def check_workers(workers: int | None) -> None:
    """Raises InputError for no workers."""
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}: at least one is needed")
