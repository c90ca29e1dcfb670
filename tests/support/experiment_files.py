"""Experiment files, read for tests."""

from collections.abc import Mapping
from typing import Any

from reproduce.config.experiment_file import load_experiments
from results.spec.experiment_spec import Experiment


def load_experiment(name: str, overrides: Mapping[str, Any]) -> Experiment:
    """The experiment of a file, or of one of its panels."""
    (experiment,) = load_experiments(name, overrides).values()
    return experiment
