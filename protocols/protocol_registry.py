"""The protocols by name."""

from collections.abc import Callable
from dataclasses import dataclass

from protocols import mlrc, standard
from protocols.jobs import Work
from protocols.search.study import Study
from results.records import RunRecord
from results.training_spec import FoldSpec


@dataclass(frozen=True)
class Protocol:
    """How the runs of a method are made.

    Attributes:
        split: Name of the class split that an experiment gets if it names none.
        run: Asks for the trainings and test evaluations of a study's method.
        trainings_of: How many trainings that takes in all.
        foreseeable: The trainings that can be named before anything is run, or with what was run so far.
    """

    split: str
    run: Callable[[Study], Work[list[RunRecord]]]
    trainings_of: Callable[[Study], int]
    foreseeable: Callable[[Study], list[FoldSpec]]


PROTOCOLS = {
    mlrc.PROTOCOL: Protocol(mlrc.SPLIT, mlrc.mlrc, mlrc.trainings_of, mlrc.foreseeable),
    standard.PROTOCOL: Protocol(standard.SPLIT, standard.standard, standard.trainings_of, standard.foreseeable),
}
