"""The records of measurements: a `FoldResult` per training and a `RunRecord` per reproduction.

A record that is written as JSON and read again is unchanged.
"""

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from results.values import Record, Spec, fingerprint_of

EVALUATION_VERSION = 1
"""Version of the test evaluation. Raise it with every change that alters test scores: old ones then no longer match."""


class CurvePoint(Record):
    """One validation during a training.

    Attributes:
        iteration: Number of iterations done.
        map_at_r: MAP@R on the validation classes, a fraction of 1; None without validation classes, as are the next
            two scores.
        loss: Mean training loss since the last validation; None if there was no iteration.
    """

    iteration: int
    map_at_r: float | None
    r_precision: float | None
    precision_at_1: float | None
    loss: float | None


class Provenance(Spec):
    """The origin of a number.

    Attributes:
        commit: Commit of the code; `unknown` outside a checkout.
        tree_dirty: Whether files differed from that commit, or the commit is unknown.
        versions: Versions of packages; for numbers from a GPU also `cuda`, `cudnn` and `driver`.
        host_system: Operating system and processor type.
        processor: Name of the processor with family and model; empty if it is not known.
        finished_at: Time in UTC, ISO 8601.
        math: Settings of torch that decide how a GPU rounds. Empty, and not written, for numbers from a CPU and in
            older records.
    """

    optional = frozenset({"math"})

    commit: str
    tree_dirty: bool
    versions: dict[str, str]
    device: str
    cpu_count: int
    threads: int
    host_system: str
    processor: str
    finished_at: str
    math: dict[str, str] = Field(default_factory=dict)


class FoldResult(Record):
    """The result of one training.

    Attributes:
        status: `ok`, or `nan` if the loss or the embeddings became infinite or NaN. A training with `nan` scores 0 in
            the search (specification, 11.13).
        best_iteration: Iterations done at the checkpoint, which is the model of this training.
        best_map_at_r: MAP@R of the checkpoint on the validation classes; None without validation classes.
        untrained_map_at_r: MAP@R before the first iteration, likewise.
        beats_untrained: Whether a trained epoch was better than epoch 0 (specification, 11.22).
        wall_time: Duration in seconds.
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
    def cut_off(self) -> bool:
        """Whether it ended at the largest number of epochs while its validation score still rose.

        Its last checkpoint is its model then, and scored above the validation before it, which can be that of the
        untrained network.
        """
        scores = [point.map_at_r or 0.0 for point in self.curve]
        at_the_end = self.stopped_by == "max_epochs" and self.best_iteration == self.iterations > 0
        return at_the_end and len(scores) > 1 and scores[-1] > scores[-2]

    @property
    def flag(self) -> str | None:
        """Warning for readers of this fold's test score, or None (specification, 11.13 and 11.22)."""
        if self.status == "nan":
            return f"training diverged ({self.reason}); the best checkpoint before that counts"
        warnings = []
        if not self.beats_untrained and self.stopped_by != "untrained":
            warnings.append("no trained epoch beat the untrained network")
        # A validation has the mean loss of the steps since the one before, and none if there was no step.
        if skipped := sum(point.loss is None for point in self.curve if point.iteration > 0):
            warnings.append(f"the method skipped all steps before {skipped} of {len(self.curve) - 1} validations")
        return "; ".join(warnings) or None

    @property
    def objective(self) -> float:
        """Value that the search maximises: MAP@R on the validation classes, or 0 for a training with `nan`."""
        if self.best_map_at_r is None:
            raise ValueError("a training without validation classes has no objective")
        return self.best_map_at_r if self.status == "ok" else 0.0


class Scores(Record):
    """The three metrics of MLRC, as fractions of 1."""

    precision_at_1: float
    r_precision: float
    map_at_r: float


class TestPoint(Record):
    """Scores on the test classes after a number of iterations of a training."""

    __test__: ClassVar[bool] = False  # The name makes pytest take the class for a test case.

    iteration: int
    scores: Scores


