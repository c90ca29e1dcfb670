"""The exact commands that run an experiment again; no torch is needed."""

import shlex
from collections.abc import Callable
from typing import Any

import yaml

from protocols.datasets.embedded import EMBEDDED
from reports.page.content import Command
from reproduce.config.deviations import compared, suite_experiment
from results.experiment_results import MeasuredExperiment
from results.experiment_spec import Experiment

_OPTIONS: dict[str, Callable[[Experiment], object]] = {
    "--methods": lambda experiment: ",".join(experiment.methods),
    "--trials": lambda experiment: experiment.search.trials,
    "--reproductions": lambda experiment: experiment.reproductions,
    "--folds": lambda experiment: experiment.folds,
    "--seed": lambda experiment: experiment.seed,
    "--image-size": lambda experiment: experiment.images.crop,
}
_FLAGS: dict[str, Callable[[Experiment], bool]] = {
    "--subset": lambda experiment: experiment.dataset.subset,
    "--skip-broken-images": lambda experiment: experiment.dataset.skip_broken_images,
}


def rerun_commands(name: str, measured: MeasuredExperiment) -> tuple[Command, ...]:
    """How to get the code, run the experiment as it was run, and draw its tables and this page.

    What the suite's file of that name says is left to the file; options give the rest. An experiment that options
    cannot bring about is written out in full as a file, with its defaults, so that it stays exact when these change.

    Args:
        name: the experiment's name in the store.
        measured: the experiment with its runs.

    Returns:
        The commands in their order; none for an experiment whose settings were not kept or cannot be read.
    """
    experiment = measured.summary.experiment
    if experiment is None:
        return ()
    commands, in_file = _code(measured), _reachable_file(name, experiment)
    if in_file is None:
        # A panel is written out as a file of its own.
        name = name.replace("/", "_")
        text = yaml.safe_dump(_without_empty(experiment), sort_keys=False, allow_unicode=True, width=100)
        purpose = f"No file of the suite says this. Keep it as {name}.yaml; it is the experiment as it was run"
        commands.append(Command(text, f"{purpose} (method cards of one's own are not in it):"))
    called = shlex.quote(f"{name}.yaml" if in_file is None else name)
    line = ["python -m reproduce run", called, *_arguments(experiment, in_file or experiment)]
    quoted = shlex.quote(name)
    return (
        *commands,
        Command(" ".join(line), "Run it; what is in the store is not trained again:"),
        Command(f"python -m reproduce table {quoted} --format csv", "The table, from the store:"),
        Command(f"python -m reproduce report {quoted}", "This page, from the store:"),
    )


def _reachable_file(name: str, experiment: Experiment) -> Experiment | None:
    """The experiment in the suite's file of that name, if options turn it into this one."""
    in_file = suite_experiment(name)
    if isinstance(in_file, str):
        return None
    different = {deviation.key for deviation in compared(experiment, in_file)}
    reachable = {"search.trials", "folds", "images.crop"}
    if "images.crop" in different:
        # The option for the crop scales the resize before it.
        reachable |= {"images.resize", "images.evaluation_resize"}
    return in_file if different <= reachable else None


def _arguments(experiment: Experiment, in_file: Experiment) -> list[str]:
    """Options for what the file does not say, or says differently."""
    arguments = [] if experiment.dataset.name in EMBEDDED else ["--data", "FOLDER"]
    for option, value_of in _OPTIONS.items():
        if value_of(experiment) != value_of(in_file):
            arguments += [option, shlex.quote(str(value_of(experiment)))]
    return arguments + [flag for flag, is_set in _FLAGS.items() if is_set(experiment) and not is_set(in_file)]


def _code(measured: MeasuredExperiment) -> list[Command]:
    """The checkout, where all runs were made with one commit that holds all of the code."""
    versions = {(run.provenance.commit, run.provenance.tree_dirty) for run in measured.records}
    if len(versions) != 1:
        return []
    ((commit, dirty),) = versions
    if dirty or commit == "unknown":
        return []
    return [Command(f"git checkout {commit}", "The code that the runs were made with, in a clone of the suite:")]


def _without_empty(experiment: Experiment) -> dict[str, Any]:
    settings = experiment.without_folder()
    return {key: value for key, value in settings.items() if value is not None and value not in ([], {})}
