"""Opens the experiments that the commands `run` and `plan` work on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from reproduce.commands.options import Choices
from reproduce.commands.terminal import say
from reproduce.errors import InputError
from reproduce.monitoring.bars import Bars

if TYPE_CHECKING:
    from reproduce.execution.session import Session
    from reproduce.storage import StoragePaths
    from results.spec.experiment_spec import Experiment


def suitable_panels(name: str, experiments: Mapping[str, Experiment], console: Console) -> dict[str, Experiment]:
    """Keep the panel that suits the images if the file chooses by their size, and say which one and why.

    All experiments are kept if the file does not choose, or if a folder is missing.
    """
    from protocols.datasets.dataset import DataError
    from protocols.datasets.folder import list_folder
    from protocols.images.decoding import median_shorter_side
    from reproduce.config.experiment_file import panels_by_size

    limits = panels_by_size(name)
    root = next(iter(experiments.values())).dataset.root
    if not limits or root is None:
        return dict(experiments)
    try:
        listing = list_folder(root)
    except DataError as error:
        raise InputError(str(error)) from error
    side = median_shorter_side(listing.root, listing.names)
    if side is None:
        raise InputError(f"{root}: no image in it can be read, so no panel can be chosen; check that --data is right")
    for panel, limit in limits.items():
        if limit is None or side <= limit:
            bound = "larger images" if limit is None else f"images up to {limit} pixels"
            others = ", ".join(other for other in limits if other != panel)
            say(
                console,
                f"{panel}: {experiments[panel].title}. It is for {bound}; the median of the shorter sides is "
                f"{side:.0f} pixels. To choose yourself, name the panel: {others}",
            )
            return {panel: experiments[panel]}
    raise InputError(f"{name}: no panel is for images of {side:.0f} pixels; name one of {', '.join(limits)}")


def checked(name: str, experiment: Experiment) -> Experiment:
    """Return an experiment whose dataset, trunk and metrics exist; users' metrics get the hashes of their sources.

    Methods are checked when their cards are opened (`checked_card`).
    """
    from protocols.datasets.dataset import DataError
    from protocols.datasets.dataset_registry import entry_of
    from protocols.metrics.metric_registry import check_metric_names
    from protocols.trunks.trunk_registry import trunk_entry
    from protocols.trunks.weights import TrunkError
    from protocols.users_code.checks import try_metric
    from protocols.users_code.sources import hashed_name
    from results.spec.trunk_spec import NO_TRUNK

    key = "dataset"
    try:
        entry_of(experiment.dataset.name)
        key = "trunk"
        if experiment.conditions.trunk.name != NO_TRUNK:
            trunk_entry(experiment.conditions.trunk)
        key = "metrics"
        check_metric_names(experiment.metrics)
    except (DataError, TrunkError, ValueError) as error:
        raise InputError(f"{name}: key {key!r}: {error}") from error
    metrics = tuple(hashed_name(metric, try_metric) for metric in experiment.metrics)
    return experiment.model_copy(update={"metrics": metrics})


def open_sessions(
    name: str, choices: Choices, where: StoragePaths, console: Console, *, plan: bool, device: str = "cpu"
) -> list[Session]:
    """Open the experiments of a file, with the progress for weights, images and features, and check their methods.

    A panel whose images have no folder is left out with a message, as long as another panel can be run. A `plan` needs
    neither images nor weights. All are open before the first is returned, so that a fault is told before any training.
    """
    from reproduce.config.experiment_file import load_experiments
    from reproduce.execution.check_settings import check_settings
    from reproduce.execution.session import needs_folder, open_session

    sessions = []
    loaded = {key: checked(key, experiment) for key, experiment in load_experiments(name, choices.overrides()).items()}
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
        sessions.append(session)
    for remark in check_settings(sessions):
        say(console, f"note: {remark}")
    return sessions


def _located(experiment: Experiment, choices: Choices, datasets: set[str]) -> Experiment:
    root = choices.root_of(experiment.dataset.name, datasets)
    if root is None:
        return experiment
    return experiment.model_copy(update={"dataset": experiment.dataset.model_copy(update={"root": root})})