class TestCurve(Record):
    """Test scores during a training of a reproduction, to measure the gain from choosing the epoch by test scores.

    Nothing is selected by this curve. It is recorded to be shown beside honest selection.
    """

    __test__: ClassVar[bool] = False

    fingerprint: str
    evaluation_version: int = EVALUATION_VERSION
    points: tuple[TestPoint, ...]


class ClassScores(Record):
    """Mean test scores of every test class, in the order of the class ranks. A bootstrap over classes resamples them.

    Attributes:
        queries: Number of queries of each class.
        separated: Mean of the folds' scores, for each class.
        concatenated: Scores of the concatenated embeddings, for each class.
    """

    queries: tuple[int, ...]
    separated: tuple[Scores, ...]
    concatenated: tuple[Scores, ...]


class RunRecord(Record):
    """Test scores of one reproduction: one model per fold, trained with new seeds at one hyperparameter setting.

    Attributes:
        run: Number of the reproduction, from 0 in every search.
        search: Number of the search that found the setting, from 0.
        study: Fingerprint of the study that found the setting; None if nothing was searched, or if it was not recorded.
        seed: The experiment's seed. The folds' seeds derive from `seed`, `search` and `run`. Runs of two methods that
            are equal in all three are matched.
        fold_scores: Test scores of each fold's model.
        concatenated: Test scores of the concatenated embeddings of all folds.
        wall_time: Duration of the trainings and of the evaluation in seconds, summed.
        flags: Warnings for readers, such as a fold whose training diverged.
        steps: Iterations up to the models' checkpoints, summed over folds; None if they were not recorded.
        iterations: Iterations up to the end of the trainings, summed over folds; None likewise.
        dimensions: Size of one fold's embedding.
        metrics_separated: Further metrics of the experiment by name (`recall@2`, `nmi`, ...), mean over folds.
        class_scores: Scores of each test class; None if they were not recorded.
        chosen_by: Fingerprints of the trainings that chose the epoch of the models, one per fold (protocol
            `standard`); empty if nothing was chosen.
        last_epoch: Test scores after the last epoch of the same trainings, mean over folds (protocol `standard`). None
            for other protocols, for the untrained trunk and for a training that diverged. Shown beside the scores of
            the chosen epoch, never instead of them.
    """

    fingerprint: str
    protocol: str
    dataset: str
    data_fingerprint: str
    method: str
    hyperparameters: dict[str, JsonValue]
    run: int
    search: int
    study: str | None
    seed: int
    fold_fingerprints: tuple[str, ...]
    fold_scores: tuple[Scores, ...]
    separated: Scores
    concatenated: Scores
    dimensions: int
    test_classes: int
    test_images: int
    wall_time: float
    flags: tuple[str, ...]
    steps: int | None
    iterations: int | None
    metrics_separated: dict[str, float]
    metrics_concatenated: dict[str, float]
    class_scores: ClassScores | None
    chosen_by: tuple[str, ...]
    last_epoch: Scores | None
    training_version: int
    provenance: Provenance

    @property
    def name(self) -> str:
        """The run in messages; names the search only if it is not the first."""
        return run_name(self.run, self.search)


def run_name(run: int, search: int) -> str:
    """Return the name of a run in messages: `run 2`, or `run 2 of search 1`."""
    return f"run {run}" if search == 0 else f"run {run} of search {search}"


def run_fingerprint(
    fold_fingerprints: tuple[str, ...], metrics: tuple[str, ...] = (), chosen_by: tuple[str, ...] = ()
) -> str:
    """Return the fingerprint of a test evaluation; the trainings are in the order of the folds."""
    further = [sorted(metrics)] if metrics else []
    choice = [{"chosen_by": list(chosen_by)}] if chosen_by else []
    return fingerprint_of(["run", EVALUATION_VERSION, list(fold_fingerprints), *further, *choice])
