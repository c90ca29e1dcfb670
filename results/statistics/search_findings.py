"""Findings about searches and trainings: what limited them, what failed in them, and how they differ from MLRC's.

A training is cut off if it ended at the largest number of epochs while its validation score still rose. More epochs
could raise its score, so a comparison of such trainings is also one of the methods' speed of learning. A setting at an
end of the range that was searched could be better in a wider range.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from results.records.experiment_summary import ExperimentSummary
from results.records.records import RunRecord
from results.spec.experiment_spec import Experiment
from results.spec.search_settings import LOOKS, SamplerSettings
from results.statistics.compare import ALPHA, power_words
from results.statistics.comparison import ComparisonResult
from results.statistics.deviations import search_deviation
from results.statistics.finding import Finding
from results.statistics.planning import units_for
from results.statistics.primary_comparison import primary_score, unit_of
from results.statistics.tuning import gains_over
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, joined, listed

NAMED = 8
"""Largest number of methods whose trainings were all cut off that are named. More are counted."""

CARRIED_CHOICE = "Hyperparameters printed by a paper whose code selects on test classes carry that choice."


def carried_choice(summary: ExperimentSummary) -> tuple[str, ...]:
    """Say that hyperparameters may carry a choice on test classes: most papers have no validation classes."""
    return (CARRIED_CHOICE,) if summary.experiment.protocol == "standard" and not summary.trials else ()


def search_findings(measured: MeasuredExperiment, comparison: ComparisonResult | None) -> Iterator[Finding]:
    """Say how far the searches can be trusted, and how they searched."""
    summary, titles = measured.summary, measured.summary.methods
    unit, search = unit_of(summary.experiment), summary.experiment.search
    yield from (Finding("note", text, "search") for text in carried_choice(summary))
    if unit == "run" or not measured.searched_methods:
        return
    if unit == "single search":
        yield Finding("limit", "One search of each method.", "search", _single_search(comparison))
    elif comparison is not None:
        yield from _failed_searches(comparison, titles)
        if comparison.look_level is not None:
            yield _looks(measured, comparison, comparison.look_level)
    if search.sampler.name != SamplerSettings().name:
        arguments = ", ".join(f"{name}={value}" for name, value in search.sampler.arguments.items())
        yield Finding(
            "note", f"Optuna's {search.sampler.name}({arguments}) proposed the trials.", "search",
            f"It began with {search.sampler.startup_trials} settings spread over the ranges.",
        )  # fmt: skip
    if search.racing:
        yield Finding(
            "note",
            "The trials were raced: one that was clearly behind on the same folds got no more folds.",
            "search",
            "MLRC trains every trial on all folds.",
        )
    yield from equal_searches(measured)
    yield from _tuning(measured, titles)
    yield from _range_ends(measured, titles)


def _single_search(comparison: ComparisonResult | None) -> str:
    if comparison is None or comparison.assumed is None:
        return (
            "How far searches of this kind vary is not known, so only the settings found are compared, not the "
            "methods. 3 searches of each would say."
        )
    assumed = comparison.assumed
    typical = 100 * 2**0.5 * assumed.deviation
    return (
        f"Searches of this size have differed by about {typical:.1f} points ({assumed.record}: {assumed.setting}). "
        "The tests of methods assume twice as much; the intervals are about the settings found."
    )


def _looks(measured: MeasuredExperiment, comparison: ComparisonResult, level: float) -> Finding:
    """Say how many searches the answer took, at which level, and how many a fixed plan would take."""
    searches, score = measured.summary.experiment.search.searches, primary_score(measured)
    planned = f"looks were planned after {listed([str(look) for look in LOOKS])}"
    outcome = "Decided" if comparison.decided else "Not decided"
    detail = (
        f"A verdict of this look has a level of {100 * level:.1f} %. Over all looks the level is "
        f"{100 * comparison.alpha:g} %, whatever ends the run."
    )
    claimed = [abs(pair.difference) for pair in comparison.pairs if pair.better]
    between = search_deviation(measured, score)
    if claimed and between is not None and between.deviation > 0:
        fixed = units_for(len(comparison.values), min(claimed) / between.deviation, score.compare)
        needed = "more than can be asked for" if fixed is None else str(fixed)
        detail += (
            f" A fixed plan that shows the smallest of these differences, {100 * min(claimed):.1f} points, with a "
            f"probability of {power_words(score.compare)} takes {needed} searches of each."
        )
    return Finding("note", f"{outcome} after {searches} searches of each method; {planned}.", "search", detail)


def _tuning(measured: MeasuredExperiment, titles: Mapping[str, str]) -> Iterator[Finding]:
    """Say what tuning bought, and where a setting found is below the default."""
    found = gains_over(measured, measured, measured.summary.defaults)
    if not found:
        if measured.summary.defaults:
            detail = "It takes two searches and two runs of the default of a method, or more."
            yield Finding("note", "What tuning gained is not known.", "search", detail)
        return
    named = [
        f"{titles[one.method]} {100 * one.gain:+.1f} ± {100 * one.half_width:.1f}{'*' if one.p < ALPHA else ''}"
        for one in sorted(found, key=lambda one: -one.gain)
    ]
    below = [f"{titles[one.method]} {one.below} of {one.searches}" for one in found if one.below]
    detail = "* is shown by a test that is corrected for all methods."
    if below:
        detail += f" Searches whose setting is below the default: {joined(below)}."
    text = f"Tuning gained, over the cards' own settings, in points: {joined(named)}."
    yield Finding("note", text, "search", detail)


def _failed_searches(comparison: ComparisonResult, titles: Mapping[str, str]) -> Iterator[Finding]:
    for key, failed in comparison.failed.items():
        units = comparison.values[key].units
        reached = listed([f"{100 * value:.1f}" for value in failed])
        text = f"{titles[key]}: {len(failed)} of {counted(len(units), 'search')} failed ({reached}; "
        text += f"median {100 * float(np.median(units)):.1f})."
        detail = "Means and tests count it; a “better” is about a search that does not fail."
        yield Finding("limit", text, "search", detail)


def equal_searches(measured: MeasuredExperiment) -> Iterator[Finding]:
    """Name the methods of which more than half of the later searches' trials repeat a setting of an earlier search."""
    titles, equal = measured.summary.methods, measured.repeated.items()
    if named := [f"{titles[key]} {n} of {trials}" for key, (n, trials) in equal if 2 * n > trials]:
        text = f"Searches that repeat the settings of an earlier one, in trials: {joined(named)}."
        yield Finding("limit", text, "search", "Such searches differ by the seeds of their trainings alone.")


