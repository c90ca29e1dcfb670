"""The origin of every number: the runs of each method with their trainings and environments."""

from collections.abc import Mapping, Sequence

from reports.page.content import FoldOrigin, MethodOrigin, RunEnvironment, RunOrigin
from results.records.records import RunRecord
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.run_values import EMBEDDING_KINDS, value_of


def origins_of(
    records: Sequence[RunRecord],
    titles: Mapping[str, str],
    folds: Mapping[str, FoldOrigin] | None = None,
    sources: Mapping[str, Sequence[str]] | None = None,
) -> tuple[MethodOrigin, ...]:
    """Collect the runs of the methods with their trainings."""
    origins = []
    for key, title in titles.items():
        runs = [record for record in records if record.method == key]
        runs.sort(key=lambda record: (record.search, record.run))
        if runs:
            run_origins = tuple(_run_origin(run, folds or {}) for run in runs)
            names = (sources or {}).get(key, ())
            settings = _settings(runs) | ({"user's source": ", ".join(names)} if names else {})
            origins.append(MethodOrigin(key, title, settings, run_origins))
    return tuple(origins)


def _settings(runs: Sequence[RunRecord]) -> dict[str, str]:
    """The hyperparameters by name. If the search was repeated, the name says which search found a value."""
    first_runs = {run.search: run for run in reversed(runs)}
    return {
        name if len(first_runs) == 1 else f"{name}, search {search}": str(value)
        for search, run in sorted(first_runs.items())
        for name, value in run.hyperparameters.items()
    }


def _run_origin(run: RunRecord, folds: Mapping[str, FoldOrigin]) -> RunOrigin:
    provenance = run.provenance
    on = f", {provenance.processor}" if provenance.processor else ""
    cores, threads = _counted(provenance.cpu_count, "CPU core"), _counted(provenance.threads, "thread")
    environment = RunEnvironment(
        commit=provenance.commit,
        dirty=provenance.tree_dirty,
        device=provenance.device,
        machine=f"{provenance.host_system}{on}, {cores}, {threads}",
        versions=tuple(provenance.versions.items()),
    )
    scores = tuple(
        (f"{kind} {title}", f"{100 * value_of(run, metric, kind):.2f}")
        for kind in EMBEDDING_KINDS
        for metric, title in HEADLINE_METRICS.items()
    )
    return RunOrigin(
        run=run.run,
        search=run.search,
        fingerprint=run.fingerprint,
        seed=run.seed,
        wall_time=run.wall_time,
        finished_at=provenance.finished_at,
        environment=environment,
        folds=tuple(folds.get(name, FoldOrigin(name)) for name in run.fold_fingerprints),
        scores=scores,
        flags=run.flags,
    )


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
