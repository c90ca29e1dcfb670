"""The names in an experiment, checked against the registries of datasets, trunks and metrics."""

from protocols.datasets.dataset import DataError
from protocols.datasets.dataset_registry import entry_of
from protocols.metrics.metric_registry import check_metric_names
from protocols.trunks.trunk_registry import trunk_entry
from protocols.trunks.weights import TrunkError
from reproduce.errors import InputError
from results.experiment_spec import Experiment


def check_names(name: str, experiment: Experiment) -> None:
    """Checks that there are a dataset, a trunk and metrics of the names in an experiment.

    Methods are checked when their cards are opened (`checked_card`).

    Args:
        name: the experiment's name, for the message.
        experiment: as it was read from its file.

    Raises:
        InputError: one line with the key, the unknown name and the known names.
    """
    key = "dataset"
    try:
        entry_of(experiment.dataset.name)
        key = "trunk"
        trunk_entry(experiment.trunk)
        key = "metrics"
        check_metric_names(experiment.metrics)
    except (DataError, TrunkError, ValueError) as error:
        raise InputError(f"{name}: key {key!r}: {error}") from error
