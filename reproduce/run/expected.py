"""How long an experiment takes: its trainings and tests that are left, expected and at most, by row and by stage.

`plan`, the first lines of `run` and the time left during a run all ask here. The numbers of steps and folds are
expected from kept records (`results.answer.durations`); so is the speed, unless it is given or measured.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from protocols.protocol_registry import ProtocolEntry
from protocols.study import Study
from results.answer.durations import (
    START,
    Expected,
    Rate,
    Stage,
    expected_folds,
    expected_steps,
    first_end,
    kept_rate,
    seconds_without_steps,
)
from results.spec.search_settings import SearchSettings
from results.store.store import Store
from results.wording import counted, in_words, listed

STAGES: tuple[Stage, ...] = ("search", "reproductions", "tests")

GIVEN = "--rate"
"""Where a rate is from that the user gave, for a machine that is not known."""

RateOf = Callable[[Study, int, int], Rate | None]
"""Returns how fast the trainings of a row are, given the steps of an epoch and how many trainings run at a time; None
if it is not known."""


@dataclass(frozen=True)
class StageLeft:
    """What is left of one stage of a row.

    Attributes:
        most: Number of trainings, or of tests; with racing at most.
        expected: Number that is expected.
        seconds: Seconds of one that are expected; None if the speed is not known.
        most_seconds: Seconds of one that early stopping does not end.
    """

    most: int
    expected: float
    seconds: float | None
    most_seconds: float | None

    @property
    def total(self) -> float | None:
        """Expected seconds of all."""
        return None if self.seconds is None else self.expected * self.seconds

    @property
    def most_total(self) -> float | None:
        """Seconds of all, at most."""
        return None if self.most_seconds is None else self.most * self.most_seconds


@dataclass(frozen=True)
class RowLeft:
    """The planned trainings and tests of one row, and those that are left.

    Attributes:
        study: The row with its data and settings.
        planned: Number of trainings of each stage, and of tests; with racing at most.
        in_store: How many of them are in the store.
        most_steps: Number of steps of a trial's training that early stopping does not end; 0 without a loss.
        longer: How many times as many steps a reproduction may have.
        evaluated: Number of images, or rows of features, that a validation embeds, and the test of one run.
        rates: How fast its trainings are in each stage, since fewer at a time may be faster; empty if it is not known.
    """

    study: Study
    planned: Mapping[Stage, int]
    in_store: Mapping[Stage, int]
    most_steps: int
    evaluated: tuple[int, int]
    rates: Mapping[Stage, Rate] = field(default_factory=dict)
    longer: float = 1.0

    def most_steps_in(self, stage: Stage) -> int:
        """Number of steps of a training of a stage that early stopping does not end."""
        return round(self.most_steps * (self.longer if stage == "reproductions" else 1.0))

    @property
    def trainings(self) -> int:
        """Number of trainings."""
        return self.planned["search"] + self.planned["reproductions"]

    @property
    def made(self) -> int:
        """Number of trainings that are in the store."""
        return self.in_store["search"] + self.in_store["reproductions"]

    @property
    def to_do(self) -> int:
        """Number of trainings that are not in the store."""
        return self.trainings - self.made

    @property
    def folds(self) -> Expected:
        """The part of their folds that its trials are expected to be trained on."""
        row = self.study.row
        return expected_folds(row.key) if self.study.search.racing and row.trials else Expected(1.0)

    def steps(self, stage: Stage) -> Expected:
        """Expected steps of a training."""
        conditions = self.study.setup.conditions
        if not self.most_steps:
            return Expected(0.0)
        epoch_steps, training = self.most_steps // conditions.training.max_epochs, conditions.training
        if stage == "reproductions":
            training = training.model_copy(update={"max_epochs": round(self.longer * training.max_epochs)})
        of_stage = conditions.model_copy(update={"training": training})
        return expected_steps(of_stage, epoch_steps, self.study.row.key, stage)

    def left(self, stage: Stage) -> StageLeft:
        """What is left of a stage."""
        most = self.planned[stage] - self.in_store[stage]
        if stage == "tests":
            return StageLeft(most, most, self._test_seconds(), self._test_seconds())
        expected = most * self.folds.value if stage == "search" else most
        steps = self.steps(stage).value
        return StageLeft(most, expected, self._seconds(stage, steps), self._seconds(stage, self.most_steps_in(stage)))

    def side_by_side(self, stage: Stage) -> int:
        """How many of the trainings, or tests, that are left can run at a time.

        Trials of a search follow one another, and so do the folds of a raced trial.
        """
        left, search = self.planned[stage] - self.in_store[stage], self.study.search
        folds = 1 if search.racing else self.study.setup.folds
        return min(left, self.study.row.searches * folds) if stage == "search" else left

    def chain(self, workers: int) -> tuple[float, float]:
        """Seconds of one search and its reproductions, which follow one another, expected and at most."""
        search, runs, searches = self.left("search"), self.left("reproductions"), self.study.row.searches
        side_by_side = max(1, min(self.side_by_side("search") // searches, workers))

        def follow(of_search: float | None, of_runs: float | None, of_run: float | None) -> float:
            longest = of_run if runs.most else 0.0
            return (of_search or 0.0) / searches / side_by_side + max(
                longest or 0.0, (of_runs or 0.0) / searches / workers
            )

        return (
            follow(search.total, runs.total, runs.seconds),
            follow(search.most_total, runs.most_total, runs.most_seconds),
        )

    def _seconds(self, stage: Stage, steps: float) -> float | None:
        training = self.study.setup.conditions.training
        if not self.most_steps:
            return seconds_without_steps(self.study.setup.conditions, self.study.row.key)
        if (rate := self.rates.get(stage)) is None:
            return None
        epochs = steps * training.max_epochs / self.most_steps
        validations = 1 + math.ceil(epochs / training.validate_every)
        return rate.training + steps * rate.step + validations * self.evaluated[0] * rate.image

    def _test_seconds(self) -> float | None:
        if (rate := self.rates.get("tests")) is None:
            return None if self.most_steps else 0.0
        if rate.test is not None:
            return rate.test
        return self.evaluated[1] * (rate.image or rate.step / self.study.setup.conditions.training.batch_size)


def rate_of_records(gpus: int = 0) -> RateOf:
    """Return what gives the rate that kept records have for a row, spread over so many GPUs; 0 is a CPU."""
    return lambda study, epoch_steps, at_a_time: kept_rate(
        study.setup.conditions, epoch_steps, study.row.key, _sharing(at_a_time, gpus)
    )


def _sharing(at_a_time: int, gpus: int) -> int:
    """Return how many trainings share a GPU; 0 on CPUs."""
    return math.ceil(at_a_time / gpus) if gpus else 0


def rows_left(
    studies: Mapping[str, Study],
    protocol: ProtocolEntry,
    store: Store | None,
    experiment: str,
) -> dict[str, RowLeft]:
    """Plan the rows of an experiment, by key; how fast they are says `with_rates`.

    Args:
        studies: Its rows; their log is that of the store.
        protocol: Its protocol.
        store: Only read; None where there is none yet.
        experiment: Its fingerprint.
    """
    tested = [] if store is None else [run.method for run in store.experiment_runs(experiment)]
    return {key: _row(study, protocol, store, tested.count(key)) for key, study in studies.items()}


def trainings_at_a_time(rows: Mapping[str, RowLeft], workers: int) -> dict[Stage, int]:
    """Return how many trainings, or tests, of each stage run at a time: there may be fewer than workers."""
    found: dict[Stage, int] = {}
    for stage in STAGES:
        trained = sum(row.side_by_side(stage) for row in rows.values() if row.most_steps)
        any_row = sum(row.side_by_side(stage) for row in rows.values())
        found[stage] = max(1, min(workers, trained or any_row))
    return found


def with_rates(rows: Mapping[str, RowLeft], workers: int, rate_of: RateOf) -> dict[str, RowLeft]:
    """Return the rows with the speed of their trainings in each stage, as many at a time as really run."""
    at_a_time = trainings_at_a_time(rows, workers)

    def rated(row: RowLeft) -> RowLeft:
        epoch_steps = row.most_steps // row.study.setup.conditions.training.max_epochs
        rates = {stage: rate_of(row.study, epoch_steps, at_a_time[stage]) for stage in STAGES} if row.most_steps else {}
        return replace(row, rates={stage: rate for stage, rate in rates.items() if rate is not None})

    return {key: rated(row) for key, row in rows.items()}


def _row(study: Study, protocol: ProtocolEntry, store: Store | None, tested: int) -> RowLeft:
    row, setup, (of_folds, on_all) = study.row, study.setup, protocol.models(study)
    runs = row.searches * row.reproductions
    trainings = runs * (of_folds + on_all)
    kinds, images, training = protocol.kinds(study), setup.dataset.images, setup.conditions.training
    epoch_steps = max(training.steps_per_epoch(len(images.of_classes(kind.train))) for kind in kinds)
    known = [] if store is None else protocol.foreseeable(study)
    of_trials = [name for one in study.searches for name in one.known_trainings()] if known else []
    made, searched = (len(store.finished_folds(names)) if store and names else 0 for names in (known, of_trials))
    return RowLeft(
        study=study,
        planned={
            "search": protocol.trainings_of(study) - trainings - study.skipped(),
            "reproductions": trainings,
            "tests": runs,
        },
        in_store={"search": searched, "reproductions": made - searched, "tests": tested},
        most_steps=0 if study.method.loss is None else training.max_epochs * epoch_steps,
        longer=(setup.reproduction_epochs or 1) / training.max_epochs if setup.goes_on(study.method) else 1.0,
        evaluated=(
            len(images.of_classes(kinds[0].validation)),
            (on_all or of_folds) * len(images.of_classes(setup.split.test)),
        ),
    )


@dataclass(frozen=True)
class Duration:
    """How long the trainings and tests that are left take.

    Attributes:
        seconds: Expected, with so many trainings at a time and the start of their processes.
        most: At most.
        work: Expected seconds of work, of a core or of a GPU: those that share it count once. At most in `most_work`.
        longest: Title of the row whose search alone takes as long as everything, so that more workers change little.
    """

    seconds: float
    most: float
    work: float
    most_work: float
    longest: str | None


def duration(rows: Mapping[str, RowLeft], workers: int, gpus: int = 0) -> Duration | None:
    """Return how long what is left takes, on so many GPUs or on CPUs; None if the speed of a row is not known."""
    at_a_time = trainings_at_a_time(rows, workers)
    left = [(row.left(stage), stage) for row in rows.values() for stage in STAGES]
    left = [(one, stage) for one, stage in left if one.most]
    if any(one.total is None or one.most_total is None for one, _ in left):
        return None

    def in_all(per: Mapping[Stage, int]) -> tuple[float, float]:
        return (
            math.fsum((one.total or 0.0) / per[stage] for one, stage in left),
            math.fsum((one.most_total or 0.0) / per[stage] for one, stage in left),
        )

    work, most_work = in_all({stage: max(1, _sharing(number, gpus)) for stage, number in at_a_time.items()})
    side_by_side, most_side_by_side = in_all(at_a_time)
    chains = {row.study.row.title: row.chain(workers) for row in rows.values() if row.to_do}
    title, (chain, _) = max(chains.items(), key=lambda item: item[1], default=("", (0.0, 0.0)))
    most_chain = max((most for _, most in chains.values()), default=0.0)
    all_busy, _ = in_all(dict.fromkeys(STAGES, workers))
    longest = title if chain > all_busy else None
    start = START if chains else 0.0
    return Duration(
        start + max(side_by_side, chain), start + max(most_side_by_side, most_chain), work, most_work, longest
    )


class TimeLeft:
    """The time left during a run: the plan's, until trainings of the run say how fast they are.

    Only trainings with steps say it. One without takes a second or less, of which a start of processes is many times.

    Args:
        rows: What is left at the start, by key.
        workers: Number of trainings at a time.
        known_after: Number of trainings with steps of this run that say how fast they are.
    """

    def __init__(self, rows: Mapping[str, RowLeft], workers: int, known_after: int) -> None:
        self._rows, self._known_after = rows, known_after
        self._at_a_time = trainings_at_a_time(rows, workers)
        trained = [row for row in rows.values() if row.most_steps]
        self._in_seconds = all(row.rates for row in trained)
        # Once: a run asks after each of its thousands of trainings.
        stages: tuple[Stage, Stage] = ("search", "reproductions")
        self._work = {(key, stage): self._work_of(row, stage) for key, row in rows.items() for stage in stages}
        self._folds = {key: row.folds.value for key, row in rows.items()}
        self._done, self._count = 0.0, 0
        self._latest, self._without_steps = 0.0, 0.0

    def made(self, key: str, stage: Stage, elapsed: float) -> None:
        """Count a training that ended so many seconds after the start of the run."""
        if self._rows[key].most_steps:
            self._done += self._work[key, stage]
            self._count += 1
        else:
            self._without_steps += elapsed - self._latest
        self._latest = elapsed

    def seconds(self, totals: Mapping[str, int], done: Mapping[tuple[str, Stage], int], elapsed: float) -> float | None:
        """Return the seconds left; None if nothing says it yet.

        Args:
            totals: Number of trainings by row, at most, as far as its trials are known.
            done: How many of them are made or found, by row and stage.
            elapsed: Seconds since the start of the run.
        """
        left = {key: self._left(key, totals[key], done) for key in self._rows}
        if self._count < self._known_after or self._done == 0:
            works = [one for of_row in left.values() for one in of_row]
            return math.fsum(work / self._at_a_time[stage] for stage, work in works) if self._in_seconds else None
        speed = (elapsed - self._without_steps) / self._done
        return math.fsum(
            work * (speed if self._rows[key].most_steps else 1 / self._at_a_time[stage])
            for key, of_row in left.items()
            for stage, work in of_row
        )

    def _left(
        self, key: str, total: int, done: Mapping[tuple[str, Stage], int]
    ) -> tuple[tuple[Stage, float], tuple[Stage, float]]:
        """Expected work of a row by stage."""
        runs = self._rows[key].planned["reproductions"]
        search = max(0, total - runs - done.get((key, "search"), 0)) * self._folds[key]
        reproductions = runs - done.get((key, "reproductions"), 0)
        return (
            ("search", search * self._work[key, "search"]),
            ("reproductions", reproductions * self._work[key, "reproductions"]),
        )

    def _work_of(self, row: RowLeft, stage: Stage) -> float:
        """Expected work of a training: its seconds, or its steps if the speed of a row is not known."""
        return (row.left(stage).seconds or 0.0) if self._in_seconds else row.steps(stage).value


def expectation(rows: Mapping[str, RowLeft], search: SearchSettings, workers: int, gpus: int = 0) -> list[str]:
    """Say how many trainings there are, how many are in the store, how long the others take, and how that is known.

    Args:
        rows: The rows of the experiment.
        search: Its search.
        workers: Number of trainings at a time, at most.
        gpus: Number of GPUs that they are spread over; 0 on CPUs.
    """
    trainings, to_do = sum(row.trainings for row in rows.values()), sum(row.to_do for row in rows.values())
    most = "at most " if search.racing or search.until_decided else ""
    counts = f"{most}{counted(trainings, 'training')}, {trainings - to_do:,} in the store"
    if not to_do:
        return [f"{counts}; nothing is left to do"]
    expected = sum(row.left(stage).expected for row in rows.values() for stage in ("search", "reproductions"))
    counts += f", {to_do:,} to do" + (f", {expected:,.0f} expected" if round(expected) < to_do else "")
    trained = [row for row in rows.values() if row.to_do and row.most_steps]
    if unknown := [row.study.row.title for row in trained if not row.rates]:
        of = "" if len(unknown) == len(trained) else f" of {listed(unknown)}"
        how = "`plan --measure` measures it, `plan --rate` takes it"
        return [counts, f"no kept record has the speed{of} on this kind of machine; {how}", *_sources(trained)]
    known = duration(rows, workers, gpus)
    assert known is not None
    given = any(rate.words == GIVEN for row in trained for rate in row.rates.values())
    unit = "GPU-hours of work" if gpus else "hours of training" if given else "CPU-hours"
    time, work = in_words(known.seconds), f"{_hours(known.work)} {unit}"
    if not all(row.steps("reproductions").of_kind for row in trained):
        time += " by trainings of another kind"
    if (longer := in_words(known.most)) != in_words(known.seconds):
        time += f", {longer} if nothing stops early"
    if (most_work := _hours(known.most_work)) != _hours(known.work):
        work += f", {most_work} if nothing stops early"
    line = f"expected {time}, with {at_a_time(rows, workers, gpus)}; {work}"
    if known.longest:
        line += f". More at a time change little: the trials of one search of {known.longest} follow one another"
    return [counts, line, *_sources(trained)]


def at_a_time(rows: Mapping[str, RowLeft], workers: int, gpus: int) -> str:
    """Say how many trainings run at a time and on how many GPUs, by stage where fewer than the others run in one."""
    numbers = trainings_at_a_time(rows, workers)
    stages: tuple[Stage, ...] = ("search", "reproductions")
    made = {stage: numbers[stage] for stage in stages if any(row.left(stage).most for row in rows.values())}
    on = f" on {counted(gpus, 'GPU')}" if gpus else ""
    if len(set(made.values())) == 1:
        return f"{counted(max(made.values()), 'training')} at a time{on}"
    return f"{counted(made['search'], 'training')} at a time in the search and {made['reproductions']} afterwards{on}"


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def _sources(rows: Collection[RowLeft]) -> list[str]:
    """Say from which records the expected steps, folds and speed are, and what the speed is."""
    lines = []
    stopped = {one.record for row in rows for one in (row.steps("search"), row.steps("reproductions"))} - {""}
    shares = [row.steps("reproductions").value / row.most_steps_in("reproductions") for row in rows]
    if stopped and min(shares) < 1:
        lines.append(f"early stopping leaves {_percent(shares)} of the steps, as in {listed(sorted(stopped))}")
    expected = [row.steps("reproductions") for row in rows]
    if not all(one.of_kind for one in expected):
        frozen = any(row.study.setup.conditions.trunk.is_input_features for row in rows)
        trained = "an embedder on such features" if frozen else "such a network"
        lines.append(f"no record trained {trained} to its end, so its trainings may end much later, or earlier")
    if others := [one.of_methods for one in expected if one.of_methods]:
        of_others = f"{_ends([steps for one in others for steps in one])} steps"
        many = f"{_ends([float(len(one)) for one in others])} methods"
        lines.append(
            f"~ ({counted(len(others), 'method')}): the mean of the record's {many} ({of_others}), "
            "since it has none of these"
        )
    trainings = [row.study.setup.conditions.training for row in rows]
    if not stopped and any(first_end(training) < training.max_epochs for training in trainings):
        lines.append("no kept record says where early stopping ends such trainings, so all their steps are expected")
    elif min(shares, default=1) == 1:
        lines.append("no training is expected to stop early")
    if raced := [row.folds for row in rows if row.folds.record]:
        records = listed(sorted({one.record for one in raced}))
        lines.append(f"racing leaves {_percent([one.value for one in raced])} of the folds, as in {records}")
    if any(row.study.setup.conditions.trunk.frozen for row in rows):
        lines.append("the features of the frozen trunk are computed once before, which is not counted")
    if rates := [
        (row.rates[stage], row.study.setup.conditions.training.batch_size)
        for row in rows
        for stage in ("search", "reproductions")
        if stage in row.rates and row.planned[stage] > row.in_store[stage]
    ]:
        steps = [1 / rate.step for rate, _ in rates]
        images = [batch / rate.step for rate, batch in rates]
        words = listed(sorted({rate.words for rate, _ in rates}))
        lines.append(f"speed: {_ends(steps)} steps ({_ends(images)} images) a second of one training, from {words}")
    return lines


def _percent(shares: list[float]) -> str:
    return f"{_ends([100 * share for share in shares])} %"


def _ends(values: list[float]) -> str:
    form = ",.0f" if max(values) >= 10 else ".2g"
    return " to ".join(dict.fromkeys(format(end, form) for end in (min(values), max(values))))
