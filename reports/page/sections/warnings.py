"""Warnings above the numbers: small budget, few runs, raced or close trials, short trainings, flags, code, machines."""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

from reports.page.content import Verdict
from reports.page.material import Material
from reports.page.sections.answer import small_budget
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
from reports.wording import listed, runs
from results.records.provenance import mixed_versions
from results.statistics.peeking import peeking
from results.statistics.primary_comparison import mixed_trainings

FEW_RUNS = 3
_warning = partial(Verdict, "warning")


def warnings_of(material: Material, *, unfinished: bool) -> tuple[Verdict, ...]:
    """Write the warnings, the most general first."""
    warnings = [
        *_unfinished(material, unfinished),
        *_conditions(material),
        *_budget(material),
        *_few_runs(material),
        *_of_trainings(material),
    ]
    warnings += [*_untrained(material), *_flags(material), *_unreadable(material), *_code_and_machines(material)]
    return tuple(warnings)


def _unfinished(material: Material, unfinished: bool) -> Iterator[Verdict]:
    if unfinished and material.records:
        yield _warning(
            "The experiment is not finished. The page shows the runs that exist, and its results can change."
        )


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


def _few_runs(material: Material) -> Iterator[Verdict]:
    if not material.records:
        return
    counts = {key: len(values) for key, values in material.values(material.scores[0]).items()}
    if max(counts.values()) < 2:
        yield _warning("Every method has a single run. There are no intervals, and no method can be called better.")
        return
    constant = material.measured.summary.constant
    if single := [material.titles[key] for key, count in counts.items() if count < 2 and key not in constant]:
        yield _warning(f"{listed(single)}: a single run, so there is no interval.")
    if equal := [material.titles[key] for key, count in counts.items() if count < 2 and key in constant]:
        yield _warning(f"{listed(equal)}: one run, because every further run would be equal.")
    fewest = min(count for count in counts.values() if count > 1)
    if fewest <= FEW_RUNS:
        yield _warning(
            f"Intervals and tests use as few as {_units(material, fewest)} per method. This is weak evidence: they "
            "assume normally distributed scores and find only large differences. Smaller differences can exist."
        )


def _units(material: Material, count: int) -> str:
    repeated = any(run.search for method_runs in material.records.values() for run in method_runs)
    return f"{count} runs or searches" if repeated else runs(count)


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
    values = material.values(score)
    if "untrained" not in values:
        return
    means = {key: sum(by_run.values()) / len(by_run) for key, by_run in values.items()}
    if below := [material.titles[key] for key in means if key != "untrained" and means[key] <= means["untrained"]]:
        verb = "has" if len(below) == 1 else "have"
        yield _warning(f"{listed(below)} {verb} no higher mean than the untrained trunk in {score.name}.")


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


def _code_and_machines(material: Material) -> Iterator[Verdict]:
    provenances = [run.provenance for method_runs in material.records.values() for run in method_runs]
    if any(provenance.tree_dirty for provenance in provenances):
        yield _warning("Some runs were made with uncommitted changes. Their commit alone is not enough to repeat them.")
    devices = {provenance.device for provenance in provenances}
    if len(devices) > 1:
        yield _warning(f"Runs were made on different devices ({listed(sorted(devices))}). Devices round differently.")
    processors = {provenance.processor for provenance in provenances if provenance.device == "cpu"} - {""}
    if len(processors) > 1:
        yield _warning(
            f"Runs were made on different processors ({listed(sorted(processors))}). They round differently."
        )
    mixed = mixed_trainings([run for method_runs in material.records.values() for run in method_runs])
    if mixed is not None:
        yield _warning(mixed)
    for package, versions in mixed_versions(provenances).items():
        yield _warning(
            f"Runs were made with different versions of {package} ({listed(versions)}). They can give other numbers."
        )
    commits = {provenance.commit for provenance in provenances}
    if len(commits) > 1:
        yield _warning(
            f"Runs were made with {len(commits)} commits of the code. The origin of each run names its commit."
        )
