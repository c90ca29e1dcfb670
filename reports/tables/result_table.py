"""Table of an experiment's results: one row per method, means over searches or runs with their intervals."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reports.tables.differences import asked_pairs, leading
from reports.tables.table import (
    PERCENT,
    Cell,
    Column,
    NumberFormat,
    Row,
    Sheet,
    Table,
    Value,
    measured_cell,
)
from results.records.experiment_summary import ExperimentSummary, LeftOut
from results.records.records import RunRecord
from results.spec.data_choice import samples_word
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.source_names import SourceName
from results.statistics.comparison import ComparisonResult, MethodValues, place_words
from results.statistics.findings import findings_of
from results.statistics.intervals import Interval
from results.statistics.primary_comparison import (
    primary_comparison,
    primary_score,
    score_intervals,
    unit_of,
    unit_values,
)
from results.statistics.readings import readings_of
from results.store.experiment_results import MeasuredExperiment
from results.store.frame import EMBEDDING_KINDS, EmbeddingKind
from results.wording import counted, joined

ResultColumn = tuple[EmbeddingKind, str]
"""Kind of embeddings, and metric."""

RESULT_COLUMNS: tuple[ResultColumn, ...] = tuple(
    (kind, metric) for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS
)
"""The columns of results in the order of the table. The number of runs is in a column before them."""

_HEADER = (
    "method",
    "variant",
    "metric",
    "dimensions",
    "mean",
    "ci95_half_width",
    "n",
    "unit",
    "runs",
    "rank_low",
    "rank_high",
)
_TITLES = {
    **HEADLINE_METRICS,
    "map@1000": "mAP@1000",
    "nmi": "NMI",
    "spectral_decay": "spectral decay",
    "class_concentration_variance": "concentration variance",
    "total_training_steps": "steps",
}
_IN_PERCENT = ("recall@", "map@", "nmi")
_AS_COMPUTED = NumberFormat(digits=4, significant=True)


class _Scores(NamedTuple):
    """A column of scores: its variant and metric in the sheet, its heading, its intervals by method, its format."""

    variant: str
    metric: str
    column: Column
    intervals: Mapping[str, Interval]
    form: NumberFormat = PERCENT


def metric_title(name: str) -> str:
    """Return a short title of a metric of the suite, such as `R@2` for `recall@2`."""
    return _TITLES.get(name, name.replace("recall", "R"))


def table_of(measured: MeasuredExperiment) -> Table:
    """Build the table of results: percentages with the half width of the 95 % interval.

    A method without runs has no row; a note names it. Only values of the primary score are bold. If runs have scores
    after the last epoch or of further metrics, the last columns show them. The sheet has one row per cell, with
    fractions of 1.
    """
    records, summary, comparison = measured.records, measured.summary, primary_comparison(measured)
    titles, findings, units = measured.summary.methods, findings_of(measured), _units(measured)
    further = _further_titles(records)
    scores = [*_headline_scores(measured), *_last_epoch_scores(measured), *_further_scores(measured, further)]
    ranks = comparison.final_ranks if comparison else {}
    last_epoch = any(one.variant == "last_epoch" for one in scores)
    rows: list[Row] = []
    left_out: dict[LeftOut, list[str]] = {}
    values: list[tuple[Value, ...]] = []
    for key in summary.methods:
        own = [record for record in records if record.method == key]
        if not own:
            continue
        suffix = "" if own[0].dimensions == _trained_dimensions(records) else f" ({own[0].dimensions}-dim)"
        reason = summary.left_out.get(key)
        flagged = "*" if any(run.flags for run in own) else ""
        cells = [_score_cell(measured, one, own, comparison) for one in scores]
        sign = reason.sign if reason else ""
        rows.append(Row(titles[key] + suffix, (_count(measured, key, units[key]), *cells), key, sign + flagged))
        if reason:
            left_out.setdefault(reason, []).append(rows[-1].head)
        values += _values(measured, own, scores, ranks.get(key, (None, None)))
    count = "searches × runs" if unit_of(summary.experiment) == "search" else "n"
    return Table(
        title=summary.title,
        caption=_caption(measured, comparison),
        columns=(Column(count), *(one.column for one in scores)),
        rows=tuple(rows),
        own_sheet=Sheet(_HEADER, tuple(values)),
        notes=(
            *(f"{reason.sign} {joined(heads)}: {reason.note}" for reason, heads in left_out.items()),
            *(finding.sentences for finding in findings if finding.level != "note"),
            *_single_searches(measured, comparison),
        ),
        remarks=(
            *_reading(measured, ranked=bool(ranks), last_epoch=last_epoch),
            *_about_further(further),
            *(finding.sentences for finding in findings if finding.level == "note"),
        ),
    )


def _headline_scores(measured: MeasuredExperiment) -> Iterator[_Scores]:
    for kind, metric in RESULT_COLUMNS:
        intervals = score_intervals(measured, metric, kind)
        yield _Scores(kind, metric, Column(HEADLINE_METRICS[metric], group=kind), intervals)


def _last_epoch_scores(measured: MeasuredExperiment) -> Iterator[_Scores]:
    if not any(record.last_epoch for record in measured.records):
        return
    for metric, title in HEADLINE_METRICS.items():
        intervals = score_intervals(measured, metric, "last_epoch")
        yield _Scores("last_epoch", metric, Column(title, group="last epoch"), intervals)


def _further_scores(measured: MeasuredExperiment, titles: Mapping[str, str]) -> Iterator[_Scores]:
    """The columns of `recall@2`, `nmi` and the like, and of functions of the user."""
    for kind in EMBEDDING_KINDS:
        for name, title in titles.items():
            intervals = score_intervals(measured, name, kind)
            form = PERCENT if name.startswith(_IN_PERCENT) else _AS_COMPUTED
            metric = title if SourceName.parse(name) else name
            yield _Scores(kind, metric, Column(title, group=f"further, {kind}"), intervals, form)


def _further_titles(records: Sequence[RunRecord]) -> dict[str, str]:
    """Short titles of the further metrics by name: of a user's metric its function, with the file if two are alike."""
    names = list(dict.fromkeys(name for record in records for name in record.metrics_separated))
    short = {name: parsed.attribute if (parsed := SourceName.parse(name)) else metric_title(name) for name in names}
    alike = [title for title in short.values() if list(short.values()).count(title) > 1]
    return {name: name if title in alike and SourceName.parse(name) else title for name, title in short.items()}


