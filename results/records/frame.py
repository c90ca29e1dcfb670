"""The scores of a run, which statistics and tables read, and the tables of a store for export."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from results.records.records import FoldResult, RunRecord, TestCurve
from results.spec.component import SourceName
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.training_spec import sources_of_training

EmbeddingKind = Literal["separated", "concatenated"]
"""`separated` is the mean over the folds' models, `concatenated` their ensemble."""

EMBEDDING_KINDS: tuple[EmbeddingKind, ...] = ("separated", "concatenated")

EXPERIMENT, QUESTION, PLANNED = "experiment_fingerprint", "reproduce_question", "reproduce_planned"
"""Columns of an export that `audit` reads: the experiment, what it asks, and what the method of the row is."""

OURS = {EXPERIMENT, "fingerprint", "source_hash"}
"""Columns by which an export of runs is known."""

_PLACE = ("dataset", "method", "run", "search")
_RUN = ("fingerprint", *_PLACE, "seed", "dimensions", "wall_time", "steps")
_SCORES = tuple(f"{kind}_{metric}" for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS)


def scores_of(run: RunRecord) -> list[tuple[str, str, float]]:
    """Return embeddings, metric and value of every score of a run.

    Besides `separated` and `concatenated`, the embeddings are `last_epoch` for scores after the last epoch, mean over
    folds, and `early_separated` and `early_concatenated` for those of the best models up to the end of a trial. The
    metric `total_training_steps` has the iterations up to the end of a training, mean over the run's trainings, as in
    Table 3 of the Chance Constraints paper; it is the same for both kinds.
    """
    found = _measured(run)
    if run.iterations is not None:
        steps = run.iterations / len(run.fold_fingerprints)
        found += [(kind, "total_training_steps", steps) for kind in EMBEDDING_KINDS]
    return found


def scores(runs: Iterable[RunRecord]) -> pd.DataFrame:
    """Return one row per run and score: dataset, method, search, run, embeddings, metric and value.

    The values are fractions of 1, as in `scores_of`.
    """
    places = [((run.dataset, run.method, run.search, run.run), run) for run in runs]
    rows = [(*place, *score) for place, run in places for score in scores_of(run)]
    return pd.DataFrame(rows, columns=["dataset", "method", "search", "run", "embeddings", "metric", "value"])


def _measured(run: RunRecord) -> list[tuple[str, str, float]]:
    """Embeddings, metric and value of everything that a test evaluation measured."""
    headline = {"separated": run.separated, "concatenated": run.concatenated}
    further = {"separated": run.metrics_separated, "concatenated": run.metrics_concatenated}
    found = [(kind, metric, getattr(own, metric)) for kind, own in headline.items() for metric in HEADLINE_METRICS]
    found += [(kind, metric, value) for kind, own in further.items() for metric, value in own.items()]
    if run.last_epoch is not None:
        found += [("last_epoch", metric, getattr(run.last_epoch, metric)) for metric in HEADLINE_METRICS]
    if run.early is not None:
        early = {"early_separated": run.early.separated, "early_concatenated": run.early.concatenated}
        found += [(kind, metric, getattr(own, metric)) for kind, own in early.items() for metric in HEADLINE_METRICS]
    return found


def _numbers(run: RunRecord) -> dict[str, int]:
    """Numbers of run and search as people count them, from 1."""
    return {"run": run.run + 1, "search": run.search + 1}


class ExportedRun(NamedTuple):
    """A run with name and fingerprint of its experiment; `with_questions` adds what that asks."""

    record: RunRecord
    experiment: str
    experiment_fingerprint: str
    title: str
    trials: int
    searches: int
    reproduce_question: str = ""
    reproduce_planned: str = ""


