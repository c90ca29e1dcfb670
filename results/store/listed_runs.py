"""Which runs are of which experiments of a store."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from results.records.experiment_summary import ExperimentSummary
from results.records.frames import ExportedRun
from results.records.records import RunRecord
from results.spec.source_names import sources_of_training
from results.spec.training_spec import FoldSpec
from results.store.database import Database, parsed
from results.store.schema import EXPERIMENT_RUNS, EXPERIMENT_STUDIES, EXPERIMENTS, FOLD_RESULTS, RUNS


def runs_of(experiment: str | None = None) -> sa.Select[Any]:
    """Select record and place of the runs of an experiment, or of all, by method, search and number.

    Runs of a study that is no longer one of the experiment's, because a method's card has changed, are left out.
    """
    listed, studies = EXPERIMENT_RUNS.c, EXPERIMENT_STUDIES.c
    of_search = [studies[name] == listed[name] for name in ("experiment", "method", "search")]
    query = (
        sa.select(RUNS.c.record, *listed)
        .join(EXPERIMENT_RUNS, listed.run_fingerprint == RUNS.c.fingerprint)
        .outerjoin(EXPERIMENT_STUDIES, sa.and_(*of_search))
        .where(listed.study.is_not_distinct_from(studies.study))
        .order_by(listed.method, listed.search, listed.run)
    )
    return query if experiment is None else query.where(listed.experiment == experiment)


def listed_runs(database: Database) -> list[ExportedRun]:
    """Return the runs of all experiments, the latest experiment first, then those that are in none."""
    with database.reading() as connection:
        started = connection.execute(sa.select(EXPERIMENTS).order_by(EXPERIMENTS.c.last_started.desc())).all()
        rows = connection.execute(runs_of()).all()
        every = connection.execute(sa.select(RUNS.c.record).order_by(RUNS.c.dataset, RUNS.c.method)).scalars().all()
    facts = {row.fingerprint: (row.name, row.fingerprint, *_facts(row.settings)) for row in started}
    order = {fingerprint: place for place, fingerprint in enumerate(facts)}
    rows = sorted(rows, key=lambda row: order[row.experiment])
    found = [ExportedRun(parsed(RunRecord, row.record, database.url), *facts[row.experiment]) for row in rows]
    known = {run.record.fingerprint for run in found}
    others = (parsed(RunRecord, text, database.url) for text in every)
    found += [ExportedRun(record) for record in others if record.fingerprint not in known]
    firsts = {run.record.fold_fingerprints[0] for run in found}
    specs = database.rows(firsts, FOLD_RESULTS, FOLD_RESULTS.c.fingerprint, FOLD_RESULTS.c.spec)
    sources = {row.fingerprint: sources_of_training(parsed(FoldSpec, row.spec, database.url)) for row in specs}
    return [replace(run, sources=sources.get(run.record.fold_fingerprints[0], ())) for run in found]


def _facts(settings: str) -> tuple[str | None, int | None, int | None]:
    """Title, trials and searches of an experiment; none of them if it was kept without."""
    try:
        summary = ExperimentSummary.model_validate_json(settings)
    except ValidationError:
        return None, None, None
    return summary.title, summary.trials, summary.experiment.search.searches