def _about_further(titles: Mapping[str, str]) -> Iterator[str]:
    as_computed = [title for name, title in titles.items() if not name.startswith(_IN_PERCENT)]
    if as_computed:
        yield f"Not percentages: {', '.join(as_computed)}."
    own = [f"{title} is {name}" for name, title in titles.items() if SourceName.parse(name)]
    if own:
        yield f"Metrics of the user: {'; '.join(own)}."


def _score_cell(
    measured: MeasuredExperiment, scores: _Scores, own: Sequence[RunRecord], comparison: ComparisonResult | None
) -> Cell:
    """A mean with its interval; in the column of the primary score with the method's rank, bold if it leads."""
    key, primary, note = own[0].method, primary_score(measured), ""
    is_primary = (scores.variant, scores.metric) == (primary.embeddings, primary.metric)
    if is_primary and comparison and (places := comparison.final_ranks.get(key)):
        note = f"rank {place_words(places)}"
    if is_primary:
        means = {row: interval.mean for row, interval in scores.intervals.items()}
        families = readings_of(measured.summary.experiment.variants, means)
        note = ", ".join([*filter(None, [note]), *(f"readings {own.range}" for own in families if key in own.rows)])
    if scores.variant == "last_epoch":
        known = sum(run.last_epoch is not None for run in own)
        note = f"({known} of {len(own)} runs)" if 0 < known < len(own) else ""
    leads = is_primary and key in leading(comparison)
    return measured_cell(scores.intervals.get(key), scores.form, leads=leads, note=note)


def _values(
    measured: MeasuredExperiment,
    own: Sequence[RunRecord],
    scores: Sequence[_Scores],
    ranks: tuple[int | None, int | None],
) -> Iterator[tuple[Value, ...]]:
    """Return the sheet's rows of a method, without those that have no value."""
    models, dimensions, primary = len(own[0].fold_fingerprints), own[0].dimensions, primary_score(measured)
    unit = "search" if is_by_search(measured, own[0].method) else "run"
    for one in scores:
        if interval := one.intervals.get(own[0].method):
            size = dimensions * (models if one.variant == "concatenated" else 1)
            numbers = (interval.mean, interval.half_width, interval.n, unit, len(own))
            is_primary = (one.variant, one.metric) == (primary.embeddings, primary.metric)
            yield (own[0].method, one.variant, one.metric, size, *numbers, *(ranks if is_primary else (None, None)))


