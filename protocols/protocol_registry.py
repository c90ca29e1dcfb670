"""The protocols by name, and what a plan needs to know of each."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from protocols.jobs import Lab
from protocols.mlrc import mlrc, reproductions
from protocols.search.study import Study
from protocols.standard import has_choice, known_trainings, standard
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class Protocol:
    """A protocol: from the study of a method to its run records.

    Attributes:
        split: Name of the class split for experiments that name none.
        run: Runs one search of a method and its reproductions in a lab, and returns the run records.
        known: The trainings of each reproduction of a setting that are determined before any is made.
        final: Whether a run trains on all training classes in the end, after its folds chose the epoch.
    """

    split: str
    run: Callable[[Study, Lab], list[RunRecord]]
    known: Callable[[Study, dict[str, JsonValue]], list[tuple[FoldSpec, ...]]]
    final: bool

    def trainings_of(self, study: Study) -> int:
        """Return the number of trainings for one method: of all trials and runs of its searches; less with racing."""
        folds = study.setup.folds
        per_run = (folds if not self.final or has_choice(study) else 0) + self.final
        return len(study.searches()) * (folds * study.n_trials + per_run * study.n_reproductions)

    def foreseeable(self, study: Study) -> list[str]:
        """List the fingerprints of the trainings that are determined now: later trials depend on earlier scores."""
        names: list[str] = []
        for search in study.searches():
            names += search.known_trainings()
            hyperparameters = search.found_hyperparameters()
            if hyperparameters is not None:
                names += [spec.fingerprint for run in self.known(search, hyperparameters) for spec in run]
        return names

    def kinds(self, study: Study) -> list[FoldSpec]:
        """Return an example of each kind of training: of a fold, and on all training classes."""
        setup, method = study.setup, study.method.method
        folds = not self.final or has_choice(study) or study.n_trials
        kinds = [setup.fold_specs(method, "reproduction", 0)[0]] if folds else []
        last = setup.conditions.training.max_epochs
        return [*kinds, setup.final_spec(method, 0, last)] if self.final else kinds


PROTOCOLS = {
    "mlrc": Protocol("mlrc", mlrc, reproductions, final=False),
    "standard": Protocol("conventional", standard, known_trainings, final=True),
}
