"""Records as flat pandas DataFrames, for export and for figures."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from results.records.records import FoldResult, RunRecord, Scores, TestCurve
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.source_names import SourceName
from results.spec.training_spec import FoldSpec
from results.statistics.run_values import EMBEDDING_KINDS


class Timing(NamedTuple):
    """A finished training, its number of iterations, and its duration in seconds."""

    spec: FoldSpec
    iterations: int
    seconds: float


@dataclass(frozen=True)
class ExportedRun:
    """A run of an experiment.

    Attributes:
        name: Name of the experiment; empty, as all that follows, for a run that is no longer in any.
        experiment: Its fingerprint, which stands for all its settings.
        sources: Names of the run's classes that come from a user's file or module, with their hashes.
    """

    record: RunRecord
    name: str = ""
    experiment: str = ""
    title: str | None = None
    trials: int | None = None
    searches: int | None = None
    sources: tuple[str, ...] = ()


_OF_EXPERIMENT = ("experiment", "experiment_fingerprint", "title", "trials", "searches", "settings", "source_hash")
_PLAIN = ("fingerprint", "dataset", "method", "run", "search", "seed", "dimensions", "wall_time", "steps")
_SCORES = tuple(f"{kind}_{metric}" for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS)


def runs_frame(runs: Sequence[ExportedRun]) -> pd.DataFrame:
    """Return one row per experiment and run. Only rows of one experiment and method repeat each other.

    The columns are experiment (its name), experiment_fingerprint (of all its settings), title, trials and searches of
    the experiment, settings (the run's hyperparameters as JSON), source_hash (of a user's classes), fingerprint,
    dataset, method, run, search, seed, dimensions, wall_time (seconds), steps, the scores as `separated_map_at_r`,
    `concatenated_map_at_r` and so on (fractions of 1), further metrics as `separated_recall@2` and so on, scores after
    the last epoch as `last_epoch_map_at_r` and so on, commit and device. A metric that a run lacks is empty in its row;
    one that all runs lack has no column.
    """
    records = [run.record for run in runs]
    further = dict.fromkeys(
        f"{kind}_{name}" for kind in EMBEDDING_KINDS for record in records for name in _further(record, kind)
    )
    last_epoch = dict.fromkeys(name for record in records for name in _last_epoch(record))
    columns = [*_OF_EXPERIMENT, *_PLAIN, *_SCORES, *further, *last_epoch, "commit", "device"]
    frame = pd.DataFrame([{**_of_experiment(run), **_flat_run(run.record)} for run in runs], columns=columns)
    return frame.astype({"trials": "Int64", "searches": "Int64"})


def class_scores_frame(records: Iterable[RunRecord]) -> pd.DataFrame:
    """Return one row per run and test class, for the runs that have class scores; names are those of `runs_frame`."""
    columns = ["fingerprint", "dataset", "method", "run", "search", "class_rank", "queries", *_SCORES]
    rows: list[dict[str, Any]] = []
    for record in records:
        if (classes := record.class_scores) is None:
            continue
        run = {name: getattr(record, name) for name in ("fingerprint", "dataset", "method", "run", "search")}
        class_scores = zip(classes.queries, classes.separated, classes.concatenated, strict=True)
        for rank, (queries, separated, concatenated) in enumerate(class_scores):
            scores = {**_named("separated", separated), **_named("concatenated", concatenated)}
            rows.append({**run, "class_rank": rank, "queries": queries, **scores})
    return pd.DataFrame(rows, columns=columns)


def curves_frame(results: Iterable[FoldResult]) -> pd.DataFrame:
    """Return one row per validation of the trainings."""
    rows = [{"fingerprint": result.fingerprint, **point.model_dump()} for result in results for point in result.curve]
    return pd.DataFrame(rows, columns=["fingerprint", "iteration", "map_at_r", "r_precision", "precision_at_1", "loss"])


def test_curves_frame(curves: Iterable[TestCurve]) -> pd.DataFrame:
    """Return one row per test along the trainings."""
    rows = [
        {"fingerprint": curve.fingerprint, "iteration": point.iteration, **point.scores.model_dump()}
        for curve in curves
        for point in curve.points
    ]
    return pd.DataFrame(rows, columns=["fingerprint", "iteration", *HEADLINE_METRICS])


def _of_experiment(run: ExportedRun) -> dict[str, Any]:
    settings = json.dumps(run.record.hyperparameters, sort_keys=True)
    hashes = " ".join(parsed.digest for name in run.sources if (parsed := SourceName.parse(name)) and parsed.digest)
    values = (run.name, run.experiment, run.title, run.trials, run.searches, settings, hashes)
    return dict(zip(_OF_EXPERIMENT, values, strict=True))


def _flat_run(record: RunRecord) -> dict[str, Any]:
    scores: dict[str, Any] = {}
    for kind in EMBEDDING_KINDS:
        scores |= _named(kind, getattr(record, kind))
        scores |= {f"{kind}_{name}": value for name, value in _further(record, kind).items()}
    plain = {name: getattr(record, name) for name in _PLAIN}
    scores |= _last_epoch(record)
    return {**plain, **scores, "commit": record.provenance.commit, "device": record.provenance.device}


def _named(kind: str, scores: Scores) -> dict[str, float]:
    return {f"{kind}_{metric}": getattr(scores, metric) for metric in HEADLINE_METRICS}


def _last_epoch(record: RunRecord) -> dict[str, float]:
    return {} if record.last_epoch is None else _named("last_epoch", record.last_epoch)


def _further(record: RunRecord, kind: str) -> dict[str, float]:
    metrics: dict[str, float] = getattr(record, f"metrics_{kind}")
    return metrics