def _range_ends(measured: MeasuredExperiment, titles: Mapping[str, str]) -> Iterator[Finding]:
    ends = list(range_ends(measured))
    in_most: dict[str, list[str]] = {}
    for one in ends:
        if one.in_most:
            in_most.setdefault(titles[one.method], []).append(one.text)
    few = len(ends) - sum(map(len, in_most.values()))
    cases = [f"{title}: {', '.join(own)}" for title, own in in_most.items()]
    cases += [f"{few} {'more ' if cases else ''}in no more than half of the searches"] if few else []
    if cases:
        text = f"Settings at an end of their range: {'; '.join(cases)}."
        yield Finding("warning", text, "search", "A wider range could hold better ones.")


def training_findings(measured: MeasuredExperiment) -> Iterator[Finding]:
    """Say which trainings were cut off or went wrong, and what was trained."""
    titles, counts = measured.summary.methods, cut_offs(measured)
    if counts:
        cut, trained = map(sum, zip(*counts.values(), strict=True))
        share = f"all {cut}" if cut == trained else f"{cut} of {trained}"
        by_method = joined(_shares(titles, counts))
        yield Finding(
            "limit",
            f"Cut off while the validation score still rose: {share} trainings.",
            "training",
            f"{by_method}. More epochs could raise these scores, so the speed of learning is compared as well.",
        )
    for key, title in titles.items():
        runs = [run for run in measured.records if run.method == key]
        trainings = sum(len(run.fold_fingerprints) for run in runs)
        yield from _flagged(title, [flag for run in runs for flag in run.flags], trainings)
    yield from _of_what_was_trained(measured.summary.experiment)


def _shares(titles: Mapping[str, str], counts: Mapping[str, tuple[int, int]]) -> list[str]:
    whole = [titles[method] for method, (cut_off, trainings) in counts.items() if cut_off == trainings]
    parts = [
        f"{titles[method]} {cut_off} of {trainings}"
        for method, (cut_off, trainings) in counts.items()
        if cut_off < trainings
    ]
    return [*parts, *(whole if len(whole) <= NAMED else [f"all trainings of {len(whole)} methods"])]


