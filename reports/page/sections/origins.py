"""Where the numbers come from: the experiment's settings, and the runs with their trainings and environments."""

from collections.abc import Mapping, Sequence
from typing import Any

from reports.page.content import Facts, FoldOrigin, MethodOrigin, RunEnvironment, RunOrigin
from reports.wording import counted
from results.records.records import FoldResult, RunRecord
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.source_names import sources_of_training
from results.statistics.run_values import EMBEDDING_KINDS, value_of
from results.store.experiment_results import MeasuredExperiment


def protocol_facts(settings: Mapping[str, Any]) -> tuple[Facts, ...]:
    """Group an experiment's settings: first the plain values, then one group for each nested part."""
    plain = {name: value for name, value in settings.items() if not isinstance(value, Mapping)}
    parts = {name: value for name, value in settings.items() if isinstance(value, Mapping)}
    groups = [Facts("Experiment", _shown(plain))]
    groups += [Facts(_words(name).capitalize(), _shown(_flat(value))) for name, value in parts.items()]
    return tuple(group for group in groups if group.items)


def _flat(part: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings. The name of a value is its path, such as `optimizer lr`."""
    flat: dict[str, Any] = {}
    for name, value in part.items():
        path = f"{prefix}{name}"
        flat.update(_flat(value, path + " ") if isinstance(value, Mapping) else {path: value})
    return flat


def _shown(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((_words(name), _text(value)) for name, value in values.items() if value != [])


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_text(item)}" for name, item in value.items())
    return str(value)


def origins_of(measured: MeasuredExperiment, titles: Mapping[str, str]) -> tuple[MethodOrigin, ...]:
    """Collect the runs of every method that has some. Without its trainings only their fingerprints are known."""
    origins = []
    for key, title in titles.items():
        runs = [record for record in measured.records if record.method == key]
        runs.sort(key=lambda record: (record.search, record.run))
        if runs:
            settings = _settings(runs) | _users_sources(measured, key)
            origins.append(MethodOrigin(key, title, settings, tuple(_run_origin(run, measured) for run in runs)))
    return tuple(origins)


def _settings(runs: Sequence[RunRecord]) -> dict[str, str]:
    """The hyperparameters by name. If the search was repeated, the name says which search found a value."""
    first_runs = {run.search: run for run in reversed(runs)}
    return {
        name if len(first_runs) == 1 else f"{name}, search {search}": str(value)
        for search, run in sorted(first_runs.items())
        for name, value in run.hyperparameters.items()
    }


def _users_sources(measured: MeasuredExperiment, method: str) -> dict[str, str]:
    """The classes from users' files and modules, with the hashes of their sources."""
    specs = [spec for spec, _ in measured.trainings.values() if spec.method.name == method]
    names = sources_of_training(specs[-1]) if specs else ()
    return {"user's source": ", ".join(names)} if names else {}


def _run_origin(run: RunRecord, measured: MeasuredExperiment) -> RunOrigin:
    provenance = run.provenance
    on = f", {provenance.processor}" if provenance.processor else ""
    cores, threads = counted(provenance.cpu_count, "CPU core"), counted(provenance.threads, "thread")
    environment = RunEnvironment(
        commit=provenance.commit,
        dirty=provenance.tree_dirty,
        device=provenance.device,
        machine=f"{provenance.host_system}{on}, {cores}, {threads}",
        versions=(*provenance.versions.items(), *provenance.math.items()),
    )
    scores = tuple(
        (f"{kind} {title}", f"{100 * value_of(run, metric, kind):.2f}")
        for kind in EMBEDDING_KINDS
        for metric, title in HEADLINE_METRICS.items()
    )
    return RunOrigin(run, environment, tuple(_fold_origin(name, measured) for name in run.fold_fingerprints), scores)


def _fold_origin(fingerprint: str, measured: MeasuredExperiment) -> FoldOrigin:
    if fingerprint not in measured.trainings:
        return FoldOrigin(fingerprint)
    spec, result = measured.trainings[fingerprint]
    return FoldOrigin(fingerprint, spec.seed, result.wall_time, _ending(result))


def _ending(result: FoldResult) -> str:
    reason = {
        "patience": "stopped by patience",
        "max_epochs": "stopped after the last epoch",
        "nan": f"diverged ({result.reason})",
        "untrained": "not trained",
    }[result.stopped_by]
    kept = f"iteration {result.best_iteration} of {result.iterations} kept"
    return reason if result.stopped_by == "untrained" else f"{kept}, {reason}"
