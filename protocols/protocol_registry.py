"""The protocols by name."""

from collections.abc import Callable
from dataclasses import dataclass

from protocols import mlrc, standard
from protocols.jobs import Lab
from protocols.search.study import Study
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class Protocol:
    """A protocol: from the study of a method to its run records.

    Attributes:
        split: Name of the class split for experiments that name none.
        run: Runs one search of a method and its reproductions in a lab, and returns the run records.
        trainings_of: Total number of trainings for one method.
        foreseeable: The trainings that are determined by the results in the store.
        kinds: One example of each kind of training that the protocol makes, for estimates of their length.
    """

    split: str
    run: Callable[[Study, Lab], list[RunRecord]]
    trainings_of: Callable[[Study], int]
    foreseeable: Callable[[Study], list[FoldSpec]]
    kinds: Callable[[Study], list[FoldSpec]]


PROTOCOLS = {
    mlrc.PROTOCOL: Protocol(mlrc.SPLIT, mlrc.mlrc, mlrc.trainings_of, mlrc.foreseeable, mlrc.kinds),
    standard.PROTOCOL: Protocol(
        standard.SPLIT, standard.standard, standard.trainings_of, standard.foreseeable, standard.kinds
    ),
}
