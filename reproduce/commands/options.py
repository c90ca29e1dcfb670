"""The command line options that several commands share."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from reproduce.errors import InputError

if TYPE_CHECKING:
    from results.spec.experiment_spec import Experiment

ExperimentName = Annotated[
    str,
    typer.Argument(
        help="Name of an experiment (`reproduce experiments` lists them), or path of a .yaml file. NAME/PANEL selects "
        "one panel of an experiment with several."
    ),
]
StoredName = Annotated[
    str, typer.Argument(help="Name or identity of an experiment in the store; `reproduce status` lists them.")
]
DataFolder = Annotated[Path | None, typer.Option("--data", help="Folder with the dataset's images or features.")]
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
Weights = Annotated[
    Path | None, typer.Option("--weights", help="File with the trunk's weights, or the folder that holds it.")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, or auto.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="How many trainings run at the same time. Default: four, or one per CPU core if there are fewer.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        help="Train on the Ray cluster that this machine belongs to: auto or HOST:PORT. All nodes must see the "
        "checkout, the cache and the artifacts. Without --workers the whole cluster is used.",
    ),
]
StoreAt = Annotated[str, typer.Option("--store", help="SQLite file for studies and results.")]
Artifacts = Annotated[
    Path | None, typer.Option("--artifacts", help="Folder of checkpoints. Default: beside the store.")
]
Cache = Annotated[Path | None, typer.Option("--cache", help="Folder of decoded images. Default: beside the store.")]
Track = Annotated[
    Literal["tensorboard"] | None, typer.Option("--track", help="Write curves and scores for it during the run.")
]
Format = Annotated[
    Literal["terminal", "markdown", "csv", "latex", "html", "json"],
    typer.Option("--format", help="In json: the records or cells of the table."),
]

STORE = "runs/store.sqlite"


def check_min_images(dataset: str, min_images: int | None) -> None:
    """Refuse `--min-images` for a dataset whose publisher, or whose labels, give its classes."""
    from results.spec.data_choice import FOLDER

    if min_images is not None and dataset != FOLDER:
        raise InputError(f"--min-images: dataset {dataset} keeps all its classes; leave the option out")


@dataclass(frozen=True)
class Choices:
    """What the command line can change about an experiment."""

    data: DataFolders = None
    subset: Subset = False
    skip_broken_images: Skip = False
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
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Add searches until every comparison has an answer: planned looks after 3, 4, 5, 6 and 8 searches, at "
            "a level that holds for all of them together.",
        ),
    ] = False
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
    folds: Annotated[int | None, typer.Option("--folds", help="How many of the four folds to train.")] = None
    seed: Annotated[int | None, typer.Option("--seed", help="Base seed; all other seeds derive from it.")] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any other setting of the file, by its dotted key: training.max_epochs=3, trunk=timm:MODEL, "
            "trunk.frozen=true, metrics=+recall@2. Repeat the option for several.",
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="Name of the experiment in the store, such as first_try, in place of the file's; `table` and `report` "
            "take it. Experiments of all names share their trainings.",
        ),
    ] = None
    weights: Weights = None

    def overrides(self) -> dict[str, Any]:
        """Return the new value of each dotted key of an experiment that an option gives."""
        options = {
            "dataset.subset": self.subset or None,
            "dataset.skip_broken_images": self.skip_broken_images or None,
            "methods": self.methods,
            "search.trials": self.trials,
            "reproductions": self.reproductions,
            "search.searches": self.searches,
            "search.until_decided": self.until_decided or None,
            "primary.compare": self.compare,
            "search.racing": self.racing or None,
            "folds": self.folds,
            "seed": self.seed,
        }
        given = {key: value for key, value in options.items() if value is not None}
        return given | dict(map(_setting, self.settings or []))

    def experiments(self, name: str) -> "dict[str, Experiment]":
        """Read an experiment file, with the settings and the folders of images that the options give."""
        from reproduce.config.experiment_file import load_experiments
        from results.spec.data_choice import EMBEDDED

        loaded = self._named(load_experiments(name, self.overrides()))
        datasets = {experiment.dataset.name for experiment in loaded.values()}
        for key, experiment in loaded.items():
            if (root := self.root_of(experiment.dataset.name, datasets)) is not None:
                if experiment.dataset.name in EMBEDDED:
                    unread = f"--data {root}: {experiment.dataset.name} is embedded and reads no folder"
                    raise InputError(f"{unread}; leave --data out, or run folder_small with images of your own")
                dataset = experiment.dataset.model_copy(update={"root": root})
                loaded[key] = experiment.model_copy(update={"dataset": dataset})
        return loaded

    def _named(self, loaded: "dict[str, Experiment]") -> "dict[str, Experiment]":
        from reproduce.config.experiment_file import check_own_name

        if self.name is None:
            return loaded
        check_own_name(self.name, f"--name {self.name}")
        panels = {key: f"{self.name}/{key.partition('/')[2]}" if len(loaded) > 1 else self.name for key in loaded}
        return {panels[key]: experiment for key, experiment in loaded.items()}

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


def _setting(text: str) -> tuple[str, Any]:
    from reproduce.config.strict_yaml import read_yaml  # Imports pydantic, which no help needs.

    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InputError(f"--set {text}: use KEY=VALUE, as in --set training.max_epochs=3")
    try:
        return key, read_yaml(value)
    except ValueError as error:
        raise InputError(f"--set {text}: {error}") from error


def with_choices(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `choices` of a command by the options of `Choices`."""
    hints = get_type_hints(Choices, include_extras=True)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    of_choices = [inspect.Parameter(f.name, kind, default=f.default, annotation=hints[f.name]) for f in fields(Choices)]
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        parameters += of_choices if parameter.name == "choices" else [parameter]

    @functools.wraps(command)
    def expanded(**arguments: Any) -> None:
        choices = Choices(**{field.name: arguments.pop(field.name) for field in fields(Choices)})
        command(**arguments, choices=choices)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded
