"""Warnings above the numbers: what is missing or failed, small budget, few searches, trainings, code, machines."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from reports.page.content import Verdict
from reports.page.material import Material
from reports.page.sections.answer import failed_of, small_budget
from reports.page.sections.headline import missing_units
from reports.tables.mixed_origins import mixed_origins
from reports.tables.peeking import NOTHING_TO_CHOOSE
from reports.tables.result_notes import (
    close_trials,
    cut_off_notes,
    other_methods_notes,
    part_notes,
    range_end_notes,
    trained_part_notes,
    trial_notes,
)
from reports.wording import capitalized, counted, failed_searches, listed, runs
from results.spec.trunk_spec import NO_TRUNK
from results.statistics.peeking import peeking
from results.statistics.primary_comparison import unit_of

FEW = 3
"""Intervals over so few searches or runs are weak evidence."""
_warning = partial(Verdict, "warning")


def warnings_of(material: Material, *, unfinished: bool) -> tuple[Verdict, ...]:
    """Write the warnings, the most general first."""
    warnings = [
        *_unfinished(material, unfinished),
        *_failed(material),
        *_conditions(material),
        *_budget(material),
        *_few_units(material),
        *_of_trainings(material),
    ]
    warnings += [
        *_untrained(material),
        *_flags(material),
        *_unreadable(material),
        *map(_warning, mixed_origins(material.measured)),
    ]
    return tuple(warnings)


def _unfinished(material: Material, unfinished: bool) -> Iterator[Verdict]:
    if not unfinished or not material.records:
        return
    missing = [f"{material.titles[key]}: {units.text}" for key, units in missing_units(material).items()]
    if missing:
        yield _warning(
            f"The experiment is not finished ({'; '.join(missing)}). Nothing is claimed about methods before all are "
            "complete."
        )
    else:
        yield _warning("The experiment is not finished. The page shows what exists, and its results can change.")


def _failed(material: Material) -> Iterator[Verdict]:
    for key, values in failed_of(material).items():
        yield _warning(f"{capitalized(failed_searches(material.titles[key], values))}.")


def _conditions(material: Material) -> Iterator[Verdict]:
    measured = material.measured
    for note in (*other_methods_notes(measured), *part_notes(measured), *trained_part_notes(measured)):
        yield _warning(note)


def _budget(material: Material) -> Iterator[Verdict]:
    smaller = small_budget(material)
    if smaller:
        parts = listed(smaller)
        yield _warning(
            f"The experiment used a part of the protocol's budget: {parts}. The full budget can rank the methods "
            "differently."
        )


def _few_units(material: Material) -> Iterator[Verdict]:
    if not material.records:
        return
    counts = {key: len(values.units) for key, values in material.values(material.scores[0]).items()}
    constant = material.measured.summary.constant
    if material.unit == "run" and max(counts.values()) < 2:
        yield _warning("Every method has a single run. There are no intervals, and no method can be called better.")
        return
    single = [material.titles[key] for key, count in counts.items() if count < 2 and key not in constant]
    if single and material.unit == "run":
        yield _warning(f"{listed(single)}: a single run, so there is no interval.")
    if equal := [material.titles[key] for key in counts if key in constant]:
        yield _warning(f"{listed(equal)}: one run, because every further run would be equal.")
    fewest = min((count for count in counts.values() if count > 1), default=FEW + 1)
    if fewest > FEW:
        return
    if unit_of(material.measured.summary.experiment) == "single search":
        few = f"Intervals use as few as {counted(fewest, 'run')} of the setting found."
        yield _warning(f"{few} They assume normally distributed scores, and say nothing about another search.")
        return
    yield _warning(
        f"Intervals and tests use as few as {counted(fewest, material.unit)} per method. This is weak evidence: they "
        "assume normally distributed scores and find only large differences. Smaller differences can exist."
    )


def _of_trainings(material: Material) -> Iterator[Verdict]:
    measured, titles = material.measured, material.titles
    for note in (*trial_notes(measured), *close_trials(measured, titles), *range_end_notes(measured, titles)):
        yield _warning(note)
    hidden = [titles[gain.method] for gain in peeking(measured) if gain.nothing_to_choose]
    detail = f"The gain from peeking of {listed(hidden)} is not shown. {NOTHING_TO_CHOOSE}" if hidden else ""
    for note in cut_off_notes(measured, titles):
        yield _warning(note, detail)


def _untrained(material: Material) -> Iterator[Verdict]:
    score = material.scores[0]
    means = {key: interval.mean for key, interval in material.intervals(score).items()}
    if "untrained" not in means:
        return
    if below := [material.titles[key] for key in means if key != "untrained" and means[key] <= means["untrained"]]:
        verb = "has" if len(below) == 1 else "have"
        on_features = material.measured.summary.experiment.trunk.name == NO_TRUNK
        baseline = "the features as given" if on_features else "the untrained trunk"
        yield _warning(f"{listed(below)} {verb} no higher mean than {baseline} in {score.name}.")


def _flags(material: Material) -> Iterator[Verdict]:
    for key, method_runs in material.records.items():
        by_event: dict[str, list[str]] = defaultdict(list)
        for run in method_runs:
            for flag in run.flags:
                fold, _, event = flag.partition(": ")
                by_event[event or fold].append(f"{run.name}, {fold}" if event else run.name)
        for event, cases in by_event.items():
            count = len({case.split(",")[0] for case in cases})
            yield _warning(f"{material.titles[key]}: {event} ({runs(count)}).", "; ".join(cases))


def _unreadable(material: Material) -> Iterator[Verdict]:
    if material.unreadable:
        yield _warning(
            "Some figures and galleries are missing, because files of the artifact folder cannot be read.",
            ", ".join(material.unreadable),
        )
