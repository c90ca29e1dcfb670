"""Says how much work an experiment has left, how long it takes, and from which records that is expected."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from reproduce.run.work import Duration, RowWork, Work, at_a_time, duration
from results.answer.caveats import budget_finding
from results.answer.deviations import SearchDeviation
from results.answer.durations import Expected
from results.answer.pair_tests import MOST_DEGREES
from results.answer.planning import detectable
from results.answer.question import planned_question
from results.findings.experiment import answer_of
from results.spec.search_settings import SearchSettings
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, in_words, listed

if TYPE_CHECKING:
    from reproduce.run.session import Session
    from results.store.store import Store

GIVEN = "--rate"
"""Where a rate is from that the user gave, for a machine that is not known."""


def expectation(rows: Mapping[str, RowWork], search: SearchSettings, workers: int, gpus: int = 0) -> list[str]:
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
    expected = sum(row.search.expected + row.reproductions.expected for row in rows.values())
    counts += f", {to_do:,} to do" + (f", {expected:,.0f} expected" if round(expected) < to_do else "")
    trained = [row for row in rows.values() if row.to_do and row.search.epoch_steps]
    return [counts, _time(rows, trained, workers, gpus), *_steps(trained), *_speed(trained)]


def _time(rows: Mapping[str, RowWork], trained: Sequence[RowWork], workers: int, gpus: int) -> str:
    """Say how long what is left takes, or that the speed of rows is not known."""
    known = duration(rows, workers, gpus)
    if known is None:
        unknown = [row.search.title for row in rows.values() if not all(one.is_known for one in row if one.left)]
        of = "" if len(unknown) >= len(trained) else f" of {listed(unknown)}"
        how = "`plan --measure` measures it, `plan --rate` takes it"
        return f"no kept record has the speed{of} on this kind of machine; {how}"
    given = any(one.rate is not None and one.rate.words == GIVEN for row in trained for one in row)
    unit = "GPU-hours of work" if gpus else "hours of training" if given else "CPU-hours"
    (time, most_time), (hours, most_hours) = map(in_words, known.seconds), map(_hours, known.work)
    work = f"{hours} {unit}"
    if between := _between(rows, workers, gpus):
        time += f" ({' to '.join(in_words(one.seconds[0]) for one in between)} by all kept records)"
        work += f" ({' to '.join(_hours(one.work[0]) for one in between)})"
    if most_time != in_words(known.seconds[0]):
        time += f", {most_time} if nothing stops early"
    if most_hours != hours:
        work += f", {most_hours} if nothing stops early"
    line = f"expected {time}, with {at_a_time_words(rows, workers, gpus)}; {work}"
    if known.longest:
        line += f". More at a time change little: the trials of one search of {known.longest} follow one another"
    return line


def _between(rows: Mapping[str, RowWork], workers: int, gpus: int) -> list[Duration]:
    """Return the shortest and the longest that all records say, if none has the data of these rows."""
    if not any(one.steps.ends and one.left for one in _trainings(rows.values())):
        return []
    return [found for end in (0, 1) if (found := duration(_at_end(rows, end), workers, gpus))]


def _at_end(rows: Mapping[str, RowWork], end: Literal[0, 1]) -> dict[str, RowWork]:
    """Return the rows with the fewest (0) or the most (1) steps that records say, where none is of their data."""

    def at(one: Work) -> Work:
        return replace(one, steps=Expected(one.steps.ends[end])) if one.steps.ends else one

    return {key: RowWork(*map(at, row)) for key, row in rows.items()}


def at_a_time_words(rows: Mapping[str, RowWork], workers: int, gpus: int) -> str:
    """Say how many trainings run at a time and on how many GPUs, by stage where fewer than the others run in one."""
    numbers = at_a_time(rows, workers)
    made = list(dict.fromkeys(numbers[one.stage] for one in _trainings(rows.values()) if one.left))
    on = f" on {counted(gpus, 'GPU')}" if gpus else ""
    if len(made) == 1:
        return f"{counted(made[0], 'training')} at a time{on}"
    search, afterwards = numbers["search"], numbers["reproductions"]
    return f"{counted(search, 'training')} at a time in the search and {afterwards} afterwards{on}"


def _trainings(rows: Collection[RowWork]) -> list[Work]:
    return [one for row in rows for one in (row.search, row.reproductions)]


def _hours(seconds: float) -> str:
    return _short(seconds / 3600)


def _steps(rows: Collection[RowWork]) -> Iterator[str]:
    """Say from which records the expected steps and folds of rows with a loss are."""
    stopped = {_named(one.steps) for one in _trainings(rows) if one.steps.record}
    shares = [row.reproductions.steps.value / row.reproductions.most_steps for row in rows]
    if stopped and min(shares) < 1:
        yield f"early stopping leaves {_percent(shares)} of the steps, as in {listed(sorted(stopped))}"
    yield from _other_records(rows)
    if min(shares, default=1) == 1:
        yield "no training is expected to stop early"
    if raced := [row.search.folds for row in rows if row.search.folds.record]:
        records = listed(sorted({_named(one) for one in raced}))
        yield f"racing leaves {_percent([one.value for one in raced])} of the folds, as in {records}"


def _named(expected: Expected) -> str:
    """Name the record that a number is from, with its data if these are others."""
    return f"{expected.record} ({expected.data or 'other images'})" if expected.is_of_other_data else expected.record


def _other_records(rows: Collection[RowWork]) -> Iterator[str]:
    """Say where records have other data, or other methods."""
    expected = [row.reproductions.steps for row in rows]
    if ends := [end for one in expected for end in one.ends or ()]:
        frozen = any(row.search.conditions.trunk.is_input_features for row in rows)
        trained = "an embedder on features of such data" if frozen else "a network on such data"
        yield (
            f"no record trained {trained} to its end: the steps are scaled by patience, and all kept records together "
            f"say {_ends(ends)} steps"
        )
    if others := [one.of_methods for one in expected if one.of_methods]:
        of_others = f"{_ends([steps for one in others for steps in one])} steps"
        many = f"{_ends([float(len(one)) for one in others])} methods"
        yield (
            f"~ ({counted(len(others), 'method')}): the mean of the record's {many} ({of_others}), "
            "since it has none of these"
        )


def _speed(rows: Collection[RowWork]) -> Iterator[str]:
    """Say what the speed of rows with a loss is and where it is from, and what it leaves out."""
    if any(row.search.conditions.trunk.frozen for row in rows):
        yield "the features of the frozen trunk are computed once before, which is not counted"
    rates = [(one.rate, one.conditions.training.batch_size) for one in _trainings(rows) if one.rate and one.left]
    if rates:
        steps = [1 / rate.step for rate, _ in rates]
        images = [batch / rate.step for rate, batch in rates]
        words = listed(sorted({rate.words for rate, _ in rates}))
        yield f"speed: {_ends(steps)} steps ({_ends(images)} images) a second of one training, from {words}"


def _percent(shares: list[float]) -> str:
    return f"{_ends([100 * share for share in shares])} %"


def _ends(values: list[float]) -> str:
    return " to ".join(dict.fromkeys(map(_short, (min(values), max(values)))))


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def budget_lines(
    session: Session,
    store: Store | None,
    rows: Mapping[str, RowWork],
    workers: int,
    gpus: int,
    difference: float | None = None,
    deviation: float | None = None,
) -> Iterator[str]:
    """Say which differences the planned searches or runs can show, and what showing a difference takes.

    Nothing is said of a single method. What the store has of the experiment says how far its searches differ.

    Args:
        difference: In points; the margin of equality by default, without its trainings and hours.
        deviation: Standard deviation between searches that is assumed, in points.
    """
    methods, question = len(session.experiment.comparable_rows()), planned_question(session.experiment)
    if methods < 2:
        return
    found = None
    if store is not None and store.experiment_runs(session.fingerprint):
        found = answer_of(MeasuredExperiment.from_store(store, session.fingerprint))
    if deviation is not None:
        given = SearchDeviation(question.scaling.to_gap(deviation), int(MOST_DEGREES), "", given=True)
        question, found = replace(question, assumed=given), None
    if difference is not None:
        question = replace(question, margin=difference)
    budget = detectable(question, methods, found)
    yield budget_finding(budget, question).sentences
    if budget.deviation is None:
        yield "`plan --difference 1 --assume-deviation 2` says what a point takes if they vary by two."
    if difference is not None and budget.needed is not None and budget.units:
        yield _what_it_takes(rows, budget.needed / budget.units, workers, gpus)


def _what_it_takes(rows: Mapping[str, RowWork], times: float, workers: int, gpus: int) -> str:
    """Say how many trainings so many times the searches have, and how long all of them take, the finished ones too."""
    trainings = sum(row.trainings for row in rows.values())
    words = (
        f"That is {times:.3g} times the searches of this plan: about {counted(round(times * trainings), 'training')}"
    )
    left = sum(row.to_do for row in rows.values())
    known = duration(rows, workers, gpus) if left else None
    if known is None:
        return f"{words}."

    def in_all(seconds: float) -> str:
        return in_words(float(seconds) * times * trainings / left)

    expected, most = map(in_all, known.seconds)
    between = " to ".join(in_all(one.seconds[0]) for one in _between(rows, workers, gpus))
    words += f", {expected} expected{f' ({between} by all kept records)' if between else ''}"
    return f"{words}{'' if most == expected else f', {most} if nothing stops early'}."
