"""The records of measurements: a `FoldResult` per training and a `RunRecord` per reproduction.

A record that is written as JSON and read again is unchanged.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, FiniteFloat, JsonValue

from results.records.provenance import Provenance
from results.spec.training_spec import FoldSpec
from results.values import Record, fingerprint_of

EVALUATION_VERSION = 1
"""Version of the test evaluation. Raise it with every change that alters test scores: old ones then no longer match."""

CIRCUMSTANCES = {"wall_time", "provenance"}
"""Fields of records in which equal measurements may differ."""

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Scores(Record):
    """The three metrics of MLRC, as fractions of 1."""

    precision_at_1: Fraction
    r_precision: Fraction
    map_at_r: Fraction


class CurvePoint(Record):
    """One validation during a training.

    Attributes:
        iteration: Number of iterations done.
        map_at_r: MAP@R on the validation classes, a fraction of 1; None without validation classes, as are the next
            two scores.
        loss: Mean training loss since the last validation; None if there was no iteration.
    """

    iteration: int = Field(ge=0)
    map_at_r: Fraction | None
    r_precision: Fraction | None
    precision_at_1: Fraction | None
    loss: FiniteFloat | None


class Event(Record):
    """What happened in a training of a run, which readers of the run's scores must know (specification, 11.13, 11.22).

    Attributes:
        kind: `diverged`: the best checkpoint before that counts. `no gain`: no trained epoch beat the untrained
            network. `skipped`: the method skipped all steps between two validations. `collapsed`: all test embeddings
            of its model are equal up to rounding, so its scores are 0. `zeros`: some of them are zeros, likewise.
            `no pairs`: batches had no two images of a class (`FoldResult.batches_without_pairs`).
        fold: The training's fold; None for the mean over folds.
        iteration: Iterations done when a training diverged, or at the first validation after skipped steps only.
        choosing: Whether the training chose the epoch of the run's model (protocol `standard`).
    """

    kind: Literal["diverged", "no gain", "skipped", "collapsed", "zeros", "no pairs"]
    fold: int | None
    iteration: int | None = None
    choosing: bool = False


StoppedBy = Literal["patience", "max_epochs", "nan", "untrained"]
"""What ended a training; `nan` if the loss or the embeddings became infinite or NaN."""


class FoldResult(Record):
    """One finished training: its validations, and how it ended.

    Attributes:
        spec: All that decides the training.
        stopped_by: What ended it.
        reason: What was not finite, and when; None for a training that did not diverge.
        iterations: Iterations done at its end.
        best_iteration: Iterations done at the checkpoint, which is the model of this training; after a divergence that
            of the best validation before. 0 if it is the network before training.
        wall_time: Duration in seconds.
        batches_without_pairs: Number of batches in which no two images are of one class, of a loss that trains nothing
            of its own, so that it has nothing to pull together in them.
    """

    spec: FoldSpec
    stopped_by: StoppedBy
    reason: str | None = None
    iterations: int = Field(ge=0)
    best_iteration: int = Field(ge=0)
    curve: tuple[CurvePoint, ...]
    wall_time: Seconds
    provenance: Provenance
    batches_without_pairs: int = Field(default=0, ge=0, exclude_if=lambda count: count == 0)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the training."""
        return self.spec.fingerprint

    @property
    def status(self) -> Literal["ok", "nan"]:
        """`ok`, or `nan` for a training that diverged, which scores 0 in the search (specification, 11.13)."""
        return "nan" if self.stopped_by == "nan" else "ok"

    @property
    def _validates(self) -> bool:
        return self.spec.checkpoint_epoch is None

    @property
    def best_map_at_r(self) -> float | None:
        """MAP@R of the checkpoint on the validation classes, 0 after a divergence; None without validation classes."""
        if not self._validates:
            return None
        scores = {point.iteration: point.map_at_r for point in self.curve}
        return 0.0 if self.status == "nan" else scores[self.best_iteration]

    @property
    def untrained_map_at_r(self) -> float | None:
        """MAP@R before the first iteration, likewise."""
        if not self._validates:
            return None
        return self.curve[0].map_at_r if self.curve else 0.0

    @property
    def beats_untrained(self) -> bool:
        """Whether a trained epoch was better than epoch 0 (specification, 11.22)."""
        best, untrained = self.best_map_at_r, self.untrained_map_at_r
        return self.status == "ok" and (best is None or untrained is None or best > untrained)

    @property
    def cut_off(self) -> bool:
        """Whether it ended at the largest number of epochs while its validation score still rose.

        Its last checkpoint is its model then, and scored above the validation before it, which can be that of the
        untrained network. A training without validation has the epoch that was best in others.
        """
        scores = [point.map_at_r or 0.0 for point in self.curve]
        at_the_end = self.stopped_by == "max_epochs" and self.best_iteration == self.iterations > 0
        return at_the_end and (not self._validates or (len(scores) > 1 and scores[-1] > scores[-2]))

    @property
    def events(self) -> tuple[Event, ...]:
        """What readers of this fold's test score must know."""
        fold = self.spec.fold
        if self.status == "nan":
            return (Event(kind="diverged", fold=fold, iteration=self.iterations),)
        no_gain = not self.beats_untrained and self.stopped_by != "untrained"
        # A validation has the mean loss of the steps since the one before, and none if there was no step.
        skipped = [point.iteration for point in self.curve if point.iteration > 0 and point.loss is None]
        return (
            *([Event(kind="no pairs", fold=fold)] if self.batches_without_pairs else []),
            *([Event(kind="no gain", fold=fold)] if no_gain else []),
            *(Event(kind="skipped", fold=fold, iteration=first) for first in skipped[:1]),
        )

    @property
    def objective(self) -> float:
        """Value that the search maximises: MAP@R on the validation classes, or 0 for a training with `nan`."""
        if self.best_map_at_r is None:
            raise ValueError("a training without validation classes has no objective")
        return self.best_map_at_r if self.status == "ok" else 0.0


