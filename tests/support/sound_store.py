"""A small store that the whole check finds sound: records with made-up scores that fit one another."""

from pathlib import Path
from typing import Any

import torch

from protocols.trunks.embedding_model import model_of, without_published_weights
from reproduce.storage import StoragePaths, open_store, storage_paths
from results.records.artifacts import weights_path
from results.records.experiment_summary import ExperimentSummary
from results.records.records import FoldResult, RunRecord, run_fingerprint
from results.records.trials import Trial
from results.spec.hyperparameters import method_at
from results.spec.search_settings import SamplerSettings
from results.spec.seeds import Purpose, training_seed
from results.spec.training_spec import TRAINING_VERSION, FoldSpec, TrainingSettings
from results.store.store import Store
from results.values import fingerprint_of
from tests.support.sample_records import scores, some_result, some_run, some_spec, some_summary

EXPERIMENT = "e" * 32
TRAINING = TrainingSettings(max_epochs=2, validate_every=1)
_METHOD = some_spec().method
_RANGE = {"scale": "linear", "low": 0.0, "high": 1.0}
IDENTITY: dict[str, Any] = {
    **some_spec(training=TRAINING).model_dump(mode="json", include={"dataset", "data_fingerprint", "split", "images"}),
    **some_spec(training=TRAINING).model_dump(mode="json", include={"trunk", "training", "embedding_size"}),
    **{"folds": 1, "seed": 0, "version": 1, "training_version": TRAINING_VERSION},
    "method": _METHOD.model_dump(mode="json"),
    "space": [{"target": "loss.margin", **_RANGE, "choices": None, "exhaustive": False}],
    "sampler": SamplerSettings().model_dump(mode="json"),
}
STUDY = fingerprint_of(IDENTITY)


def sound_spec(number: int = 0, purpose: Purpose = "reproduction", margin: float = 0.1) -> FoldSpec:
    """The only fold of a run or of a trial."""
    seed = training_seed(0, 0, purpose, number, 0)
    return some_spec(fold=0, training=TRAINING, seed=seed, method=method_at(_METHOD, {"loss.margin": margin}))


def sound_result(spec: FoldSpec, score: float, **changes: Any) -> FoldResult:
    """A training that gets better until its end, with this validation score."""
    made_up = some_result(spec, score)
    curve = tuple(point.model_copy(update={"r_precision": 0.95}) for point in made_up.curve)
    return made_up.model_copy(update={"curve": curve, **changes})


def sound_run(number: int, score: float, spec: FoldSpec | None = None, **changes: Any) -> RunRecord:
    """The test of a run's only training."""
    spec = spec or sound_spec(number)
    made = {
        "fingerprint": run_fingerprint((spec.fingerprint,)),
        "fold_fingerprints": (spec.fingerprint,),
        "fold_scores": (scores(score),),
        "concatenated": scores(score),
        "dimensions": 16,
        "training_version": TRAINING_VERSION,
    }
    return some_run("triplet", number, score, **{**made, **changes})


def sound_summary() -> ExperimentSummary:
    """The experiment of these runs."""
    spec = sound_spec()
    settings = {
        "training": TRAINING,
        "images": spec.images,
        "trunk": spec.trunk,
        "embedding_size": spec.embedding_size,
        "folds": 1,
    }
    ranges = {"triplet": {"loss.margin": _RANGE}}
    return some_summary(settings, methods={"triplet": "Triplet"}, ranges=ranges)


def checkpoint(store: Store, spec: FoldSpec, score: float) -> None:
    """A checkpoint of a training's network, with the score as its first number."""
    state = model_of(without_published_weights(spec)).state_dict()
    next(iter(state.values())).view(-1)[0] = score
    path = weights_path(store.artifacts, spec)
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path)


def score_of_checkpoint(store: Store, spec: FoldSpec) -> float:
    """The score that `checkpoint` has written."""
    state = torch.load(weights_path(store.artifacts, spec), weights_only=True)
    return round(next(iter(state.values())).view(-1)[0].item(), 5)


def store_at(folder: Path, validated: dict[int, float], wall_time: float = 2.5) -> StoragePaths:
    """A store with a training, a checkpoint and a tested run for each number, with these validation scores."""
    where = storage_paths(str(folder / "store.sqlite"), None, None, None)
    store = open_store(where)
    store.put_experiment(EXPERIMENT, "some", sound_summary())
    for number, score in validated.items():
        spec = sound_spec(number)
        store.put_fold(spec, sound_result(spec, score, wall_time=wall_time))
        checkpoint(store, spec, score)
        run = sound_run(number, score)
        store.put_run(run)
        store.enlist(EXPERIMENT, "triplet", run)
    return where


def study_at(where: StoragePaths, values: list[float], *, pending: bool = False) -> None:
    """A search of the experiment with these scores; the folds of its trials are in the store."""
    store = open_store(where)
    store.searches.enlist(EXPERIMENT, {"triplet": [(STUDY, IDENTITY)]})
    for number, value in enumerate(values):
        spec = sound_spec(number, "search", number / 10)
        store.put_fold(spec, sound_result(spec, value))
        trial = Trial(
            number=number,
            setting={"loss.margin": number / 10},
            state="complete",
            score=value,
            fold_scores=(value,),
            trainings=(spec.fingerprint,),
        )
        store.searches.put_trial(STUDY, trial)
    if pending:
        store.searches.put_trial(STUDY, Trial(number=len(values), setting={"loss.margin": 0.9}))
