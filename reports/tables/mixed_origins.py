"""Warnings about numbers that stand together but were not made alike: other machines, arithmetic, packages or code.

Tables, the page and boards take their warnings from here, so that none of them is silent where another one speaks.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from reports.wording import listed
from results.records.provenance import mixed_math, mixed_versions
from results.records.records import Provenance, RunRecord
from results.store.experiment_results import MeasuredExperiment


def mixed_origins(*experiments: MeasuredExperiment) -> list[str]:
    """Return sentences on how the runs that one table or page shows were made differently; none if all were made alike.

    Tests are compared with tests and trainings with trainings: it is no difference that all runs were trained on one
    machine and tested on another. The trainings are those that the experiments were read with.
    """
    return [*_versions_of_training(experiments), *_machines(experiments), *_code(experiments)]


def _versions_of_training(experiments: Sequence[MeasuredExperiment]) -> Iterator[str]:
    by_version: dict[int, set[str]] = {}
    for _, run in _runs(experiments):
        by_version.setdefault(run.training_version, set()).add(run.method)
    if len(by_version) > 1:
        named = "; ".join(f"version {number}: {', '.join(sorted(by_version[number]))}" for number in sorted(by_version))
        yield f"The runs were trained by different versions of the training ({named}). Their scores do not compare."


def _machines(experiments: Sequence[MeasuredExperiment]) -> Iterator[str]:
    if devices := _differing(experiments, lambda origin: origin.device):
        yield f"Runs were made on different devices ({listed(devices)}). Devices round differently."
    for things, name in (("systems", "host_system"), ("processors", "processor"), ("numbers of threads", "threads")):
        if found := _differing(experiments, partial(_on_cpu, name)):
            yield f"Runs on a CPU were made with different {things} ({listed(found)}). They round differently."
    precisions = sorted({_precision(one, run) for one, run in _runs(experiments)})
    if len(precisions) > 1:
        words = listed([_PRECISIONS.get(precision, precision) for precision in precisions])
        yield f"Runs were made in different precision ({words}). They round differently."
        return  # The settings below follow from it.
    for name, found in _mixed(experiments, mixed_math).items():
        yield f"Runs on a GPU were made with different settings of {name} ({listed(found)}). They round differently."


_PRECISIONS = {"amp": "mixed precision", "tf32": "TF32"}


def _precision(one: MeasuredExperiment, run: RunRecord) -> str:
    precision = one.summary.experiment.for_row(run.method).training.precision
    # A CPU has no TF32.
    return "float32" if precision == "tf32" and run.provenance.device == "cpu" else precision


def _on_cpu(name: str, origin: Provenance) -> str:
    """What a processor's arithmetic depends on; a GPU's does not."""
    return str(getattr(origin, name)) if origin.device == "cpu" else ""


def _code(experiments: Sequence[MeasuredExperiment]) -> Iterator[str]:
    tests, trainings = _origins(experiments)
    for package, found in _mixed(experiments, mixed_versions).items():
        yield f"Runs were made with different versions of {package} ({listed(found)}). They can give other numbers."
    if any(origin.tree_dirty for origin in (*tests, *trainings)):
        yield "Some runs were made with uncommitted changes. Their commit alone is not enough to repeat them."
    if commits := _differing(experiments, lambda origin: origin.commit[:7]):
        yield f"Runs were made with {len(commits)} commits of the code ({listed(commits)})."


def _mixed(
    experiments: Sequence[MeasuredExperiment], mixed: Callable[[list[Provenance]], dict[str, list[str]]]
) -> dict[str, list[str]]:
    """Return the names, sorted, whose values differ among tests or among trainings, with these values."""
    found: dict[str, set[str]] = {}
    for origins in _origins(experiments):
        for name, values in mixed(origins).items():
            found.setdefault(name, set()).update(values)
    return {name: sorted(values) for name, values in sorted(found.items())}


def _differing(experiments: Sequence[MeasuredExperiment], read: Callable[[Provenance], str]) -> list[str]:
    """Return the values, sorted, that tests have in several forms, or trainings. An empty text is an unknown value."""
    found: set[str] = set()
    for origins in _origins(experiments):
        values = {read(origin) for origin in origins} - {""}
        found |= values if len(values) > 1 else set()
    return sorted(found, key=lambda value: (len(value), value) if value.isdecimal() else (0, value))


def _origins(experiments: Sequence[MeasuredExperiment]) -> tuple[list[Provenance], list[Provenance]]:
    """Where the runs were tested, and where they were trained as far as that was read."""
    tests = [run.provenance for _, run in _runs(experiments)]
    trainings = [
        one.trainings[fingerprint][1].provenance
        for one, run in _runs(experiments)
        for fingerprint in run.fold_fingerprints
        if fingerprint in one.trainings
    ]
    return tests, trainings


def _runs(experiments: Sequence[MeasuredExperiment]) -> Iterator[tuple[MeasuredExperiment, RunRecord]]:
    for one in experiments:
        for run in one.records:
            yield one, run