class TestPoint(Record):
    """Scores on the test classes after a number of iterations of a training."""

    __test__: ClassVar[bool] = False  # The name makes pytest take the class for a test case.

    iteration: int = Field(ge=0)
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


class EarlyScores(Record):
    """Test scores of the best models up to the epoch at which trials of the search end at the latest.

    Attributes:
        steps: Iterations of a training up to that epoch.
    """

    steps: int = Field(ge=1)
    separated: Scores
    concatenated: Scores


class RunRecord(Record):
    """Test scores of one reproduction: one model per fold, trained with new seeds at one hyperparameter setting.

    Attributes:
        specs: The trainings whose models were tested, in the order of the folds.
        chosen_by: Fingerprints of the trainings that chose the epoch of the models, one per fold (protocol
            `standard`); empty if nothing was chosen.
        hyperparameters: The setting that was trained, by target.
        run: Number of the reproduction, from 0 in every search.
        search: Number of the search that found the setting, from 0.
        study: Fingerprint of the study that found the setting; None if nothing was searched, or if it was not recorded.
        seed: The experiment's seed. The folds' seeds derive from `seed`, `search` and `run`. Runs of two methods that
            are equal in all three are matched.
        fold_scores: Test scores of each fold's model.
        concatenated: Test scores of the concatenated embeddings of all folds.
        class_scores: Scores of each test class; None if they were not recorded.
        last_epoch: Test scores after the last epoch of the same trainings, mean over folds (protocol `standard`). None
            for other protocols, for the untrained trunk and for a training that diverged. Shown beside the scores of
            the chosen epoch, never instead of them.
        early: Scores of the same trainings' best models up to the end of a trial, where the trainings could go on; None
            where they could not.
        metrics_separated: Further metrics of the experiment by name (`recall@2`, `nmi`, ...), mean over folds.
        dimensions: Size of one fold's embedding.
        steps: Iterations up to the models' checkpoints, summed over folds; None if they were not recorded.
        iterations: Iterations up to the end of the trainings, summed over folds; None likewise.
        wall_time: Duration of the trainings and of the evaluation in seconds, summed.
        events: What readers of the scores must know, such as a fold whose training diverged.
        evaluation_version: Version of the test evaluation.
        fingerprint: The name of this test evaluation; see `FoldSpec.fingerprint`.
    """

    protocol: str
    specs: tuple[FoldSpec, ...] = Field(min_length=1)
    chosen_by: tuple[str, ...] = ()
    hyperparameters: dict[str, JsonValue]
    run: int = Field(ge=0)
    search: int = Field(default=0, ge=0)
    study: str | None = None
    seed: int
    fold_scores: tuple[Scores, ...] = Field(min_length=1)
    concatenated: Scores
    class_scores: ClassScores | None = None
    last_epoch: Scores | None = None
    early: EarlyScores | None = Field(default=None, exclude_if=lambda value: value is None)
    metrics_separated: dict[str, FiniteFloat] = Field(default={})
    metrics_concatenated: dict[str, FiniteFloat] = Field(default={})
    dimensions: int = Field(ge=1)
    test_classes: int = Field(ge=1)
    test_images: int = Field(ge=1)
    steps: int | None = None
    iterations: int | None = None
    wall_time: Seconds
    events: tuple[Event, ...] = ()
    evaluation_version: int = EVALUATION_VERSION
    provenance: Provenance
    fingerprint: str = Field(default_factory=lambda others: _name_of_run(others))  # Last: it is made of them.

    @property
    def fold_fingerprints(self) -> tuple[str, ...]:
        """Fingerprints of the trainings whose models were tested, in the order of the folds."""
        return tuple(spec.fingerprint for spec in self.specs)

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return self.specs[0].dataset

    @property
    def data_fingerprint(self) -> str:
        """Fingerprint of the data."""
        return self.specs[0].data_fingerprint

    @property
    def method(self) -> str:
        """Key of the method."""
        return self.specs[0].method.name

    @property
    def training_version(self) -> int:
        """Version of the trainings."""
        return self.specs[0].training_version

    @property
    def separated(self) -> Scores:
        """Mean of the scores of the folds' models."""
        return mean_scores(self.fold_scores)

    @property
    def name(self) -> str:
        """The run in messages; names the search only if it is not the first."""
        return run_name(self.run, self.search)


def mean_scores(scores: Sequence[Scores]) -> Scores:
    """Return the mean of each metric."""
    return Scores(**{name: fmean(getattr(one, name) for one in scores) for name in Scores.model_fields})


def run_name(run: int, search: int) -> str:
    """Return the name of a run for people, who count from 1: `run 2`, or `run 2 of search 3`."""
    return f"run {run + 1}" if search == 0 else f"run {run + 1} of search {search + 1}"


def run_fingerprint(
    fold_fingerprints: tuple[str, ...],
    metrics: tuple[str, ...] = (),
    chosen_by: tuple[str, ...] = (),
    version: int = EVALUATION_VERSION,
) -> str:
    """Return the fingerprint of a test evaluation; the trainings are in the order of the folds."""
    further = [sorted(metrics)] if metrics else []
    choice = [{"chosen_by": list(chosen_by)}] if chosen_by else []
    return fingerprint_of(["run", version, list(fold_fingerprints), *further, *choice])


def _name_of_run(fields: dict[str, Any]) -> str:
    trainings, metrics = tuple(spec.fingerprint for spec in fields["specs"]), tuple(fields["metrics_separated"])
    return run_fingerprint(trainings, metrics, fields["chosen_by"], fields["evaluation_version"])