def _units(measured: MeasuredExperiment) -> dict[str, MethodValues]:
    score = primary_score(measured)
    return unit_values(measured, measured.values(score.metric, score.embeddings))


def is_by_search(measured: MeasuredExperiment, key: str) -> bool:
    """Whether a method's values are means of searches."""
    summary = measured.summary
    whole = summary.experiment.search.searches * summary.reproductions
    return unit_of(summary.experiment) == "search" and summary.runs[key] >= whole


def _count(measured: MeasuredExperiment, key: str, own: MethodValues) -> Cell:
    """The number of runs; of complete searches and their runs as in `3 × 5` if searches are repeated."""
    if is_by_search(measured, key):
        return Cell(len(own.units), written=f"{len(own.units)} × {measured.summary.reproductions}")
    return Cell(own.runs, written=counted(own.runs, "run") if unit_of(measured.summary.experiment) == "search" else "")


def _caption(measured: MeasuredExperiment, comparison: ComparisonResult | None) -> str:
    if not measured.records:
        return "The store has no run of this experiment."
    first, summary, score = measured.records[0], measured.summary, primary_score(measured)
    name = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}"
    compared = f"No two methods are compared in {name}."
    if comparison is not None and comparison.pairs:
        compared = f"Compared in the primary score, {name}: {asked_pairs(comparison, measured.summary.methods)}."
        if comparison.interim:
            compared += " Interim: searches or runs are missing, so no value is bold."
    return (
        f"Dataset {first.dataset}: {first.test_images} {samples_word(first.dataset)} of {first.test_classes} test "
        f"classes. Percentages: mean ± half width of the 95 % interval over {_units_words(summary)}. {compared}"
    )


def _units_words(summary: ExperimentSummary) -> str:
    match unit_of(summary.experiment):
        case "search":
            return f"{summary.experiment.search.searches} searches"
        case "single search":
            return "n runs of the settings that one search found"
        case "run":
            return "n runs"


def _reading(measured: MeasuredExperiment, *, ranked: bool, last_epoch: bool) -> list[str]:
    """How to read the columns and the intervals, and where the settings come from."""
    if not measured.records:
        return []
    summary, first, dimensions = measured.summary, measured.records[0], _trained_dimensions(measured.records)
    folds = len(first.fold_fingerprints)
    if summary.trials == 0 or not measured.searched_methods:
        given = "Hyperparameters: given, not searched."
    else:
        given = f"Hyperparameters: best of {counted(summary.trials, 'trial')} by validation MAP@R."
    sentences = [
        f"{given} Separated: mean of {folds} {dimensions}-dim models; concatenated: their {folds * dimensions}-dim "
        f"ensemble. Base seed {first.seed}."
    ]
    if unit_of(summary.experiment) == "search":
        sentences.append(
            "An interval takes the mean of a search's runs as one value. Its variance is pooled over the methods, or "
            "the method's own if that is larger."
        )
    if ranked:
        sentences.append("Rank: the places that a method can have by this comparison, all of them at once at 95 %.")
    if last_epoch:
        sentences.append("Last epoch: the same trainings at their end, without a choice of the epoch.")
    return sentences


def _single_searches(measured: MeasuredExperiment, comparison: ComparisonResult | None) -> Iterator[str]:
    """The means of every method's complete searches in the primary score, if searches are repeated."""
    if comparison is None or comparison.unit != "search":
        return
    titles, score = measured.summary.methods, primary_score(measured)
    means = [
        f"{titles[key]} {', '.join(f'{100 * unit:.2f}' for unit in values.units)}"
        for key, values in comparison.values.items()
        if values.units and values.searched
    ]
    if means:
        yield f"Single searches, {score.embeddings} {HEADLINE_METRICS[score.metric]}: {'; '.join(means)}."


def _trained_dimensions(records: Sequence[RunRecord]) -> int:
    """Return the dimensions of one fold's embedding. The untrained trunk has other dimensions and no search."""
    return next((record for record in records if record.hyperparameters), records[0]).dimensions