def runs_table(runs: Sequence[ExportedRun]) -> pd.DataFrame:
    """Return one row per experiment and run. Only rows of one experiment and method repeat each other.

    The columns are experiment (its name), experiment_fingerprint (of all its settings), title, trials and searches of
    the experiment, reproduce_question and reproduce_planned (what the experiment asks and what the method is, as JSON
    for `audit`), settings (the run's hyperparameters as JSON), source_hash (of a user's classes), fingerprint, dataset,
    method, run and search (counted from 1), seed, dimensions, wall_time (seconds), steps, the scores as
    `separated_map_at_r`, `concatenated_map_at_r` and so on (fractions of 1), further metrics as `separated_recall@2`
    and so on, scores after the last epoch as `last_epoch_map_at_r` and so on, those of the best models up to the end of
    a trial as `early_separated_map_at_r` and so on, commit and device. A metric that a run
    lacks is empty in its row; one that all runs lack has no column.
    """
    scores = [{f"{kind}_{metric}": value for kind, metric, value in _measured(one.record)} for one in runs]
    rows = []
    for one, of_run in zip(runs, scores, strict=True):
        record, row = one.record, one._asdict()
        names = map(SourceName.parse, sources_of_training(record.specs[0]))
        row["settings"] = json.dumps(record.hyperparameters, sort_keys=True)
        row["source_hash"] = " ".join(name.digest for name in names if name and name.digest)
        row |= {name: getattr(record, name) for name in _RUN} | _numbers(record)
        rows.append({**row, **of_run, "commit": record.provenance.commit, "device": record.provenance.device})
    known = dict.fromkeys([*_SCORES, *(name for of_run in scores for name in of_run)])
    ordered = sorted(known, key=lambda name: name.startswith(("last_epoch", "early_")))
    columns = [*ExportedRun._fields[1:], "settings", "source_hash", *_RUN, *ordered, "commit", "device"]
    return pd.DataFrame(rows, columns=columns).astype({"trials": int, "searches": int})


def class_scores_table(records: Iterable[RunRecord]) -> pd.DataFrame:
    """Return one row per run and test class, for the runs that have class scores; names are those of `runs_table`."""
    rows: list[dict[str, Any]] = []
    for record in records:
        if (classes := record.class_scores) is None:
            continue
        run = {name: getattr(record, name) for name in ("fingerprint", *_PLACE)} | _numbers(record)
        for rank, queries in enumerate(classes.queries):
            scores = {kind: getattr(classes, kind)[rank] for kind in EMBEDDING_KINDS}
            named = {
                f"{kind}_{metric}": getattr(scores[kind], metric) for kind in scores for metric in HEADLINE_METRICS
            }
            rows.append({**run, "class_rank": rank, "queries": queries, **named})
    return pd.DataFrame(rows, columns=["fingerprint", *_PLACE, "class_rank", "queries", *_SCORES])


def folds_table(results: Iterable[FoldResult]) -> pd.DataFrame:
    """Return one row per training."""
    measured = ("status", "best_map_at_r", "iterations", "wall_time")
    rows = []
    for one in results:
        place = (one.fingerprint, one.spec.dataset, one.spec.method.name, one.spec.fold)
        rows.append((*place, *(getattr(one, key) for key in measured)))
    frame = pd.DataFrame(rows, columns=["fingerprint", "dataset", "method", "fold", *measured])
    return frame.sort_values(["dataset", "method", "fold"], ignore_index=True)


def curves_table(results: Iterable[FoldResult]) -> pd.DataFrame:
    """Return one row per validation of the trainings."""
    rows = [{"fingerprint": result.fingerprint, **point.model_dump()} for result in results for point in result.curve]
    return pd.DataFrame(rows, columns=["fingerprint", "iteration", "map_at_r", "r_precision", "precision_at_1", "loss"])


def test_points_table(curves: Iterable[TestCurve]) -> pd.DataFrame:
    """Return one row per test along the trainings."""
    rows = [
        {"fingerprint": curve.fingerprint, "iteration": point.iteration, **point.scores.model_dump()}
        for curve in curves
        for point in curve.points
    ]
    return pd.DataFrame(rows, columns=["fingerprint", "iteration", *HEADLINE_METRICS])
