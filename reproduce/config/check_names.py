"""Checks the names in an experiment against the registries of datasets, trunks and metrics."""

from protocols.datasets.dataset import DataError
from protocols.datasets.dataset_registry import entry_of
from protocols.metrics.metric_registry import check_metric_names
from protocols.source_files import settled_name
from protocols.trunks.trunk_registry import trunk_entry
from protocols.trunks.weights import TrunkError
from reproduce.errors import InputError
from results.experiment_spec import Experiment
from results.trunk_spec import NO_TRUNK


def check_names(name: str, experiment: Experiment) -> None:
    """Check that the dataset, the trunk and the metrics of an experiment exist.

    Methods are checked when their cards are opened (`checked_card`).

    Args:
        name: The experiment's name, for the message.
        experiment: The experiment, as read from its file.

    Raises:
        InputError: A name is unknown. The message is one line with the key, the unknown name and the known names.
    """
    key = "dataset"
    try:
        entry_of(experiment.dataset.name)
        key = "trunk"
        if experiment.trunk.name != NO_TRUNK:
            trunk_entry(experiment.trunk)
        key = "metrics"
        check_metric_names(experiment.metrics)
    except (DataError, TrunkError, ValueError) as error:
        raise InputError(f"{name}: key {key!r}: {error}") from error


def with_settled_metrics(experiment: Experiment) -> Experiment:
    """Return a checked experiment with the hashes of their sources in the names of users' metrics."""
    metrics = tuple(settled_name(metric) for metric in experiment.metrics)
    return experiment if metrics == experiment.metrics else experiment.model_copy(update={"metrics": metrics})
