"""The protocols by name, and the trainings that each makes."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from protocols.jobs import Lab
from protocols.mlrc import mlrc, reproductions
from protocols.standard import planned_runs, standard
from protocols.study import Study
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class ProtocolEntry:
    """A protocol: from the study of a method to its run records.

    Attributes:
        split: Name of the class split for experiments that name none.
        run: Runs one search of a method and its reproductions in a lab, and returns the run records.
        planned: The trainings of each reproduction of a setting. One whose epoch others choose has the last epoch.
    """

    split: str
    run: Callable[[Study, Lab], list[RunRecord]]
    planned: Callable[[Study, dict[str, JsonValue]], list[tuple[FoldSpec, ...]]]

    def trainings_of(self, study: Study) -> int:
        """Return the number of trainings for one method: of all trials and runs of its searches; less with racing."""
        runs = sum(map(len, self.planned(study, study.method.given)))
        return len(study.searches()) * (study.setup.folds * study.n_trials + runs)

    def foreseeable(self, study: Study) -> list[str]:
        """List the fingerprints of the trainings that are determined now: later trials depend on earlier scores."""
        names: list[str] = []
        for search in study.searches():
            names += search.known_trainings()
            if (found := search.found_hyperparameters()) is not None:
                for run in self.planned(search, found):
                    names += [spec.fingerprint for spec in run if spec.checkpoint_epoch is None or len(run) == 1]
        return names

    def kinds(self, study: Study) -> list[FoldSpec]:
        """Return an example of each kind of training: of a fold, and on all training classes."""
        trials = study.setup.fold_specs(study.method.method, "reproduction", 0) if study.n_trials else ()
        kinds: dict[bool, FoldSpec] = {}
        for spec in (*trials, *self.planned(study, study.method.given)[0]):
            kinds.setdefault(spec.checkpoint_epoch is None, spec)
        return list(kinds.values())


PROTOCOLS = {
    "mlrc": ProtocolEntry("mlrc", mlrc, reproductions),
    "standard": ProtocolEntry("conventional", standard, planned_runs),
}