_EVENTS = {
    "training diverged": "diverged; their best checkpoint before that counts",
    "no trained epoch beat the untrained network": "did not beat the untrained network",
    "skipped all steps": "skipped all steps between two validations",
    "all its test embeddings are equal": "ended with equal embeddings of all test images, which score 0",
}
"""What flags of trainings say, and what a finding says of their number."""


def _flagged(title: str, flags: Sequence[str], trainings: int) -> Iterator[Finding]:
    for sign, words in _EVENTS.items():
        flagged = [flag for flag in flags if sign in flag]
        choosing = sum(flag.startswith("choosing the epoch") for flag in flagged)
        if own := len(flagged) - choosing:
            yield Finding("warning", f"{title}: {own} of {trainings} trainings {words}.", "training")
        if choosing:
            yield Finding("warning", f"{title}: {choosing} trainings that choose the epoch {words}.", "training")


def _of_what_was_trained(experiment: Experiment) -> Iterator[Finding]:
    trunk, embedder = experiment.conditions.trunk, experiment.conditions.embedder
    alone = "Only embedder and loss were trained, without augmentation; MLRC trains the trunk on random crops."
    if trunk.frozen:
        yield Finding("warning", f"The trunk {trunk.name} is frozen.", "training", alone)
    elif trunk.is_input_features:
        yield Finding("warning", f"The data are rows of {trunk.width} features and no images.", "training", alone)
    if embedder.hidden:
        sizes = listed([str(size) for size in embedder.hidden])
        text = f"The embedder has hidden layers of {sizes} units; MLRC's is linear."
        yield Finding("note", text, "training")
    if embedder.init == "pca":
        text = "The embedder starts at the principal components of the training features; MLRC's starts at random."
        yield Finding("note", text, "training")
    elif embedder.init != "random":
        yield Finding("note", f"The embedder starts from {embedder.init}, MLRC's from torch's default.", "training")


def cut_offs(measured: MeasuredExperiment) -> dict[str, tuple[int, int]]:
    """Count the trainings that were cut off, and all trainings, by method, for the methods that have one.

    Runs of which neither the trainings nor their count were read are not counted.
    """
    counts = {}
    for method in measured.summary.methods:
        runs = [(run, measured.cut_off_trainings(run)) for run in measured.records if run.method == method]
        trainings = sum(len(run.fold_fingerprints) for run, count in runs if count is not None)
        if cut_off := sum(count or 0 for _, count in runs):
            counts[method] = (cut_off, trainings)
    return counts


class RangeEnd(NamedTuple):
    """A hyperparameter whose best value lies at an end of its range; `in_most` if most searches of a method found it.

    The text is such as `loss.omega 1 (highest)`, or `loss.omega 1 (highest in 2 of 3 searches)`.
    """

    method: str
    text: str
    in_most: bool


def range_ends(measured: MeasuredExperiment) -> Iterator[RangeEnd]:
    """Find the hyperparameters whose best value lies at an end of the range that was searched."""
    for method in measured.summary.methods:
        settings = {run.search: run.hyperparameters for run in measured.records if run.method == method}
        for target, searched in measured.summary.ranges.get(method, {}).items():
            values = [setting.get(target) for setting in settings.values()]
            ends = [searched.end_at(value) for value in values if isinstance(value, int | float)]
            for end, value in (("lowest", searched.low), ("highest", searched.high)):
                if found := sum(one == end for one in ends):
                    count = f" in {found} of {len(settings)} searches" if len(settings) > 1 else ""
                    yield RangeEnd(method, f"{target} {value:g} ({end}{count})", 2 * found > len(settings))


def validation_scores(measured: MeasuredExperiment, runs: Sequence[RunRecord]) -> list[float]:
    """Return the validation MAP@R, mean over folds, of the runs whose trainings are all known and have one."""
    means = []
    for run in runs:
        results = [measured.trainings[name] for name in run.fold_fingerprints if name in measured.trainings]
        scores = [result.best_map_at_r for result in results if result.best_map_at_r is not None]
        if scores and len(scores) == len(run.fold_fingerprints):
            means.append(float(np.mean(scores)))
    return means
