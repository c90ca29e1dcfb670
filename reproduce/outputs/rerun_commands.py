"""Gives the exact commands that run an experiment again, without torch."""

import shlex
from dataclasses import replace
from typing import Any

from reports.page.material import Command
from reproduce.config.deviations import suite_experiment
from reproduce.config.strict_yaml import yaml_of
from results.spec.data_choice import EMBEDDED
from results.spec.experiment_spec import CARD_FILES, Experiment
from results.spec.source_names import SourceName, sources_of_training
from results.store.experiment_results import MeasuredExperiment

_ON_THE_MACHINE = {"title", "dataset.root", "trunk.weights"}


def rerun_commands(name: str, measured: MeasuredExperiment) -> tuple[Command, ...]:
    """Return the commands that get the code, repeat the experiment, and draw its table and its page.

    Unless the experiment is that of the suite's file, the commands contain a complete file, with all defaults, so that
    it stays exact when defaults change.
    """
    experiment, in_file, source = measured.summary.experiment, suite_experiment(name), name
    commands = _code(measured)
    if isinstance(in_file, str) or experiment.differences(in_file).keys() - _ON_THE_MACHINE:
        # A panel becomes a separate file.
        name = name.replace("/", "_")
        source = f"{name}.yaml"
        text = yaml_of(_without_empty(experiment))
        purpose = f"The suite has no file with these settings. Save them as {source}; this is the experiment as run"
        commands.append(Command(text, f"{purpose} (your own method cards are not included):"))
    commands += _users_code(measured, experiment)
    data, quoted_name = "" if experiment.dataset.name in EMBEDDED else " --data FOLDER", shlex.quote(name)
    return (
        *commands,
        Command(f"python -m reproduce run {shlex.quote(source)}{data}", "Run it; the store's trainings are kept:"),
        Command(f"python -m reproduce table {quoted_name} --format csv", "Draw the table from the store:"),
        Command(f"python -m reproduce report {quoted_name}", "Write this page from the store:"),
    )


def _users_code(measured: MeasuredExperiment, experiment: Experiment) -> list[Command]:
    """Return the user's cards, classes and metrics that the commands need, as a text that is not run."""
    cards = [method for method in experiment.methods if method.endswith(CARD_FILES)]
    classes = [name for one in measured.trainings.values() for name in sources_of_training(one.spec)]
    metrics = [name for name in experiment.metrics if SourceName.parse(name)]
    needed = list(dict.fromkeys([*cards, *classes, *metrics]))
    purpose = "The run used these files or modules of the user; copies of the files are in `sources` in the artifacts:"
    return [Command("\n".join(f"# {name}" for name in needed), purpose)] if classes or metrics else []


def _code(measured: MeasuredExperiment) -> list[Command]:
    """Return the checkout of the code, if all runs were made with one commit and no uncommitted changes."""
    versions = {(run.provenance.commit, run.provenance.tree_dirty) for run in measured.records}
    if len(versions) != 1:
        return []
    ((commit, dirty),) = versions
    if dirty or commit == "unknown":
        return []
    return [Command(f"git checkout {commit}", "Check out the code of the runs in a clone of the suite:")]


def _without_empty(experiment: Experiment) -> dict[str, Any]:
    parsed = {name: SourceName.parse(name) for name in experiment.metrics}
    # In files the names of metrics are without the hashes of their sources.
    metrics = [str(replace(source, digest=None)) if source else name for name, source in parsed.items()]
    settings = experiment.without_folder() | {"metrics": metrics}
    return {key: value for key, value in settings.items() if value is not None and value not in ([], {})}
