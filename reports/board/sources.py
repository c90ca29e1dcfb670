"""An experiment as a part of a board: its values, and what it must have in common with others to stand beside them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from results.spec.data_choice import FEATURES
from results.spec.experiment_spec import PrimaryScore
from results.spec.trunk_spec import TrunkSpec
from results.statistics.comparison import MethodValues
from results.statistics.primary_comparison import method_values, primary_score
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted

_USERS_DATA = ("folder", FEATURES)
"""Names of datasets that stand for any data of a user."""

_TITLES = {
    "cub200": "CUB-200-2011",
    "cars196": "Cars196",
    "sop": "Stanford Online Products",
    "inshop": "In-Shop",
}
_OF_THE_METHODS = {"title", "methods", "variants", "settings", "changes", "primary", "peeking_metric", "recordings"}
_CHANGES_NO_SCORE = {"metrics", "test_curves"}


@dataclass(frozen=True)
class Source:
    """An experiment of a board.

    Attributes:
        name: Its name.
        place: The store, or the file of a lab, that it is from.
    """

    name: str
    place: str
    measured: MeasuredExperiment

    @cached_property
    def score(self) -> PrimaryScore:
        """Its primary score."""
        return primary_score(self.measured)

    @cached_property
    def values(self) -> dict[str, MethodValues]:
        """Values of the methods that train; a trunk that is only tested has no place on a board."""
        trained = {record.method for record in self.measured.records if record.iterations != 0}
        return {key: own for key, own in method_values(self.measured, self.score).items() if key in trained}

    @property
    def finished(self) -> bool:
        """Whether all searches and runs of all planned methods are there."""
        return not any(own.missing for own in method_values(self.measured, self.score).values())

    @property
    def dataset(self) -> str:
        """Name of the dataset; of a user's data with the name of the experiment."""
        name = self.measured.summary.dataset
        return self._part(f"{name} ({self.name})" if name in _USERS_DATA else name)

    @property
    def title(self) -> str:
        """Title of the dataset; of a user's data the name of the experiment."""
        name = self.measured.summary.dataset
        return self._part(self.name if name in _USERS_DATA else _TITLES.get(name, name))

    def _part(self, name: str) -> str:
        return f"part of {name}" if self.measured.summary.experiment.dataset.subset else name

    @property
    def data(self) -> tuple[str, str]:
        """What tells datasets apart. Two parts of one dataset are one."""
        name = self.measured.summary.dataset
        return name, self.measured.records[0].data_fingerprint if name in _USERS_DATA else ""

    @property
    def conditions(self) -> dict[str, str]:
        """What experiments on one board have in common, in words."""
        experiment = self.measured.summary.experiment
        trunk = experiment.conditions.trunk.model_copy(update={"width": None})
        return {
            "score": f"{self.score.embeddings} {self.score.metric}",
            "protocol": experiment.protocol,
            "trunk": _trunk_words(trunk),
            "embedding size": str(experiment.conditions.embedding_size),
        }

    @property
    def budget(self) -> str:
        """Searches, trials and runs of each method in words."""
        summary = self.measured.summary
        searches = summary.experiment.search.searches
        of_search = f"{searches} x {summary.trials} trials, " if summary.trials else "given settings, "
        return f"{of_search}{counted(summary.reproductions, 'run')}" + (" each" if searches > 1 else "")

    def joins(self, other: "Source") -> bool:
        """Whether two experiments differ in their methods alone."""
        return self._all_but_methods() == other._all_but_methods()

    def _all_but_methods(self) -> list[object]:
        excluded: dict[str, bool | dict[str, bool]] = dict.fromkeys(_OF_THE_METHODS | _CHANGES_NO_SCORE, True)
        experiment = self.measured.summary.experiment.model_dump(
            mode="json", exclude={**excluded, "dataset": {"root": True}}
        )
        records = self.measured.records
        return [self.score.metric, self.score.embeddings, records[0].data_fingerprint, experiment]


def _trunk_words(trunk: TrunkSpec) -> str:
    parts = [f"{'frozen' if trunk.frozen else 'trained'} {trunk.name}", f"{trunk.weights} weights"]
    defaults = TrunkSpec(name=trunk.name, weights=trunk.weights, frozen=trunk.frozen)
    changed = trunk.model_dump(exclude={"name", "weights", "frozen"})
    parts += [f"{key} {value}" for key, value in changed.items() if value != getattr(defaults, key)]
    return ", ".join(parts)


def with_all_methods(measured: MeasuredExperiment, titles: Mapping[str, str]) -> MeasuredExperiment:
    """Add the complete methods of earlier starts to an experiment's summary.

    Args:
        measured: An experiment with the runs of all methods of all its starts.
        titles: Titles of methods.
    """
    summary = measured.summary
    planned = summary.reproductions * (summary.experiment.search.searches if summary.trials else 1)
    counts = Counter(record.method for record in measured.records)
    others = sorted(key for key, runs in counts.items() if key not in summary.methods and runs >= planned)
    experiment = summary.experiment.model_copy(update={"methods": (*summary.experiment.methods, *others)})
    added: dict[str, Any] = {
        "experiment": experiment,
        "methods": {**summary.methods, **{key: titles.get(key, key) for key in others}},
        "runs": {**summary.runs, **dict.fromkeys(others, planned)},
    }
    records = tuple(record for record in measured.records if record.method in added["methods"])
    return replace(measured, summary=summary.model_copy(update=added), records=records)
