"""Sentences for captions: which runs a figure shows, and how their epochs were chosen."""

from collections.abc import Mapping

from reports.page.material import Material

_CHOICES = {
    "standard": "The epoch of every run is chosen on validation classes, not on the test classes.",
    "mlrc": "The checkpoint of every fold is chosen on the validation classes of this fold.",
}


def epoch_choice(materials: Mapping[str, Material]) -> str:
    """Say how the epochs of the runs were chosen; empty for experiments of another version of the suite."""
    protocols = dict.fromkeys(material.measured.summary.protocol for material in materials.values())
    return " ".join(_CHOICES[protocol] for protocol in protocols if protocol in _CHOICES)


def may_show_published(material: Material, dataset: str) -> bool:
    """Whether values that a paper published on `dataset` may stand beside the runs.

    They may if the runs are on the whole dataset and under the settings of the suite's own file.
    """
    experiment = material.measured.summary.experiment
    if experiment is None or experiment.dataset.subset or experiment.dataset.name != dataset:
        return False
    return not material.deviations
