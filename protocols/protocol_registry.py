"""The protocols by name, and the trainings that each makes."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from protocols.datasets.splits import FoldClasses, trainval_of
from protocols.jobs import Lab
from protocols.mlrc import mlrc, reproductions
from protocols.standard import has_choice, planned_runs, standard
from protocols.study import RunningSearch, Study
from results.records.records import RunRecord
from results.spec.training_spec import FoldSpec


@dataclass(frozen=True)
class ProtocolEntry:
    """A protocol: from the study of a row to its run records.

    Attributes:
        split: Name of the class split for experiments that name none.
        run: Runs one search of a row and its reproductions in a lab, and returns the run records.
        planned: The trainings of each reproduction of a setting. One whose epoch others choose has the last epoch.
        models: Number of trainings of one reproduction: those of the folds, and one on all training classes.
    """

    split: str
    run: Callable[[RunningSearch, Lab], list[RunRecord]]
    planned: Callable[[Study, dict[str, JsonValue]], list[tuple[FoldSpec, ...]]]
    models: Callable[[Study], tuple[int, int]]

    def trainings_of(self, study: Study) -> int:
        """Return the number of trainings of one row: of all trials and runs of its searches; less with racing."""
        row = study.row
        return row.searches * (study.setup.folds * row.trials + row.reproductions * sum(self.models(study)))

    def kinds(self, study: Study) -> list[FoldClasses]:
        """Return the classes of an example of each kind of training: of a fold, and on all training classes."""
        (of_folds, on_all), first = self.models(study), study.setup.split.folds[0]
        folds = [first] if of_folds or study.row.trials else []
        return folds + [FoldClasses(first.fold, trainval_of(first), ())] * on_all

    def foreseeable(self, study: Study) -> list[str]:
        """List the fingerprints of the trainings that are determined now: later trials depend on earlier scores."""
        names: list[str] = []
        for search in study.searches:
            names += search.known_trainings()
            if (found := search.found_hyperparameters()) is not None:
                for run in self.planned(search, found):
                    names += [spec.fingerprint for spec in run if spec.checkpoint_epoch is None or len(run) == 1]
        return names


PROTOCOLS = {
    "mlrc": ProtocolEntry("mlrc", mlrc, reproductions, lambda study: (study.setup.folds, 0)),
    "standard": ProtocolEntry(
        "conventional", standard, planned_runs, lambda study: (study.setup.folds * has_choice(study), 1)
    ),
}
