"""Records as flat pandas DataFrames, for export and for figures."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from results.records.records import FoldResult, RunRecord, Scores, TestCurve
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.source_names import SourceName, sources_of_training
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
    """

    record: RunRecord
    name: str = ""
    experiment: str = ""
    title: str | None = None
    trials: int | None = None
    searches: int | None = None


_PLACE = ("dataset", "method", "run", "search")
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
    columns = [
        *("experiment", "experiment_fingerprint", "title", "trials", "searches", "settings", "source_hash"),
        *("fingerprint", *_PLACE, "seed", "dimensions", "wall_time", "steps", *_SCORES),
    ]
    rows = [_row_of_run(run) for run in runs]
    columns += dict.fromkeys(name for row in rows for name in row if name not in (*columns, "commit", "device"))
    frame = pd.DataFrame(rows, columns=[*columns, "commit", "device"])
    return frame.astype({"trials": "Int64", "searches": "Int64"})


def class_scores_frame(records: Iterable[RunRecord]) -> pd.DataFrame:
    """Return one row per run and test class, for the runs that have class scores; names are those of `runs_frame`."""
    rows = []
    for record in records:
        if (classes := record.class_scores) is not None:
            run = {name: getattr(record, name) for name in ("fingerprint", *_PLACE)}
            class_scores = zip(classes.queries, classes.separated, classes.concatenated, strict=True)
            for rank, (queries, separated, concatenated) in enumerate(class_scores):
                scores = {**_named("separated", separated), **_named("concatenated", concatenated)}
                rows.append({**run, "class_rank": rank, "queries": queries, **scores})
    return pd.DataFrame(rows, columns=["fingerprint", *_PLACE, "class_rank", "queries", *_SCORES])


def curves_frame(results: Iterable[FoldResult]) -> pd.DataFrame:
    """Return one row per validation of the trainings."""
    rows = [{"fingerprint": result.fingerprint, **dict(point)} for result in results for point in result.curve]
    return pd.DataFrame(rows, columns=["fingerprint", "iteration", "map_at_r", "r_precision", "precision_at_1", "loss"])


def test_curves_frame(curves: Iterable[TestCurve]) -> pd.DataFrame:
    """Return one row per test along the trainings."""
    rows = [
        {"fingerprint": curve.fingerprint, "iteration": point.iteration, **dict(point.scores)}
        for curve in curves
        for point in curve.points
    ]
    return pd.DataFrame(rows, columns=["fingerprint", "iteration", *HEADLINE_METRICS])


def _row_of_run(run: ExportedRun) -> dict[str, Any]:
    record = run.record
    names = map(SourceName.parse, sources_of_training(record.specs[0]))
    row = {
        "experiment": run.name,
        "experiment_fingerprint": run.experiment,
        **{name: getattr(run, name) for name in ("title", "trials", "searches")},
        "settings": json.dumps(record.hyperparameters, sort_keys=True),
        "source_hash": " ".join(name.digest for name in names if name and name.digest),
        **{
            name: getattr(record, name) for name in ("fingerprint", *_PLACE, "seed", "dimensions", "wall_time", "steps")
        },
        "commit": record.provenance.commit,
        "device": record.provenance.device,
    }
    for kind in EMBEDDING_KINDS:
        row |= _named(kind, getattr(record, kind))
    for kind in EMBEDDING_KINDS:
        row |= _named(kind, getattr(record, f"metrics_{kind}"))
    return row if record.last_epoch is None else row | _named("last_epoch", record.last_epoch)


def _named(kind: str, scores: Scores | Mapping[str, float]) -> dict[str, float]:
    return {f"{kind}_{metric}": value for metric, value in dict(scores).items()}
