"""What a reader must know before the numbers: budget, number of runs, flags, code and machines they were made with."""

from collections import defaultdict
from collections.abc import Iterator

from reports.page.content import Verdict
from reports.page.material import Material
from reports.page.sections.wording import listed, runs
from results import mlrc_constants

FEW_RUNS = 3


def warnings_of(material: Material, *, partial: bool) -> tuple[Verdict, ...]:
    """The warnings, most general first."""
    found = [*_partial(material, partial), *_budget(material), *_few_runs(material)]
    found += [*_untrained(material), *_flags(material), *_unreadable(material), *_code_and_machines(material)]
    return tuple(Verdict("warning", sentence, detail) for sentence, detail in found)


def _partial(material: Material, partial: bool) -> Iterator[tuple[str, str]]:
    if partial and material.records:
        yield "The experiment is not finished: what follows is about the runs there are, and can change.", ""


def _budget(material: Material) -> Iterator[tuple[str, str]]:
    summary = material.measured.summary
    if summary.protocol not in ("mlrc", ""):
        return
    folds = summary.experiment.folds if summary.experiment is not None else mlrc_constants.FOLDS
    asked = (
        (summary.trials, mlrc_constants.TRIALS, "trials"),
        (summary.reproductions, mlrc_constants.REPRODUCTIONS, "reproductions"),
        (folds, mlrc_constants.FOLDS, "folds"),
    )
    # No trials at all means published hyperparameters, which is another thing than a small search.
    fewer = [(has, whole, what) for has, whole, what in asked if has < whole and (has or what != "trials")]
    if fewer:
        said = listed([f"{has} of {whole} {what}" for has, whole, what in fewer])
        yield (
            f"Run with a part of the protocol's budget, {said}: a ranking under it need not be the ranking under "
            "the whole one.",
            "",
        )


def _few_runs(material: Material) -> Iterator[tuple[str, str]]:
    counts = {key: len(own) for key, own in material.records.items()}
    if not counts:
        return
    if max(counts.values()) < 2:
        yield "Every method has a single run: there are no intervals, and no difference can be called real.", ""
        return
    if single := [material.titles[key] for key, count in counts.items() if count < 2]:
        yield f"{listed(single)}: a single run, without an interval and without a test.", ""
    fewest = min(count for count in counts.values() if count > 1)
    if fewest <= FEW_RUNS:
        yield (
            f"Intervals and tests rest on as few as {runs(fewest)} per method, which is weak: they suppose normal "
            "scores, find large differences only, and a difference not found may well be there.",
            "",
        )


def _untrained(material: Material) -> Iterator[tuple[str, str]]:
    score = material.scores[0]
    values = material.values(score)
    if "untrained" not in values:
        return
    means = {key: sum(own.values()) / len(own) for key, own in values.items()}
    if below := [material.titles[key] for key in means if key != "untrained" and means[key] <= means["untrained"]]:
        verb = "has" if len(below) == 1 else "have"
        yield f"{listed(below)} {verb} no higher mean than the untrained trunk in {score.name}.", ""


def _flags(material: Material) -> Iterator[tuple[str, str]]:
    for key, own in material.records.items():
        by_flag: dict[str, list[str]] = defaultdict(list)
        for run in own:
            for flag in run.flags:
                where, _, what = flag.partition(": ")
                by_flag[what or where].append(f"run {run.run}, {where}" if what else f"run {run.run}")
        for what, places in by_flag.items():
            yield f"{material.titles[key]}: {what} ({runs(len({p.split(',')[0] for p in places}))}).", "; ".join(places)


def _unreadable(material: Material) -> Iterator[tuple[str, str]]:
    if material.unreadable:
        yield (
            "Some figures and galleries are missing: files of the artifact folder cannot be read.",
            ", ".join(material.unreadable),
        )


def _code_and_machines(material: Material) -> Iterator[tuple[str, str]]:
    everything = [(key, run.provenance) for key, own in material.records.items() for run in own]
    if any(made.tree_dirty for _, made in everything):
        yield "Some runs were made with changes that no commit holds: the commit alone does not bring them back.", ""
    devices = {made.device for _, made in everything}
    if len(devices) > 1:
        yield f"Runs were made on different devices ({listed(sorted(devices))}), which round differently.", ""
    commits = {made.commit for _, made in everything}
    if len(commits) > 1:
        yield f"Runs were made with {len(commits)} commits of the code; each run's origin names its own.", ""
