"""Warnings above the numbers: small budget, few runs, flags of runs, different code or machines."""

from collections import defaultdict
from collections.abc import Iterator

from reports.page.content import Verdict
from reports.page.material import Material
from reports.page.sections.wording import listed, runs
from results import mlrc_constants
from results.provenance import mixed_versions

FEW_RUNS = 3


def warnings_of(material: Material, *, partial: bool) -> tuple[Verdict, ...]:
    """Write the warnings, the most general first.

    Args:
        material: The experiment.
        partial: Whether runs are missing.
    """
    warnings = [*_partial(material, partial), *_budget(material), *_few_runs(material)]
    warnings += [*_untrained(material), *_flags(material), *_unreadable(material), *_code_and_machines(material)]
    return tuple(Verdict("warning", sentence, detail) for sentence, detail in warnings)


def _partial(material: Material, partial: bool) -> Iterator[tuple[str, str]]:
    if partial and material.records:
        yield "The experiment is not finished. The page shows the runs that exist, and its results can change.", ""


def _budget(material: Material) -> Iterator[tuple[str, str]]:
    summary = material.measured.summary
    if summary.protocol not in ("mlrc", ""):
        return
    folds = summary.experiment.folds if summary.experiment is not None else mlrc_constants.FOLDS
    budget = (
        (summary.trials, mlrc_constants.TRIALS, "trials"),
        (summary.reproductions, mlrc_constants.REPRODUCTIONS, "reproductions"),
        (folds, mlrc_constants.FOLDS, "folds"),
    )
    # No trials mean published hyperparameters. This is not a small search.
    smaller = [(count, full, unit) for count, full, unit in budget if count < full and (count or unit != "trials")]
    if smaller:
        parts = listed([f"{count} of {full} {unit}" for count, full, unit in smaller])
        yield (
            f"The experiment used a part of the protocol's budget: {parts}. The full budget can rank the methods "
            "differently.",
            "",
        )


def _few_runs(material: Material) -> Iterator[tuple[str, str]]:
    counts = {key: len(method_runs) for key, method_runs in material.records.items()}
    if not counts:
        return
    if max(counts.values()) < 2:
        yield "Every method has a single run. There are no intervals, and no difference can be called real.", ""
        return
    if single := [material.titles[key] for key, count in counts.items() if count < 2]:
        yield f"{listed(single)}: a single run, so there is no interval and no test.", ""
    fewest = min(count for count in counts.values() if count > 1)
    if fewest <= FEW_RUNS:
        yield (
            f"Intervals and tests use as few as {runs(fewest)} per method. This is weak evidence: they assume "
            "normally distributed scores and find only large differences. Smaller differences can exist.",
            "",
        )


def _untrained(material: Material) -> Iterator[tuple[str, str]]:
    score = material.scores[0]
    values = material.values(score)
    if "untrained" not in values:
        return
    means = {key: sum(by_run.values()) / len(by_run) for key, by_run in values.items()}
    if below := [material.titles[key] for key in means if key != "untrained" and means[key] <= means["untrained"]]:
        verb = "has" if len(below) == 1 else "have"
        yield f"{listed(below)} {verb} no higher mean than the untrained trunk in {score.name}.", ""


def _flags(material: Material) -> Iterator[tuple[str, str]]:
    for key, method_runs in material.records.items():
        by_event: dict[str, list[str]] = defaultdict(list)
        for run in method_runs:
            for flag in run.flags:
                fold, _, event = flag.partition(": ")
                by_event[event or fold].append(f"{run.name}, {fold}" if event else run.name)
        for event, cases in by_event.items():
            count = len({case.split(",")[0] for case in cases})
            yield f"{material.titles[key]}: {event} ({runs(count)}).", "; ".join(cases)


def _unreadable(material: Material) -> Iterator[tuple[str, str]]:
    if material.unreadable:
        yield (
            "Some figures and galleries are missing, because files of the artifact folder cannot be read.",
            ", ".join(material.unreadable),
        )


def _code_and_machines(material: Material) -> Iterator[tuple[str, str]]:
    provenances = [run.provenance for method_runs in material.records.values() for run in method_runs]
    if any(provenance.tree_dirty for provenance in provenances):
        yield "Some runs were made with uncommitted changes. Their commit alone is not enough to repeat them.", ""
    devices = {provenance.device for provenance in provenances}
    if len(devices) > 1:
        yield f"Runs were made on different devices ({listed(sorted(devices))}). Devices round differently.", ""
    for package, versions in mixed_versions(provenances).items():
        yield (
            f"Runs were made with different versions of {package} ({listed(versions)}). They can give other numbers.",
            "",
        )
    commits = {provenance.commit for provenance in provenances}
    if len(commits) > 1:
        yield f"Runs were made with {len(commits)} commits of the code. The origin of each run names its commit.", ""
