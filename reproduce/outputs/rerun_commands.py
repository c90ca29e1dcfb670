"""Gives the exact commands that run an experiment again, without torch."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import yaml

from reports.page.content import Command
from reproduce.config.deviations import compared, suite_experiment
from results.spec.data_choice import EMBEDDED
from results.spec.experiment_spec import CARD_FILES, Experiment
from results.spec.source_names import SourceName, sources_of_training
from results.store.experiment_results import MeasuredExperiment

_OPTIONS: dict[str, Callable[[Experiment], object]] = {
    "--min-images": lambda experiment: experiment.dataset.min_images,
    "--methods": lambda experiment: ",".join(experiment.methods),
    "--trials": lambda experiment: experiment.search.trials,
    "--reproductions": lambda experiment: experiment.reproductions,
    "--searches": lambda experiment: experiment.search.searches,
    "--compare": lambda experiment: experiment.primary.compare if experiment.primary else "all",
    "--folds": lambda experiment: experiment.folds,
    "--seed": lambda experiment: experiment.seed,
    "--image-size": lambda experiment: experiment.images.crop,
    "--epochs": lambda experiment: experiment.training.max_epochs,
    "--lr": lambda experiment: experiment.training.optimizer.lr,
    "--batch-size": lambda experiment: experiment.training.batch_size,
    "--embedding-size": lambda experiment: experiment.embedding_size,
}
_FLAGS: dict[str, Callable[[Experiment], bool]] = {
    "--racing": lambda experiment: experiment.search.racing,
    "--subset": lambda experiment: experiment.dataset.subset,
    "--skip-broken-images": lambda experiment: experiment.dataset.skip_broken_images,
}


def rerun_commands(name: str, measured: MeasuredExperiment) -> tuple[Command, ...]:
    """Return the commands that get the code, repeat the experiment, and draw its table and its page.

    If the suite has a file for the experiment, options give the differences from this file. If options cannot express
    the differences, the commands contain a complete file, with all defaults, so that it stays exact when defaults
    change.
    """
    experiment = measured.summary.experiment
    commands, in_file = _code(measured), _reachable_file(name, experiment)
    if in_file is None:
        # A panel becomes a separate file.
        name = name.replace("/", "_")
        text = yaml.safe_dump(_without_empty(experiment), sort_keys=False, allow_unicode=True, width=100)
        purpose = f"The suite has no file with these settings. Save them as {name}.yaml; this is the experiment as run"
        commands.append(Command(text, f"{purpose} (your own method cards are not included):"))
    commands += _users_files(measured, experiment)
    source = shlex.quote(f"{name}.yaml" if in_file is None else name)
    line = ["python -m reproduce run", source, *_arguments(experiment, in_file or experiment)]
    quoted_name = shlex.quote(name)
    return (
        *commands,
        Command(" ".join(line), "Run it; trainings in the store are not repeated:"),
        Command(f"python -m reproduce table {quoted_name} --format csv", "Draw the table from the store:"),
        Command(f"python -m reproduce report {quoted_name}", "Write this page from the store:"),
    )


def _users_files(measured: MeasuredExperiment, experiment: Experiment) -> list[Command]:
    """Return the user's cards, classes and metrics that the commands need, as a text that is not run."""
    cards = [method for method in experiment.methods if method.endswith(CARD_FILES)]
    classes = [name for spec, _ in measured.trainings.values() for name in sources_of_training(spec)]
    metrics = [name for name in experiment.metrics if SourceName.parse(name)]
    needed = list(dict.fromkeys([*cards, *classes, *metrics]))
    purpose = "The run used these files or modules of the user; copies of the files are in `sources` in the artifacts:"
    return [Command("\n".join(f"# {name}" for name in needed), purpose)] if classes or metrics else []


def _reachable_file(name: str, experiment: Experiment) -> Experiment | None:
    """Return the experiment of the suite's file of that name, if options can turn it into the given experiment."""
    in_file = suite_experiment(name)
    if isinstance(in_file, str):
        return None
    different = {deviation.key for deviation in compared(experiment, in_file)}
    reachable = {"search.trials", "folds", "images.crop", "embedding_size"}
    reachable |= {"training.max_epochs", "training.optimizer.lr", "training.batch_size"}
    if experiment.search.racing:
        reachable.add("search.racing")
    if "images.crop" in different:
        # The option for the crop also scales the resize before it.
        reachable |= {"images.resize", "images.evaluation_resize"}
    return in_file if different <= reachable else None


def _arguments(experiment: Experiment, in_file: Experiment) -> list[str]:
    arguments = [] if experiment.dataset.name in EMBEDDED else ["--data", "FOLDER"]
    for option, value_of in _OPTIONS.items():
        if value_of(experiment) != value_of(in_file):
            arguments += [option, shlex.quote(str(value_of(experiment)))]
    return arguments + [flag for flag, is_set in _FLAGS.items() if is_set(experiment) and not is_set(in_file)]


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
    settings = experiment.without_folder()
    # The hash is not written in experiment files.
    parsed = {name: SourceName.parse(name) for name in experiment.metrics}
    settings["metrics"] = [str(replace(source, digest=None)) if source else name for name, source in parsed.items()]
    return {key: value for key, value in settings.items() if value is not None and value not in ([], {})}
