"""A track: the protocol of one method in the scheduler, with the jobs that it waits for."""

from dataclasses import dataclass, field

from protocols.jobs import Job, Outcome, TrainJob, Work
from protocols.problem import Problem
from results.records.records import RunRecord


@dataclass(eq=False)
class MethodTrack:
    """The protocol of one method, the jobs that it waits for, and their outcomes by index.

    Attributes:
        method: Key of the method.
        problem: The method's problem.
        work: The protocol's run.
        studies: Names of the studies that its search writes to.
        jobs: The jobs that the protocol waits for.
        outcomes: Outcomes of these jobs by index.
        ahead: Trainings for idle workers, which the protocol may need next. It does not wait for them.
    """

    method: str
    problem: Problem
    work: Work[list[RunRecord]]
    studies: tuple[str, ...]
    jobs: list[Job] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    ahead: list[TrainJob] = field(default_factory=list)

    @property
    def has_all_outcomes(self) -> bool:
        """Whether the protocol can continue."""
        return len(self.outcomes) == len(self.jobs)

    def awaited(self, fingerprint: str) -> list[int]:
        """Return the indices of the jobs with this fingerprint that have no outcome yet."""
        return [i for i, job in enumerate(self.jobs) if i not in self.outcomes and job.fingerprint == fingerprint]

    def next_jobs(self) -> list[Job]:
        """Give the outcomes to the protocol, and return the jobs that it needs next; StopIteration has its runs."""
        return self.work.send([self.outcomes[index] for index in range(len(self.jobs))])
