"""Records with made-up numbers, for the tests of the rooms that only pass them on."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from protocols.jobs import EvaluateJob
from results.records.provenance import Provenance
from results.records.records import CurvePoint, FoldResult, RunRecord, Scores
from results.spec.component import Component
from results.spec.conditions import Conditions, ImageSettings
from results.spec.method import Method
from results.spec.plan import Plan
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import TrunkSpec
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Store
from results.values import derive_seed


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


def some_plan(settings: dict[str, Any] | None = None, trials: int | None = None, **changes: Any) -> Plan:
    """A started experiment; `settings`, `title`, `trials` and `reproductions` are those of its file.

    Without `runs`, every method has all of its searches and reproductions planned.
    """
    plan: dict[str, Any] = {"methods": {}, **changes}
    experiment: dict[str, Any] = {
        "title": "Some experiment",
        "dataset": {"name": "glyphs"},
        "methods": list(plan["methods"]) or ["triplet"],
        "trunk": {"name": "small_conv", "weights": "random"},
        "search": {"trials": 2},
        "reproductions": 3,
        **(settings or {}),
    }
    experiment |= {key: plan.pop(key) for key in ("title", "reproductions") if key in plan}
    if trials is not None:
        experiment["search"] = {**experiment["search"], "trials": trials}
    planned = experiment["reproductions"] * experiment["search"].get("searches", 1)
    plan.setdefault("runs", dict.fromkeys(plan["methods"], planned))
    return Plan.model_validate({"experiment": experiment, **plan})


def changed_plan(plan: Plan, **stored: Any) -> Plan:
    """A plan with other values of what the store keeps of it, such as `runs` or `ranges` by row."""
    return Plan.model_validate({**plan.model_dump(mode="json"), **stored})


def put_experiment(store: Store, identity: str, name: str, plan: Plan, records: Iterable[RunRecord] = ()) -> None:
    """Store an experiment with runs, as its start leaves it."""
    store.put_experiment(identity, name, plan)
    for record in records:
        store.put_run(record)
        store.enlist(identity, record.method, record)


def some_spec(**changes: Any) -> FoldSpec:
    fields: dict[str, Any] = {
        "dataset": "glyphs",
        "data_fingerprint": "d" * 32,
        "split": "mlrc",
        "fold": 1,
        "train_classes": ((2, 6), (0, 0)),
        "validation_classes": ((1, 1),),
        "method": Method(name="triplet", loss=Component(name="TripletMarginLoss", arguments={"margin": 0.1})),
        "conditions": Conditions(
            images=ImageSettings(resize=None, crop=32),
            trunk=TrunkSpec(name="small_conv", weights="random"),
            embedding_size=16,
        ),
        "seed": 7,
    }
    return changed_spec(FoldSpec(**fields), **changes)


def changed_spec(spec: FoldSpec, **changes: Any) -> FoldSpec:
    """A specification with other values of its fields, or of the fields of its conditions."""
    conditions = {name: changes.pop(name) for name in [*changes] if name in Conditions.model_fields}
    return spec.changed(**changes).with_conditions(**conditions)


def some_result(
    spec: FoldSpec, map_at_r: float = 0.5, *, best_iteration: int = 200, beats_untrained: bool = True, **changes: Any
) -> FoldResult:
    """A training of 200 iterations whose best validation score is `map_at_r`."""
    at = {0: 0.0 if beats_untrained else map_at_r, 100: map_at_r / 2, 200: map_at_r / 2, best_iteration: map_at_r}
    validates = spec.checkpoint_epoch is None
    curve = tuple(
        CurvePoint(
            iteration=iteration,
            map_at_r=score if validates else None,
            r_precision=0.6 if validates else None,
            precision_at_1=0.7 if validates else None,
            loss=0.4 if iteration else None,
        )
        for iteration, score in at.items()
    )
    fields: dict[str, Any] = {
        "spec": spec,
        "iterations": 200,
        "best_iteration": best_iteration,
        "stopped_by": "max_epochs",
        "curve": curve,
        "wall_time": 2.5,
        "provenance": some_provenance(),
    }
    return FoldResult(**{**fields, **changes})


def scores(first: float) -> Scores:
    """Precision@1 of `first`, at most 1, R-precision of its half, and MAP@R of its quarter."""
    return Scores(precision_at_1=min(1.0, first), r_precision=min(1.0, first / 2), map_at_r=first / 4)


def some_run(method: str = "triplet", run: int = 0, separated: float | Scores = 0.5, **changes: Any) -> RunRecord:
    """A run of four folds; `changes` are those of `changed_run`."""
    whole = separated if isinstance(separated, Scores) else scores(separated)
    record = RunRecord(
        protocol="mlrc",
        specs=tuple(some_spec(fold=fold, training_version=1) for fold in range(4)),
        hyperparameters={"loss.margin": 0.1},
        run=run,
        seed=0,
        fold_scores=(whole,) * 4,
        concatenated=whole if isinstance(separated, Scores) else scores(separated + 0.1),
        dimensions=128,
        test_classes=104,
        test_images=1498,
        wall_time=12.0,
        provenance=some_provenance(),
    )
    return changed_run(record, **{"method": method, "run": run, **changes})


def with_own_loss(measured: MeasuredExperiment, method: str, code: str = "a") -> MeasuredExperiment:
    """An experiment as if a method's loss were a user's class, whose source has the hash of sixteen `code`."""
    loss = Component(name=f"mine.py:Mine (sha256 {16 * code})")
    runs = [
        run.model_copy(
            update={"specs": tuple(s.changed(method=s.method.model_copy(update={"loss": loss})) for s in run.specs)}
        )
        if run.method == method
        else run
        for run in measured.records
    ]
    return replace(measured, records=tuple(runs))


def changed_run(record: RunRecord, **changes: Any) -> RunRecord:
    """A run with other values of its fields and of what follows from them.

    Another method, run or search has trainings of its own. So has another `fingerprint`, which may be any text, and
    stands in no record; `fold_fingerprints` has such a text for each fold.
    """
    method, name = changes.pop("method", record.method), changes.pop("fingerprint", "")
    texts = changes.pop("fold_fingerprints", [name] * len(record.specs))
    if "separated" in changes:
        changes["fold_scores"] = (changes.pop("separated"),) * len(record.fold_scores)
    of_specs = {
        key: changes.pop(key) for key in [*changes] if key in ("dataset", "data_fingerprint", "training_version")
    }
    specs = record.specs[: len(texts)]
    if {"run", "search"} & changes.keys() or any(texts):
        place = [str(changes.get(key, getattr(record, key))) for key in ("run", "search")]
        specs = tuple(s.changed(seed=derive_seed(text, *place, s.fold)) for s, text in zip(specs, texts, strict=True))
    named = tuple(spec.changed(method=spec.method.model_copy(update={"name": method}), **of_specs) for spec in specs)
    fields = {key: getattr(record, key) for key in RunRecord.model_fields if key != "fingerprint"}
    return RunRecord(**{**fields, **changes, "specs": changes.get("specs", named)})


def evaluation_of(*specs: FoldSpec, run: int = 0, seed: int = 0, **changes: Any) -> EvaluateJob:
    """The test evaluation of trainings with invented results."""
    return EvaluateJob(tuple(some_result(spec) for spec in specs), "mlrc", {}, run, seed, **changes)


def invented_run(job: EvaluateJob) -> RunRecord:
    """A record with invented scores of a test evaluation."""
    metrics = dict.fromkeys(job.metrics, 0.5)
    return some_run(
        job.specs[0].method.name,
        job.run,
        specs=job.specs,
        fold_scores=(scores(0.5),) * len(job.specs),
        search=job.search,
        seed=job.seed,
        study=job.study,
        chosen_by=job.chosen_by,
        metrics_separated=metrics,
        metrics_concatenated=metrics,
    )
