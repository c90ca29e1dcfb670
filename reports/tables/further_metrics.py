"""The further metrics of an experiment as columns of its table: `recall@2`, `nmi`, and functions of the user."""

from collections.abc import Sequence

from reports.tables.table import PERCENT, Cell, Column, NumberFormat, measured_cell
from results.records.records import RunRecord
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.source_names import SourceName
from results.statistics.primary_comparison import method_intervals
from results.statistics.run_values import EMBEDDING_KINDS, values_by_run
from results.store.experiment_results import MeasuredExperiment

_TITLES = {
    **HEADLINE_METRICS,
    "map@1000": "mAP@1000",
    "nmi": "NMI",
    "spectral_decay": "spectral decay",
    "density": "density",
    "class_concentration_variance": "concentration variance",
    "uniformity": "uniformity",
    "total_training_steps": "steps",
}
_IN_PERCENT = ("recall@", "map@", "nmi")
_AS_COMPUTED = NumberFormat(digits=4, significant=True)


def metric_title(name: str) -> str:
    """Return a short title of a metric of the suite, such as `R@2` for `recall@2`."""
    return _TITLES.get(name, name.replace("recall", "R"))


class FurtherMetrics:
    """The columns of an experiment's further metrics, behind those of the headline metrics.

    Args:
        measured: The experiment.

    Attributes:
        titles: Short title by name: that of the function for a user's metric, with its file if two are alike.
    """

    def __init__(self, measured: MeasuredExperiment) -> None:
        names = dict.fromkeys(name for record in measured.records for name in record.metrics_separated)
        self.titles = _short_titles(list(names))
        self._intervals = {
            (kind, name): method_intervals(
                measured, values_by_run([r for r in measured.records if name in r.metrics_separated], name, kind)
            )
            for kind in EMBEDDING_KINDS
            for name in self.titles
        }

    @property
    def columns(self) -> list[Column]:
        """One column for each kind of embeddings and each metric."""
        return [Column(self.titles[name], group=f"further, {kind}") for kind, name in self._intervals]

    def cells(self, own: Sequence[RunRecord]) -> list[Cell]:
        """Return the cells of a method, given its runs: percentages for fractions of 1, others as they are."""
        return [
            measured_cell(by_method.get(own[0].method), PERCENT if name.startswith(_IN_PERCENT) else _AS_COMPUTED)
            for (_, name), by_method in self._intervals.items()
        ]

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Kind of embeddings and metric of each column, for the files of values; a user's metric by its short title."""
        return [(kind, self.titles[name] if SourceName.parse(name) else name) for kind, name in self._intervals]

    @property
    def note(self) -> list[str]:
        """Say which columns are no percentages, and which functions the user's metrics are."""
        as_computed = [title for name, title in self.titles.items() if not name.startswith(_IN_PERCENT)]
        own = [f"{title} is {name}" for name, title in self.titles.items() if SourceName.parse(name)]
        said = [f"Not percentages: {', '.join(as_computed)}."] if as_computed else []
        return [*said, *([f"Metrics of the user: {'; '.join(own)}."] if own else [])]


def _short_titles(names: Sequence[str]) -> dict[str, str]:
    short = {name: parsed.attribute if (parsed := SourceName.parse(name)) else metric_title(name) for name in names}
    alike = [title for title in short.values() if list(short.values()).count(title) > 1]
    return {name: name if title in alike and SourceName.parse(name) else title for name, title in short.items()}
