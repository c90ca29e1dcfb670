"""Experiments made by hand, in the form that the page is built from."""

from reports.page.material import Material
from results.findings.experiment import answer_of
from results.records.trials import Trial
from results.store.experiment_results import MeasuredExperiment
from tests.support.published_world import MLRC
from tests.support.sample_records import changed_run, some_plan, some_run

A, B, C = [0.60, 0.61, 0.605, 0.602], [0.50, 0.512, 0.503, 0.5], [0.601, 0.607, 0.606, 0.603]


def material(runs, titles=None, name="some", settings=None, reproductions=4, trials=0, repeats=1, **more):
    """An experiment of these runs; without trials its settings are given, and the runs are compared.

    `searches` are the trials of searches, and `repeats` says how often each method is searched.
    """
    records = tuple(record for own in runs.values() for record in own)
    settings = settings or {**MLRC, "dataset": {"name": "glyphs"}}
    plan = some_plan(
        methods=titles or {key: key.upper() for key in runs},
        reproductions=reproductions,
        runs=dict.fromkeys(titles or runs, reproductions * repeats),
        settings={**settings, "search": {"trials": trials, "searches": repeats}},
    )
    return Material(name, answer_of(MeasuredExperiment(plan, records)), **more)


def values(**methods):
    return {key: [some_run(key, run, value) for run, value in enumerate(own)] for key, own in methods.items()}


def searched(titles=None, searches=3, reproductions=1, settings=None, trials=20, **means):
    """An experiment of repeated searches with these means of concatenated MAP@R, in percentage points."""
    runs = {
        key: [
            some_run(key, run, 0.04 * mean - 0.1, search=search, fingerprint=f"{key}-{search}-{run}")
            for search, mean in enumerate(own)
            for run in range(reproductions)
        ]
        for key, own in means.items()
    }
    counts = {"reproductions": reproductions, "trials": trials, "repeats": searches}
    return material(runs, titles, settings=settings, **counts)


def comparing(how, settings=MLRC):
    """Settings of an experiment that compares all, the best, or a method."""
    return {**settings, "dataset": {"name": "glyphs"}, "primary": {"compare": how}}


def replace_run(run, **changes):
    return changed_run(run, **changes)


def search():
    return tuple(Trial(number=n, setting={}, state="complete", score=0.1 + 0.01 * n) for n in range(4))
