"""The values that a number passes through: plain, frozen, and named by the hash of what they say.

A `FoldSpec` holds all that decides the outcome of one training; a `FoldResult` what came of it; a `RunRecord` the test
scores of one reproduction over all folds. Every record survives a round trip through JSON unchanged.
"""

import hashlib
import json
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

TRAINING_VERSION = 1
"""The meaning of a training. Raise it with every change that alters outcomes: old results then no longer match."""

EVALUATION_VERSION = 1
"""The meaning of a test evaluation, raised likewise."""


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks, the same text for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def fingerprint_of(value: Any) -> str:
    """The first 128 bits of the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:32]


def derive_seed(*identity: str | int) -> int:
    """A seed from what it is for, such as ("search", base seed, trial, fold): 63 bits, the same everywhere."""
    return int(fingerprint_of(list(identity))[:16], 16) >> 1


class Record(BaseModel):
    """A frozen value that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Component(Record):
    """A class by its name and the keyword arguments it is built with."""

    name: str
    arguments: dict[str, JsonValue] = {}


class WeightedComponent(Component):
    """A component whose contribution to the loss has a weight."""

    weight: float


class MethodSpec(Record):
    """A method with its hyperparameters settled.

    loss: None for the untrained trunk. samples_per_class: m of the m-per-class batches; 0 draws images at random.
    loss_lr, loss_weight_decay: for the loss's own parameters; None takes the network's. warmup_passes: passes over the
    training images with a frozen trunk; None takes what the loss's class asks for.
    """

    name: str
    loss: Component | None
    miner: Component | None = None
    embedding_regularizer: WeightedComponent | None = None
    samples_per_class: int = Field(default=4, ge=0)
    loss_lr: float | None = None
    loss_weight_decay: float | None = None
    warmup_passes: int | None = Field(default=None, ge=0)


class ImageSettings(Record):
    """How an image reaches the trunk (specification, section 3).

    resize: shorter side after the first, deterministic resize; None keeps the stored size.
    crop: side of the square that the trunk sees, in pixels. area, ratio: ranges of the random resized crop.
    flip: mirror left and right with probability one half.
    """

    resize: int | None = Field(default=256, ge=1)
    crop: int = Field(default=227, ge=1)
    area: tuple[float, float] = (0.16, 1.0)
    ratio: tuple[float, float] = (0.75, 4 / 3)
    flip: bool = True


class TrunkSpec(Record):
    """Trunk by name, what its weights are, and which part of its batch normalization trains.

    batch_norm: `statistics_frozen` is MLRC's (running statistics fixed, scale and shift train), `frozen` fixes both.
    """

    name: str
    weights: str
    batch_norm: Literal["statistics_frozen", "frozen"] = "statistics_frozen"


class OptimizerSettings(Record):
    """Optimizer of trunk and embedder; the loss's own parameters use the same class with their own rate and decay."""

    name: Literal["RMSprop", "Adam", "AdamW", "SGD"] = "RMSprop"
    lr: float = 1e-6
    weight_decay: float = 1e-4
    arguments: dict[str, JsonValue] = {"momentum": 0.9}


class TrainingSettings(Record):
    """Length and rhythm of one training (specification, sections 5 and 6); `validate_every`, `patience` in epochs."""

    batch_size: int = Field(default=32, ge=1)
    iterations_per_epoch: int = Field(default=100, ge=1)
    max_epochs: int = Field(default=1000, ge=1)
    validate_every: int = Field(default=2, ge=1)
    patience: int = Field(default=9, ge=0)
    optimizer: OptimizerSettings = OptimizerSettings()


class FoldSpec(Record):
    """All that decides the outcome of one training.

    train_classes, validation_classes: ranks as inclusive ranges. Test classes have no place here: the search must not
    see them. embedding_size: None leaves out the embedder.
    """

    training_version: int = TRAINING_VERSION
    dataset: str
    data_fingerprint: str
    split: str
    fold: int
    train_classes: tuple[tuple[int, int], ...]
    validation_classes: tuple[tuple[int, int], ...]
    images: ImageSettings
    trunk: TrunkSpec
    embedding_size: int | None
    method: MethodSpec
    training: TrainingSettings
    seed: int

    @cached_property
    def fingerprint(self) -> str:
        """The name of this training."""
        return fingerprint_of(self.model_dump(mode="json"))


class CurvePoint(Record):
    """One validation: iterations done, the metrics on the validation classes, mean training loss since the last one."""

    iteration: int
    map_at_r: float
    r_precision: float
    precision_at_1: float
    loss: float | None


class Provenance(Record):
    """Where a number was made."""

    commit: str
    tree_dirty: bool
    versions: dict[str, str]
    device: str
    cpu_count: int
    threads: int
    host_system: str
    finished_at: str


class FoldResult(Record):
    """What came of one training.

    status: `ok`; `nan` when loss or embeddings stopped being finite: such a training scores 0 (specification, 11.13).
    beats_untrained: some trained epoch was better than epoch 0 (11.22). wall_time: seconds.
    """

    fingerprint: str
    status: Literal["ok", "nan"]
    reason: str | None = None
    best_iteration: int
    best_map_at_r: float
    untrained_map_at_r: float
    beats_untrained: bool
    iterations: int
    stopped_by: Literal["patience", "max_epochs", "nan", "untrained"]
    curve: tuple[CurvePoint, ...]
    wall_time: float
    provenance: Provenance

    @property
    def flag(self) -> str | None:
        """What a reader of this fold's test score must know, if anything (specification, 11.13 and 11.22)."""
        if self.status == "nan":
            return f"training diverged ({self.reason}); tested at the last checkpoint before"
        if not self.beats_untrained and self.stopped_by != "untrained":
            return "no trained epoch beat the untrained network"
        return None

    @property
    def objective(self) -> float:
        """What the search is told of this fold."""
        return self.best_map_at_r if self.status == "ok" else 0.0


class Scores(Record):
    """The three metrics of MLRC, as fractions of 1."""

    precision_at_1: float
    r_precision: float
    map_at_r: float


class RunRecord(Record):
    """Test scores of one reproduction: four models from fresh seeds at one setting.

    run: 0-based number of the reproduction. seed: base seed that the folds' seeds derive from; runs of two methods with
    equal seed and run are matched. dimensions: of one fold's embedding. wall_time: seconds of the trainings and of the
    evaluation, summed. flags: what a reader must know, such as a fold whose training diverged.
    """

    fingerprint: str
    protocol: str
    dataset: str
    data_fingerprint: str
    method: str
    hyperparameters: dict[str, JsonValue]
    run: int
    seed: int
    fold_fingerprints: tuple[str, ...]
    fold_scores: tuple[Scores, ...]
    separated: Scores
    concatenated: Scores
    dimensions: int
    test_classes: int
    test_images: int
    wall_time: float
    flags: tuple[str, ...] = ()
    provenance: Provenance


def run_fingerprint(fold_fingerprints: tuple[str, ...]) -> str:
    """The name of a test evaluation: the trainings it is made of and the meaning of the evaluation."""
    return fingerprint_of(["run", EVALUATION_VERSION, list(fold_fingerprints)])
