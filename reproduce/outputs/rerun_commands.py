"""The exact commands that run an experiment again; no torch is needed."""

import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from reports.page.content import Command
from reproduce.config.deviations import departures, written
from results.experiment_results import MeasuredExperiment

_OPTIONS = {
    "methods": "--methods",
    "search.trials": "--trials",
    "reproductions": "--reproductions",
    "folds": "--folds",
    "seed": "--seed",
    "images.crop": "--image-size",
}
_FLAGS = {"dataset.subset": "--subset", "dataset.skip_broken_images": "--skip-broken-images"}
_NO_FOLDER = {"glyphs"}
"""Datasets that are made, not located."""


def commands_again(name: str, measured: MeasuredExperiment) -> tuple[Command, ...]:
    """How to get the code, run the experiment as it was run, and draw its tables and this page.

    Settings that the experiment's file says the same are left to it; everything else is spelled out, whether it is a
    default or not, so that the line stays exact when defaults change.
    """
    settings = measured.summary.get("settings")
    if not settings:
        return ()
    found, file = _code(measured), _suites_file(name, settings)
    if file is None:
        # A panel is written out as a file of its own.
        name = name.replace("/", "_")
        text = yaml.safe_dump(_without_empty(settings), sort_keys=False, allow_unicode=True, width=100)
        purpose = f"No file of the suite says this. Keep it as {name}.yaml; it is the experiment as it was run"
        found.append(Command(text, f"{purpose} (method cards of one's own are not in it):"))
    called = shlex.quote(f"{name}.yaml" if file is None else name)
    line = ["python -m reproduce run", called, *_arguments(settings, settings if file is None else file)]
    found.append(Command(" ".join(line), "Run it; what is in the store is not trained again:"))
    found.append(Command(f"python -m reproduce table {shlex.quote(name)} --format csv", "The table, from the store:"))
    found.append(Command(f"python -m reproduce report {shlex.quote(name)}", "This page, from the store:"))
    return tuple(found)


def _suites_file(name: str, settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What the suite's file of that name says, if options can bring it to these settings."""
    file = written(name)
    if isinstance(file, str):
        return None
    apart = {phrase.partition(" ")[0] for phrase in departures(name, settings)}
    reachable = {"search.trials", "folds", "images.crop"}
    if "images.crop" in apart:
        # The option for the crop scales the resize before it.
        reachable |= {"images.resize", "images.evaluation_resize"}
    return file if apart <= reachable else None


def _arguments(settings: Mapping[str, Any], file: Mapping[str, Any]) -> list[str]:
    """Options for what the file does not say, or says otherwise."""
    dataset = settings["dataset"]["name"]
    found = [] if dataset in _NO_FOLDER else ["--data", "FOLDER"]
    for key, option in _OPTIONS.items():
        ran = _at(settings, key)
        if ran is not None and ran != _at(file, key):
            found += [option, shlex.quote(",".join(ran) if isinstance(ran, list) else str(ran))]
    found += [flag for key, flag in _FLAGS.items() if _at(settings, key) and not _at(file, key)]
    return found


def _at(content: Mapping[str, Any], key: str) -> Any:
    value: Any = content
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _code(measured: MeasuredExperiment) -> list[Command]:
    """The checkout, where all runs were made with one commit that holds all of the code."""
    made = {(run.provenance.commit, run.provenance.tree_dirty) for run in measured.records}
    if len(made) != 1:
        return []
    ((commit, dirty),) = made
    if dirty or commit == "unknown":
        return []
    return [Command(f"git checkout {commit}", "The code that the runs were made with, in a clone of the suite:")]


def _without_empty(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None and value not in ([], {})}
