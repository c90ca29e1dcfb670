"""Opens the experiments that the commands `run` and `plan` work on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console

from reproduce.commands.options import Choices
from reproduce.commands.panel_choice import suitable_panels
from reproduce.errors import InputError
from reproduce.monitoring.bars import Bars

if TYPE_CHECKING:
    from reproduce.execution.session import Session
    from reproduce.storage import StoragePaths
    from results.experiment_spec import Experiment


def open_sessions(
    name: str, choices: Choices, where: StoragePaths, console: Console, *, plan: bool, device: str = "cpu"
) -> Iterator[Session]:
    """Open the experiments of a file one after another, with the progress for weights, images and features.

    A panel whose images have no folder is left out with a message, as long as another panel can be run.

    Args:
        name: Name of an experiment that comes with the suite, or path of a file; `/panel` behind it selects a panel.
        choices: What the command line changes about the experiments.
        where: Paths of the store, the checkpoints and the decoded images.
        console: Where the progress is shown.
        plan: Open the experiments only for a plan, which needs neither images nor weights.
        device: cpu, cuda or cuda:N, which computes the features of a frozen trunk.

    Yields:
        One session per experiment.

    Raises:
        InputError: An experiment cannot be opened, or no panel has a folder of images.
    """
    from reproduce.config.check_names import check_names, with_settled_metrics
    from reproduce.config.experiment_file import load_experiments
    from reproduce.execution.session import needs_folder, open_session

    loaded = load_experiments(name, choices.overrides())
    for key, experiment in loaded.items():
        check_names(key, experiment)
        loaded[key] = with_settled_metrics(experiment)
    datasets = {experiment.dataset.name for experiment in loaded.values()}
    located = {key: _located(experiment, choices, datasets) for key, experiment in loaded.items()}
    located = suitable_panels(name, located, console)
    without_images = [key for key, experiment in located.items() if needs_folder(experiment) and not plan]
    if len(without_images) == len(located) and len(located) > 1:
        options = " and ".join(sorted(f"--data {located[key].dataset.name}=FOLDER" for key in without_images))
        raise InputError(f"{name}: give at least one folder of images with {options}")
    for key, experiment in located.items():
        if key in without_images and len(located) > 1:
            console.print(f"{key}: not run, since there is no --data {experiment.dataset.name}=FOLDER", highlight=False)
            continue
        with Bars(console) as bars:
            reading = bars.of("reading images")
            fetching = bars.of("fetching the trunk's weights")
            computing = bars.of("computing the features of the frozen trunk")
            session = open_session(
                *(key, experiment, where, reading, choices.weights, fetching),
                outline=plan,
                device=device,
                computing=computing,
            )
        yield session


def _located(experiment: Experiment, choices: Choices, datasets: set[str]) -> Experiment:
    root = choices.root_of(experiment.dataset.name, datasets)
    if root is None:
        return experiment
    return experiment.model_copy(update={"dataset": experiment.dataset.model_copy(update={"root": root})})
