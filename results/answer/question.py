"""What is asked of scores: which score, of which methods, by what unit, and which comparisons."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from results.answer.deviations import SearchDeviation, nearest_search_deviation
from results.answer.limits import cut_off_words, open_ends_of, pressed_words
from results.answer.sample import Sample, Unit, sample_of
from results.answer.scaling import Scaling, scaling_of
from results.reading.scores_table import Reading
from results.records.frame import EmbeddingKind
from results.records.records import RunRecord
from results.spec.experiment_spec import Experiment, PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.plan import LeftOut
from results.spec.search_settings import LOOKS
from results.store.experiment_results import MeasuredExperiment

ALPHA = 0.05
FURTHER_SCORES = 5
"""Headline scores beside the primary one: three metrics of two kinds of embeddings."""


@dataclass(frozen=True)
class AskedMethod:
    """A method that is asked for.

    Attributes:
        searches: Complete searches whose means are its values; 0 if its values are its runs.
        runs: Runs of each search, or in all. A search with fewer is not complete.
        searched: Whether its hyperparameters were searched.
        trained: Whether anything is trained by gradients; what is computed varies far less from search to search.
        constant: Whether one run stands for all, because every other would be equal.
        left_out: Why it is not tested against the others.
        cut_off: After how long its trainings were cut off, such as `after 400 steps`; empty if they were not, None if
            that is not known.
        pressed: The ends of ranges that its searches press, such as `loss.alpha 1 (low)`.
        open_ends: Whether better settings can lie beyond them.
        held_up: What a record that was read says of both.
        older: Whether it has runs that an older version of the evaluation tested than other methods' runs.
    """

    title: str
    searches: int
    runs: int
    searched: bool = True
    trained: bool = True
    constant: bool = False
    left_out: LeftOut | None = None
    cut_off: str | None = ""
    pressed: str = ""
    open_ends: bool = False
    held_up: tuple[str, ...] = ()
    older: bool = False

    @property
    def extents(self) -> list[str]:
        """What held it up, so that it may be better than it looks: `after 400 steps`, `within the searched ranges`."""
        return [*filter(None, (self.cut_off, "within the searched ranges" if self.open_ends else "", *self.held_up))]

    @property
    def by_search(self) -> bool:
        """Whether its values are searches; what has nothing to search is only repeated beside them."""
        return self.searches > 0 and self.searched


class Tested(NamedTuple):
    """The test set, and the number of models of a run."""

    images: int
    classes: int
    models: int

    def step(self, metric: str, embeddings: str) -> float:
        """Return about the smallest step of a score: one hit more of one query, in one of the models averaged.

        It is 0 where it is not known: for other metrics than MLRC's three.
        """
        neighbours = max(1.0, self.images / self.classes - 1)
        steps = {"precision_at_1": 1.0, "r_precision": 1 / neighbours, "map_at_r": 1 / neighbours**2}
        models = 1 if embeddings == "concatenated" else self.models
        return steps.get(metric, 0.0) / (self.images * max(1, models))


@dataclass(frozen=True)
class Question(Reading):
    """What is asked of a frame of scores, and of a table how it is read: a frame needs no names of columns.

    Attributes:
        title: Heading of tables and pages.
        score: The metric; empty for the only one of a table.
        embeddings: Their kind, as in the frame.
        unit: What the methods are compared by. With `single search` the deviation of a search is `assumed`.
        compare: `all` pairs, each with the `best`, or each with the method of this name.
        alpha: Bound of the probability of a wrong claim.
        margin: Methods that differ by less count as equal, in the unit that is shown: points of percentages, or the
            score's own. None is 0.5 points of percentages, and no margin of other scores.
        step: Smallest step of the score; 0 if it is not known.
        looks: Numbers of searches after which tests are planned, if several are.
        units: Planned searches of each method, or runs.
        assumed: Deviation between the means of single searches. None is not known: there are no verdicts.
        methods: The methods in the order of the rows. Planned ones without runs count in the correction.
        defaults: The method that each row of default settings belongs to, by the row's key.
        experiment: The experiment that the scores are of, by whose conditions a deviation is assumed.
        least_deviation: Searches of losses are taken to vary by no less, whatever they show (`record_of_searches`).
        half_can_fail: Whether a value below half of its method's best can have failed (`typical.failed`): for
            experiments of this suite.
        scale: What the scores are: fractions of 1 or percent, which are shown in percent, points of a score that is no
            percentage, or times, which compares positive scores by their ratios. None is told from a table's scores.
        lower_is_better: Whether a lower score is better. None is no, unless the score's name says that it is.
        digits: Digits after the point of a score in sentences. Tables have one more.
        shared: What the column of blocks is called.
        folds: Number of folds of a cross-validation; -1 if they are folds of an unknown number.
        keep_all: Whether values that lie far from the others of their method count too.
    """

    title: str = ""
    embeddings: str = ""
    unit: Unit = "search"
    compare: str = "all"
    alpha: float = ALPHA
    margin: float | None = None
    step: float = 0.0
    looks: tuple[int, ...] = ()
    units: int = 0
    assumed: SearchDeviation | None = None
    methods: Mapping[str, AskedMethod] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    tested: Tested | None = None
    experiment: Experiment | None = None
    least_deviation: float = 0.0
    half_can_fail: bool = False
    digits: int = 1
    shared: str = ""
    folds: int = 0
    keep_all: bool = False

    @property
    def sample(self) -> Sample:
        """What the methods' values are: rules and words."""
        return sample_of(self.unit, self.shared, folds=bool(self.folds))

    @property
    def score_name(self) -> str:
        """The score in words, such as `concatenated MAP@R`."""
        return f"{self.embeddings} {HEADLINE_METRICS.get(self.score, self.score)}".strip()

    @property
    def scaling(self) -> Scaling:
        """How scores are compared and written."""
        return scaling_of(self.scale, self.digits)

    @property
    def assumed_words(self) -> str:
        """What tests take as the deviation between searches, and where it is from; empty where none is assumed."""
        if (assumed := self.assumed) is None:
            return ""
        if assumed.given:
            return f"the given {self.scaling.short_gap(assumed.deviation)}"
        return (
            f"twice the {self.scaling.gap_words(assumed.deviation, more=True)} of {assumed.record} ({assumed.setting})"
        )

    @property
    def sign(self) -> int:
        """1 if a higher score is better, else -1."""
        return -1 if self.lower_is_better else 1

    @property
    def bound(self) -> float | None:
        """The margin as a difference; None without one."""
        margin = self.scaling.usual_margin if self.margin is None else self.margin
        return None if margin is None else self.scaling.to_gap(margin)

    @property
    def margin_words(self) -> str:
        """The margin with its unit, `0.5 points`, or `1 point`; empty without one."""
        return "" if self.bound is None else self.scaling.short_gap(self.bound)

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the methods by key."""
        return {key: planned.title for key, planned in self.methods.items()}

    @property
    def compared(self) -> tuple[str, ...]:
        """The methods that are tested against each other."""
        return tuple(key for key, planned in self.methods.items() if planned.left_out is None)

    def on(self, metric: str, embeddings: str, alpha: float | None = None) -> Self:
        """Ask the same of another score, which is a percentage as all further ones of a frame are.

        Without `alpha` all further scores share one level: nobody chose them.
        """
        if (metric, embeddings) == (self.score, self.embeddings):
            return self
        return replace(
            self,
            score=metric,
            embeddings=embeddings,
            scale=None,
            margin=self.margin if self.scaling.in_percent else None,
            alpha=self.alpha / FURTHER_SCORES if alpha is None else alpha,
            step=self.tested.step(metric, embeddings) if self.tested else 0.0,
            assumed=_assumed(self.experiment, self.unit, metric, embeddings),
        )

    def only(self, methods: Sequence[str], compare: str = "all") -> Self:
        """Ask for comparisons of these methods alone, at no look."""
        return replace(self, methods={key: self.methods[key] for key in methods}, compare=compare, looks=())


def planned_question(experiment: Experiment, embeddings: EmbeddingKind | None = None) -> Question:
    """Return what an experiment asks, without its methods: its primary score, and what its runs are compared by."""
    primary = experiment.primary or PrimaryScore(embeddings=embeddings or experiment.planned_embeddings)
    search, unit = experiment.search, unit_of(experiment)
    return Question(
        title=experiment.title,
        score=primary.metric,
        embeddings=primary.embeddings,
        unit=unit,
        compare=primary.compare,
        margin=primary.margin,
        looks=LOOKS if search.until_decided else (),
        units=search.searches if search.trials else experiment.reproductions,
        assumed=_assumed(experiment, unit, primary.metric, primary.embeddings),
        experiment=experiment,
        half_can_fail=True,
    )


def question_of(measured: MeasuredExperiment) -> Question:
    """Return what an experiment asks of its runs.

    The primary score is the one that the experiment names, else MAP@R of the concatenated embeddings, or of the only
    one. A method that was left out of this start, or whose row is under other conditions, is no reference.
    """
    plan, records, by_method = measured.plan, measured.records, measured.runs
    models = max((len(record.specs) for record in records), default=0)
    # Records of other searches are compared by the trials that were made, not by those of the file.
    experiment = plan.experiment.with_search(trials=plan.most_trials)
    question = planned_question(experiment, "separated" if models == 1 else "concatenated")
    tested = Tested(records[0].test_images, records[0].test_classes, len(records[0].fold_scores)) if records else None
    searched, left_out = measured.searched_methods, {**_diverged(by_method), **plan.left_out}
    newest = max((record.evaluation_version for record in records), default=0)
    older = {key for key, runs in by_method.items() if any(run.evaluation_version < newest for run in runs)}
    computed = {key for key, runs in by_method.items() if any(run.specs[0].method.loss is None for run in runs)}
    searches, runs = plan.experiment.search.searches, plan.reproductions
    methods = {
        key: AskedMethod(
            row.title,
            *((searches, runs) if searches > 1 and row.runs >= searches * runs else (0, row.runs)),
            searched=key in searched,
            trained=key not in computed,
            constant=key in plan.constant,
            left_out=left_out.get(key),
            cut_off=cut_off_words(measured, key),
            pressed=pressed_words(measured, key),
            open_ends=bool(open_ends_of(measured, key)),
            older=key in older,
        )
        for key, row in plan.rows.items()
    }
    question = replace(question, methods=methods, defaults=plan.defaults, tested=tested)
    known = question.compare in ("all", "best", *question.compared)
    step = tested.step(question.score, question.embeddings) if tested else 0.0
    return replace(question, compare=question.compare if known else "all", step=step)


def _diverged(by_method: Mapping[str, Sequence[RunRecord]]) -> dict[str, LeftOut]:
    """The methods of which every training diverged."""
    trained, gone = Counter[str](), Counter[str]()
    for method, runs in by_method.items():
        for run in runs:
            trained[method] += len(run.specs)
            gone[method] += len({one.fold for one in run.events if one.kind == "diverged" and not one.choosing})
    reason = LeftOut("¶", "Every training diverged, so the scores are of checkpoints before that. Not compared.")
    return {method: reason for method, count in trained.items() if gone[method] == count}


def unit_of(experiment: Experiment) -> Unit:
    """Return what the methods of an experiment are compared by."""
    if experiment.search.trials == 0:
        return "run"
    return "search" if experiment.search.searches > 1 else "single search"


def _assumed(experiment: Experiment | None, unit: Unit, metric: str, embeddings: str) -> SearchDeviation | None:
    if experiment is None or sample_of(unit).test != "assumed":
        return None
    return nearest_search_deviation(experiment, metric, embeddings, with_failed=True)
