"""Records with made-up numbers, for the tests of the rooms that only pass them on."""

from typing import Any

from results.records.experiment_summary import ExperimentSummary
from results.records.records import CurvePoint, FoldResult, Provenance, RunRecord, Scores
from results.spec.training_spec import Component, FoldSpec, ImageSettings, MethodSpec, TrainingSettings
from results.spec.trunk_spec import TrunkSpec


def some_provenance() -> Provenance:
    return Provenance(
        commit="0" * 40,
        tree_dirty=False,
        versions={"python": "3.11.7"},
        device="cpu",
        cpu_count=2,
        threads=1,
        host_system="Linux x86_64",
        processor="",
        finished_at="2026-01-01T00:00:00+00:00",
    )


def some_summary(
    settings: dict[str, Any] | None = None, trials: int | None = None, **changes: Any
) -> ExperimentSummary:
    """A started experiment; `settings`, `title`, `trials` and `reproductions` are those of its file.

    Without `runs`, every method has all of its searches and reproductions planned.
    """
    summary: dict[str, Any] = {"methods": {}, **changes}
    experiment: dict[str, Any] = {
        "title": "Some experiment",
        "dataset": {"name": "glyphs"},
        "methods": list(summary["methods"]) or ["triplet"],
        "trunk": {"name": "small_conv", "weights": "random"},
        "search": {"trials": 2},
        "reproductions": 3,
        **(settings or {}),
    }
    experiment |= {key: summary.pop(key) for key in ("title", "reproductions") if key in summary}
    if trials is not None:
        experiment["search"] = {**experiment["search"], "trials": trials}
    planned = experiment["reproductions"] * experiment["search"].get("searches", 1)
    summary.setdefault("runs", dict.fromkeys(summary["methods"], planned))
    return ExperimentSummary.model_validate({"experiment": experiment, **summary})


def some_spec(**changes: Any) -> FoldSpec:
    fields: dict[str, Any] = {
        "dataset": "glyphs",
        "data_fingerprint": "d" * 32,
        "split": "mlrc",
        "fold": 1,
        "train_classes": ((2, 6), (0, 0)),
        "validation_classes": ((1, 1),),
        "images": ImageSettings(resize=None, crop=32),
        "trunk": TrunkSpec(name="small_conv", weights="random"),
        "embedding_size": 16,
        "method": MethodSpec(name="triplet", loss=Component(name="TripletMarginLoss", arguments={"margin": 0.1})),
        "training": TrainingSettings(),
        "seed": 7,
    }
    return FoldSpec(**{**fields, **changes})


def some_result(spec: FoldSpec, map_at_r: float = 0.5, **changes: Any) -> FoldResult:
    losses = (None, 0.4, 0.3)
    curve = tuple(
        CurvePoint(iteration=100 * i, map_at_r=map_at_r * i / 2, r_precision=0.2, precision_at_1=0.7, loss=losses[i])
        for i in range(3)
    )
    fields: dict[str, Any] = {
        "fingerprint": spec.fingerprint,
        "status": "ok",
        "best_iteration": 200,
        "best_map_at_r": map_at_r,
        "untrained_map_at_r": 0.0,
        "beats_untrained": True,
        "iterations": 200,
        "stopped_by": "max_epochs",
        "curve": curve,
        "wall_time": 2.5,
        "provenance": some_provenance(),
    }
    return FoldResult(**{**fields, **changes})


def scores(first: float) -> Scores:
    return Scores(precision_at_1=first, r_precision=first / 2, map_at_r=first / 4)


def some_run(method: str = "triplet", run: int = 0, separated: float = 0.5, **changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "fingerprint": f"{method}-{run}",
        "protocol": "mlrc",
        "dataset": "glyphs",
        "data_fingerprint": "d" * 32,
        "method": method,
        "hyperparameters": {"loss.margin": 0.1},
        "run": run,
        "search": 0,
        "study": None,
        "seed": 0,
        "fold_fingerprints": tuple(f"{method}-{run}-{fold}" for fold in range(4)),
        "fold_scores": tuple(scores(separated) for _ in range(4)),
        "separated": scores(separated),
        "concatenated": scores(separated + 0.1),
        "dimensions": 128,
        "test_classes": 104,
        "test_images": 1498,
        "wall_time": 12.0,
        "flags": (),
        "steps": None,
        "iterations": None,
        "metrics_separated": {},
        "metrics_concatenated": {},
        "class_scores": None,
        "chosen_by": (),
        "last_epoch": None,
        "training_version": 1,
        "provenance": some_provenance(),
    }
    return RunRecord(**{**fields, **changes})
