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
    """How runs of a method are made. foreseeable: the trainings that are settled so far."""

    run: Callable[[Study], Work[list[RunRecord]]]
    trainings_of: Callable[[Study], int]
    foreseeable: Callable[[Study], list[FoldSpec]]


PROTOCOLS = {
    mlrc.PROTOCOL: Protocol(mlrc.mlrc, mlrc.trainings_of, mlrc.foreseeable),
    standard.PROTOCOL: Protocol(standard.standard, standard.trainings_of, standard.foreseeable),
}
