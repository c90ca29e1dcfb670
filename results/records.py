"""What was measured: a `FoldResult` is what came of one training, a `RunRecord` the test scores of one reproduction.

Every record survives a round trip through JSON unchanged.
"""

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from results.values import Record, fingerprint_of

EVALUATION_VERSION = 1
"""The meaning of a test evaluation, raised likewise."""


class CurvePoint(Record):
    """One validation: iterations done, the metrics on the validation classes, mean training loss since the last one.

    Without validation classes the metrics are None.
    """

    iteration: int
    map_at_r: float | None
    r_precision: float | None
    precision_at_1: float | None
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

    best_map_at_r, untrained_map_at_r: on the validation classes; None where there are none.
    status: `ok`; `nan` when loss or embeddings stopped being finite: such a training scores 0 (specification, 11.13).
    beats_untrained: some trained epoch was better than epoch 0 (11.22). wall_time: seconds.
    """

    fingerprint: str
    status: Literal["ok", "nan"]
    reason: str | None = None
    best_iteration: int
    best_map_at_r: float | None
    untrained_map_at_r: float | None
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
            return f"training diverged ({self.reason}); the best checkpoint before that counts"
        if not self.beats_untrained and self.stopped_by != "untrained":
            return "no trained epoch beat the untrained network"
        return None

    @property
    def objective(self) -> float:
        """What the search is told of this fold."""
        if self.best_map_at_r is None:
            raise ValueError("a training without validation classes has no objective")
        return self.best_map_at_r if self.status == "ok" else 0.0


class Scores(Record):
    """The three metrics of MLRC, as fractions of 1."""

    precision_at_1: float
    r_precision: float
    map_at_r: float


class TestPoint(Record):
    """Scores of a training's model on the test classes after `iteration` iterations."""

    __test__: ClassVar[bool] = False  # No test case, whatever pytest makes of the name.

    iteration: int
    scores: Scores


class TestCurve(Record):
    """Test scores all along a reproduction's training: what choosing the epoch by them would have been worth.

    fingerprint: of the training. Nothing selects by this; it is recorded to be shown beside honest selection.
    """

    __test__: ClassVar[bool] = False

    fingerprint: str
    evaluation_version: int = EVALUATION_VERSION
    points: tuple[TestPoint, ...]


class ClassScores(Record):
    """Mean test scores of every test class, in rank order, with its number of queries.

    New classes are what the protocol generalises to: these are what a bootstrap over classes resamples.
    """

    queries: tuple[int, ...]
    separated: tuple[Scores, ...]
    concatenated: tuple[Scores, ...]


class RunRecord(Record):
    """Test scores of one reproduction: the models of all folds from fresh seeds at one setting.

    run: 0-based number of the reproduction. seed: base seed that the folds' seeds derive from; runs of two methods with
    equal seed and run are matched. dimensions: of one fold's embedding. wall_time: seconds of the trainings and of the
    evaluation, summed. flags: what a reader must know, such as a fold whose training diverged. steps: iterations to the
    models' checkpoints, summed. iterations: to the end of the models' trainings, summed. metrics_separated,
    metrics_concatenated: further metrics that the experiment asked for, by name (`recall@2`, `nmi`, ...). class_scores:
    None in records from before they were kept.
    """

    later: ClassVar[frozenset[str]] = frozenset(
        {"metrics_separated", "metrics_concatenated", "class_scores", "steps", "iterations"}
    )

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
    steps: int | None = None
    iterations: int | None = None
    metrics_separated: dict[str, float] = Field(default={})
    metrics_concatenated: dict[str, float] = Field(default={})
    class_scores: ClassScores | None = None
    provenance: Provenance


def run_fingerprint(fold_fingerprints: tuple[str, ...], metrics: tuple[str, ...] = ()) -> str:
    """The name of a test evaluation: the trainings it is made of, further metrics, the meaning of the evaluation."""
    further = [sorted(metrics)] if metrics else []
    return fingerprint_of(["run", EVALUATION_VERSION, list(fold_fingerprints), *further])
