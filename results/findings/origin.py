"""Findings about the origin of runs: what was not made alike."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Literal

from results.answer.values import Finding
from results.records.provenance import (
    COMMIT_VARIABLE,
    CUDA_GRAPHS,
    DECIDING_PACKAGES,
    NATIVE_KERNELS,
    UNKNOWN_COMMIT,
    Provenance,
)
from results.records.records import EVALUATION_VERSION, RunRecord
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, listed

_PRECISIONS = {"amp": "mixed precision", "ieee": "float32 without TF32"}

_ON_CPU = {
    "kernels": "kernels",
    "host_system": "systems",
    "processor": "processors",
    "threads": "numbers of threads",
}
"""What decides how a CPU rounds; the arithmetic of a GPU does not depend on it."""

_Runs = Sequence[tuple[MeasuredExperiment, RunRecord]]

_Differing = Callable[[Callable[[Provenance], str]], list[str]]
"""Returns the values that differ between tests, or between trainings; an empty text is an unknown value."""


def origin_findings(*experiments: MeasuredExperiment) -> tuple[Finding, ...]:
    """Say how the runs that one table or page shows were made differently; nothing if all were made alike.

    Tests are compared with tests and trainings with trainings: it is no difference that all runs were trained on one
    machine and tested on another. The trainings are those that the experiments were read with.
    """
    runs = [(one, run) for one in experiments for run in one.records]
    tests = [run.provenance for _, run in runs]
    trained = [one.trainings[name] for one, run in runs for name in run.fold_fingerprints if name in one.trainings]
    trainings = [result.provenance for result in trained]

    def differing(read: Callable[[Provenance], str]) -> list[str]:
        kinds = [{read(origin) for origin in of_kind} - {""} for of_kind in (tests, trainings)]
        found = set().union(*(values for values in kinds if len(values) > 1))
        return sorted(found, key=lambda value: (len(value), value) if value.isdecimal() else (0, value))

    origins = [*tests, *trainings]
    texts = chain(
        _suite_versions(runs),
        _machines(differing),
        _arithmetic(runs, origins, differing),
        _packages(differing),
        _commits(origins, differing),
    )
    return tuple(Finding("warning", text, "origin") for text in texts)


def _suite_versions(runs: _Runs) -> Iterator[str]:
    trained, tested = (_methods_by(version, runs) for version in ("training_version", "evaluation_version"))
    if len(trained) > 1:
        named = _named_versions(trained)
        yield f"The runs were trained by different versions of the training ({named}). Their scores do not compare."
    if len(tested) > 1:
        named = _named_versions(tested)
        yield f"The runs were tested by different versions of the evaluation ({named}). Their scores do not compare."
    elif tested and max(tested) < EVALUATION_VERSION:
        yield (
            f"The runs were tested by version {max(tested)} of the evaluation; this release has version "
            f"{EVALUATION_VERSION}, and the same command tests them again."
        )


def _methods_by(version: Literal["training_version", "evaluation_version"], runs: _Runs) -> dict[int, set[str]]:
    methods: dict[int, set[str]] = {}
    for _, run in runs:
        methods.setdefault(getattr(run, version), set()).add(run.method)
    return methods


def _named_versions(methods: Mapping[int, set[str]]) -> str:
    return "; ".join(f"version {version}: {', '.join(sorted(own))}" for version, own in sorted(methods.items()))


def _machines(differing: _Differing) -> Iterator[str]:
    if found := differing(lambda origin: origin.device):
        yield f"Runs were made on different devices ({listed(found)}). Devices round differently."
    for name, things in _ON_CPU.items():
        if found := differing(partial(_on_cpu, name)):
            yield f"Runs on a CPU were made with different {things} ({listed(found)}). They round differently."


def _arithmetic(runs: _Runs, origins: Sequence[Provenance], differing: _Differing) -> Iterator[str]:
    precisions = sorted({_precision(one, run) for one, run in runs})
    if len(precisions) > 1:  # The settings of a GPU follow from it.
        words = listed([_PRECISIONS.get(precision, precision) for precision in precisions])
        yield f"Runs were made in different precision ({words}). They round differently."
        return
    for name in sorted({name for origin in origins for name in origin.math} - {CUDA_GRAPHS}):
        if found := differing(partial(_in, "math", name)):
            text = f"Runs on a GPU were made with different settings of {name} ({listed(found)})."
            yield f"{text} They round differently."


def _packages(differing: _Differing) -> Iterator[str]:
    for package in DECIDING_PACKAGES:
        if found := differing(partial(_in, "versions", package)):
            yield f"Runs were made with different versions of {package} ({listed(found)}). They can give other numbers."


def _commits(origins: Sequence[Provenance], differing: _Differing) -> Iterator[str]:
    if any(origin.is_changed for origin in origins):
        yield "Some runs were made with uncommitted changes. Their commit alone is not enough to repeat them."
    if any(origin.commit == UNKNOWN_COMMIT for origin in origins):
        yield f"The commit of some runs is unknown: git did not know their code, and {COMMIT_VARIABLE} did not name it."
    if found := differing(_known_commit):
        yield f"Runs were made with {counted(len(found), 'commit')} of the code ({listed(found)})."


def _known_commit(origin: Provenance) -> str:
    return "" if origin.commit == UNKNOWN_COMMIT else origin.commit[:7]


def _on_cpu(name: str, origin: Provenance) -> str:
    # Pinned kernels round alike on all processors.
    is_pinned = name in ("host_system", "processor") and origin.kernels != NATIVE_KERNELS
    return str(getattr(origin, name)) if origin.device == "cpu" and not is_pinned else ""


def _in(field: str, key: str, origin: Provenance) -> str:
    return str(getattr(origin, field).get(key, ""))


def _precision(one: MeasuredExperiment, run: RunRecord) -> str:
    precision = one.plan.experiment.for_row(run.method).conditions.training.precision
    # A CPU has no TF32.
    return "float32" if precision == "ieee" and run.provenance.device == "cpu" else precision
