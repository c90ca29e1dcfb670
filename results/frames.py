"""Records as pandas DataFrames, one row each, flat: for export and for figures."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from results.headline_metrics import HEADLINE_METRICS
from results.records import FoldResult, RunRecord, Scores, TestCurve
from results.statistics.run_values import EMBEDDING_KINDS

_PLAIN = ("fingerprint", "dataset", "method", "run", "seed", "dimensions", "wall_time", "steps")
_SCORES = tuple(f"{kind}_{metric}" for kind in EMBEDDING_KINDS for metric in HEADLINE_METRICS)


def runs_frame(records: Sequence[RunRecord]) -> pd.DataFrame:
    """One row per test evaluation, scores as `separated_map_at_r`, `concatenated_map_at_r` and so on.

    Further metrics follow as `separated_recall@2` and the like, in the records' order; they are empty for records
    without them.
    """
    further = dict.fromkeys(
        f"{kind}_{name}" for kind in EMBEDDING_KINDS for record in records for name in _further(record, kind)
    )
    columns = [*_PLAIN, *_SCORES, *further, "commit", "device"]
    return pd.DataFrame([_flat_run(record) for record in records], columns=columns)


def class_scores_frame(records: Iterable[RunRecord]) -> pd.DataFrame:
    """One row per test class of each run that kept them.

    Columns: fingerprint, dataset, method, run, class_rank (from 0), queries, and scores named as in `runs_frame`.
    """
    columns = ["fingerprint", "dataset", "method", "run", "class_rank", "queries", *_SCORES]
    rows: list[dict[str, Any]] = []
    for record in records:
        if (kept := record.class_scores) is None:
            continue
        name = record.model_dump(include={"fingerprint", "dataset", "method", "run"})
        parts = zip(kept.queries, kept.separated, kept.concatenated, strict=True)
        for rank, (queries, separated, concatenated) in enumerate(parts):
            scores = {**_named("separated", separated), **_named("concatenated", concatenated)}
            rows.append({**name, "class_rank": rank, "queries": queries, **scores})
    return pd.DataFrame(rows, columns=columns)


def curves_frame(results: Iterable[FoldResult]) -> pd.DataFrame:
    """One row per validation: fingerprint, iteration, map_at_r, r_precision, precision_at_1, loss."""
    rows = [{"fingerprint": result.fingerprint, **point.model_dump()} for result in results for point in result.curve]
    return pd.DataFrame(rows, columns=["fingerprint", "iteration", "map_at_r", "r_precision", "precision_at_1", "loss"])


def test_curves_frame(curves: Iterable[TestCurve]) -> pd.DataFrame:
    """One row per test along a training: fingerprint, iteration, precision_at_1, r_precision, map_at_r."""
    rows = [
        {"fingerprint": curve.fingerprint, "iteration": point.iteration, **point.scores.model_dump()}
        for curve in curves
        for point in curve.points
    ]
    return pd.DataFrame(rows, columns=["fingerprint", "iteration", *HEADLINE_METRICS])


def _flat_run(record: RunRecord) -> dict[str, Any]:
    scores: dict[str, Any] = {}
    for kind in EMBEDDING_KINDS:
        scores |= _named(kind, getattr(record, kind))
        scores |= {f"{kind}_{name}": value for name, value in _further(record, kind).items()}
    plain = {name: getattr(record, name) for name in _PLAIN}
    return {**plain, **scores, "commit": record.provenance.commit, "device": record.provenance.device}


def _named(kind: str, scores: Scores) -> dict[str, float]:
    return {f"{kind}_{metric}": getattr(scores, metric) for metric in HEADLINE_METRICS}


def _further(record: RunRecord, kind: str) -> dict[str, float]:
    found: dict[str, float] = getattr(record, f"metrics_{kind}")
    return found
