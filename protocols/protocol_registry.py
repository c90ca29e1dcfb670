"""The protocols by name."""

from collections.abc import Callable
from dataclasses import dataclass

from protocols import mlrc, standard
from protocols.jobs import Work
from protocols.search.study import Study
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class Protocol:
    """A protocol: from the study of a method to its run records.

    Attributes:
        split: Name of the class split for experiments that name none.
        run: Generator that yields the trainings and test evaluations of a method and returns its run records.
        trainings_of: Total number of trainings for one method.
        foreseeable: The trainings that are determined by the results in the store.
        kinds: One example of each kind of training that the protocol makes, for estimates of their length.
    """

    split: str
    run: Callable[[Study], Work[list[RunRecord]]]
    trainings_of: Callable[[Study], int]
    foreseeable: Callable[[Study], list[FoldSpec]]
    kinds: Callable[[Study], list[FoldSpec]]


PROTOCOLS = {
    mlrc.PROTOCOL: Protocol(mlrc.SPLIT, mlrc.mlrc, mlrc.trainings_of, mlrc.foreseeable, mlrc.kinds),
    standard.PROTOCOL: Protocol(
        standard.SPLIT, standard.standard, standard.trainings_of, standard.foreseeable, standard.kinds
    ),
}
