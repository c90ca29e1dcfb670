"""The command line options that several commands share."""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from reproduce.errors import InputError

ExperimentName = Annotated[
    str,
    typer.Argument(
        help="Name of an experiment (`reproduce experiments` lists them), or path of a .yaml file. NAME/PANEL selects "
        "one panel of an experiment with several."
    ),
]
DataFolders = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        help="Folder with the dataset's images. For an experiment with several datasets, repeat --data DATASET=FOLDER.",
    ),
]
Subset = Annotated[bool, typer.Option("--subset", help="Accept a folder with only a part of the published dataset.")]
Skip = Annotated[bool, typer.Option("--skip-broken-images", help="Leave out images that cannot be decoded.")]
MinImages = Annotated[
    int | None,
    typer.Option("--min-images", min=2, help="Leave out classes with fewer images, of a folder of your own."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Start without a question, even if the run takes more than an hour.")]
Weights = Annotated[
    Path | None, typer.Option("--weights", help="File with the trunk's weights, or the folder that holds it.")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, or auto.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="How many trainings run at the same time. Default: four, or one per CPU core if there are fewer.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        help="Train on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT; local starts one on this machine. All nodes "
        "must see the checkout, the cache and the artifacts. Without --workers the whole cluster is used.",
    ),
]
Slurm = Annotated[
    str | None,
    typer.Option(
        "--slurm",
        help="Train as job arrays of a SLURM cluster; every job asks for time=MINUTES, and if given partition=, gpus=, "
        "cpus=, mem=GB; batch= is the number of trainings per job. Example: partition=gpu,time=240,gpus=1. --workers "
        "is the number of jobs at a time.",
    ),
]
TrainingTimeout = Annotated[
    float | None,
    typer.Option(
        "--training-timeout",
        help="End a training that hangs, and try it again: one that reports nothing for more than this multiple (above "
        "1, for example 20) of the forecast of a training with all epochs, at the slowest rate of its method in this "
        "run. Every validation is a report. Default: no training is ended.",
    ),
]
StoreAt = Annotated[str, typer.Option("--store", help="File for studies and results, or a SQLAlchemy URL.")]
Artifacts = Annotated[
    Path | None, typer.Option("--artifacts", help="Folder of checkpoints. Default: beside the store.")
]
Cache = Annotated[Path | None, typer.Option("--cache", help="Folder of decoded images. Default: beside the store.")]
Track = Annotated[
    list[str] | None,
    typer.Option(
        "--track", help="Show curves and scores during the run in tensorboard or wandb; repeat the option for both."
    ),
]
Tables = Annotated[
    Path | None, typer.Option("--tables", help="Folder that tables are written to. Default: beside the store.")
]

STORE = "runs/store.sqlite"


@dataclass(frozen=True)
class Choices:
    """What the command line can change about an experiment."""

    data: DataFolders = None
    subset: Subset = False
    skip_broken_images: Skip = False
    min_images: MinImages = None
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="Methods or paths of method cards, separated by commas, in place of the file's; behind a plus sign, "
            "as in +my_loss.yaml, beside them.",
        ),
    ] = None
    trials: Annotated[int | None, typer.Option("--trials", help="Number of search trials per method.")] = None
    reproductions: Annotated[
        int | None, typer.Option("--reproductions", help="How often the best setting is trained again with a new seed.")
    ] = None
    searches: Annotated[
        int | None,
        typer.Option(
            "--searches", help="How often each method's search is repeated from other seeds, each with its runs."
        ),
    ] = None
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            help="What is compared: all pairs (all), each method with the best, or each with the one of this name. "
            "Fewer comparisons see smaller differences.",
        ),
    ] = None
    racing: Annotated[
        bool,
        typer.Option(
            "--racing",
            help="Give no more folds to a trial of the search that is clearly behind the best trial on the same folds. "
            "MLRC trains every trial on all folds.",
        ),
    ] = False
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            help="Further metrics beside those of the file, separated by commas: recall@K, map@1000, nmi, ..., or "
            "./my_metrics.py:my_function. The stored models are tested with them; nothing is trained again.",
        ),
    ] = None
    folds: Annotated[int | None, typer.Option("--folds", help="How many of the four folds to train.")] = None
    seed: Annotated[int | None, typer.Option("--seed", help="Base seed; all other seeds derive from it.")] = None
    image_size: Annotated[
        int | None,
        typer.Option("--image-size", help="Side of the crop in pixels; the resize before it scales with it."),
    ] = None
    trunk: Annotated[
        str | None,
        typer.Option(
            "--trunk",
            help="Another trunk with its own weights: a name of the suite, timm:MODEL, or ./my_trunk.py:build.",
        ),
    ] = None
    frozen: Annotated[
        bool,
        typer.Option(
            "--frozen", help="Keep the trunk as it is: compute its features once and train only the embedder."
        ),
    ] = False
    epochs: Annotated[int | None, typer.Option("--epochs", help="Largest number of epochs of a training.")] = None
    lr: Annotated[float | None, typer.Option("--lr", help="Learning rate of the network.")] = None
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Images per batch.")] = None
    embedding_size: Annotated[
        int | None, typer.Option("--embedding-size", help="Dimensions of one fold's embedding.")
    ] = None
    weights: Weights = None

    def overrides(self) -> dict[str, Any]:
        """Return the new value of each dotted key of an experiment; None keeps the file's value."""
        return {
            "dataset.subset": self.subset or None,
            "dataset.skip_broken_images": self.skip_broken_images or None,
            "dataset.min_images": self.min_images,
            "methods": _listed(self.methods),
            "metrics": _listed(self.metrics),
            "search.trials": self.trials,
            "reproductions": self.reproductions,
            "search.searches": self.searches,
            "compare": self.compare,
            "search.racing": self.racing or None,
            "folds": self.folds,
            "seed": self.seed,
            "image_size": self.image_size,
            "trunk": self.trunk,
            "frozen": self.frozen or None,
            "training.max_epochs": self.epochs,
            "training.optimizer.lr": self.lr,
            "training.batch_size": self.batch_size,
            "embedding_size": self.embedding_size,
        }

    def root_of(self, dataset: str, all_datasets: set[str]) -> Path | None:
        """Return the folder that `--data` gives for a dataset; None if it gives none.

        If the experiment's file has only one dataset, its name may be left out in `--data`.
        """
        folders: dict[str, Path] = {}
        for item in self.data or []:
            name, equals, folder = item.partition("=")
            if equals and name in all_datasets:
                folders[name] = Path(folder)
            elif len(all_datasets) == 1:
                folders[dataset] = Path(item)
            else:
                options = " ".join(f"--data {known}=FOLDER" for known in sorted(all_datasets))
                raise InputError(f"--data {item}: name the dataset as in {options}")
        return folders.get(dataset)


def _listed(names: str | None) -> list[str] | None:
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]


def with_choices(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `choices` of a command by the options of `Choices`."""
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
        choices = Choices(**{name: arguments.pop(name) for name in names})
        command(**arguments, choices=choices)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def check_workers(workers: int | None) -> None:
    """Raise InputError if the number of workers is less than one."""
    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers}: at least one is needed")


def check_training_timeout(factor: float | None) -> None:
    """Raise InputError if a training's time cannot be limited to this multiple of its forecast."""
    if factor is not None and not (factor > 1 and math.isfinite(factor)):
        raise InputError(f"--training-timeout {factor:g}: use a number above 1, the multiple of a training's forecast")
