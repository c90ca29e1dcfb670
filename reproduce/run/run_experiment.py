"""Runs an experiment: its search, its reproductions, its test evaluations and its table."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import dropwhile
from pathlib import Path

from pydantic import JsonValue

from protocols.datasets.dataset import note_on_queries
from protocols.machine.kernels import why_native
from protocols.machine.processes import threads_per_training
from protocols.study import RunningSearch, Study
from protocols.training.build_method import RefusedError
from protocols.users_code.kept import keep_sources
from reports.tables.formats import WRITERS
from reports.tables.result_table import table_of
from reports.tables.table import Table, with_notes
from reproduce import interrupts
from reproduce.errors import WorkFailedError
from reproduce.run.devices import prepare_process
from reproduce.run.ends import Probes, in_latest_round, next_round, rounds_words, studies_with_validation
from reproduce.run.expectation import budget_lines, expectation
from reproduce.run.lab import MethodSearch, SharedLab
from reproduce.run.progress import RunProgress, Tracking
from reproduce.run.session import Session
from reproduce.run.tasks import Executor
from reproduce.run.time_left import TimeLeft
from reproduce.run.work import rate_of_records, with_rates, work_of
from reproduce.storage import latest_name, link_latest, only_run_of, own_name
from reproduce.terminal import output_console, say, show_interim
from results.answer.question import planned_question
from results.atomic_files import try_out, write_atomically
from results.findings.experiment import ExperimentAnswer, answer_of, data_findings
from results.findings.search import probe_words
from results.records.artifacts import contents_path
from results.spec.data_choice import samples_word
from results.spec.experiment_spec import AMOUNTS, UNNAMED_SETTINGS, is_among
from results.store.experiment_results import MeasuredExperiment
from results.store.store import Start
from results.wording import counted, listed, verb


def interim_looks(session: Session) -> tuple[str, ...]:
    """Return with how many searches or runs the experiment was complete before, as phrases such as `2 searches`.

    Somebody who adds searches or runs because of the results is peeking. The suite cannot tell why they are added, so
    it notes all cases. Another name, another comparison or other methods make no other experiment here. Looks that were
    planned are none, but a fixed number of searches before the plan is one. What comes after an experiment's first run
    is no look before it.
    """
    ours, looks, own = session.experiment, set(), _own_start(session)
    if own and own.runs:
        return own.plan.interim_looks
    for start in session.store.starts():
        plan = start.plan
        if start.fingerprint == session.fingerprint:
            continue
        search = plan.experiment.search
        planned_now = ours.search.until_decided and not search.until_decided
        if not planned_now and (search.searches, plan.reproductions) >= (ours.search.searches, ours.reproductions):
            continue
        may_differ = (*AMOUNTS, *UNNAMED_SETTINGS, "primary")
        same = all(is_among(key, may_differ) for key in plan.experiment.differences(ours))
        if same and len(session.store.experiment_runs(start.fingerprint)) >= plan.runs > 0:
            more_searches = planned_now or search.searches < ours.search.searches
            looks.add((search.searches, "search") if more_searches else (plan.reproductions, "run"))
    return tuple(counted(count, unit) for count, unit in sorted(looks))


def looks_to_come(session: Session) -> Iterator[Session]:
    """Return the session at each planned look, without those before the stored one whose searches are all there.

    Such a look would train nothing, and the store would say for a while what it said then.
    """
    own = _own_start(session)
    reached = own.plan.experiment.search.searches if own else 0

    def is_past(look: Session) -> bool:
        return look.experiment.search.searches < reached and look.searched(look.store.searches)

    return dropwhile(is_past, session.looks())


def _own_start(session: Session) -> Start | None:
    return next((one for one in session.store.starts() if one.fingerprint == session.fingerprint), None)


@dataclass(frozen=True)
class Finished:
    """The outcome of a run.

    Attributes:
        answer: What was measured, and what it shows.
        made: Number of trainings made in this run.
        found: Number of trainings that were in the store before.
        failed: Why methods have no results, by method.
    """

    answer: ExperimentAnswer
    made: int
    found: int
    failed: Mapping[str, Exception]


def run(session: Session, start: Callable[[], Executor], tracked: Path | None = None) -> Finished:
    """Run the part of an experiment that is not in the store, and write the experiment's table.

    `start` opens the executor, which is closed at the end. What was measured so far is shown after each round of
    searches but the last. `tracked` is the folder of TensorBoard's files, if any.

    Raises:
        InputError: Another process runs this experiment with this store.
        OSError: The files of the table cannot be written; nothing was trained.
        WorkFailedError: No method can go on; everything finished before is in the store.
        KeyboardInterrupt: Somebody asked this process to stop.
    """
    for path in table_files(session).values():
        try_out(path)
    store = session.store
    with only_run_of(session.paths, session.fingerprint), closing(start()) as executor, interrupts.deferred():
        looks = interim_looks(session)
        session, rounds = in_latest_round(session, store)
        session = replace(session, plan=session.plan.model_copy(update={"interim_looks": looks}))
        _keep_what_is_trained_on(session)
        _say_start(session, executor)
        for line in rounds_words(session, rounds):
            say(line)
        # Settings are proposed in this process, so its threads must not depend on the number of workers either.
        prepare_process(executor.device)
        made = Counter[str]()
        for rounds_left in range(rounds, -1, -1):
            progress, failed = _follow_searches(session, executor, tracked)
            made.update(trained=progress.made.total(), found=progress.found.total())
            if failed and rounds_left:
                say(
                    f"Ends of ranges are not probed, because {listed([*failed])} {verb(len(failed), 'have')} no results"
                )
            if failed or not rounds_left:
                break
            session, goes_on, trained = _probe_ends(session, executor, tracked)
            made.update(trained=trained)
            if not goes_on:
                break
    interrupts.stop_if_requested()
    answer = answer_of(MeasuredExperiment.from_store(store, session.fingerprint, trainings=True))
    write_table(table_of(answer), session)
    return Finished(answer, made["trained"], made["found"], failed)


def _follow_searches(
    session: Session, executor: Executor, tracked: Path | None
) -> tuple[RunProgress, Mapping[str, Exception]]:
    """Make the searches, reproductions and tests of an experiment that are not in the store."""
    store, experiment = session.store, session.experiment
    studies = session.studies(store.searches)
    gpus = math.ceil(executor.workers / executor.sharing) if executor.sharing else 0
    planned = work_of(studies, session.protocol, store, session.fingerprint)
    rows = with_rates(planned, executor.workers, rate_of_records(gpus))
    for line in expectation(rows, experiment.search, executor.workers, gpus):
        say(line)
    if any(row.to_do for row in rows.values()):
        for line in budget_lines(session, store, rows, executor.workers, gpus):
            say(line)
    store.put_experiment(session.fingerprint, session.name, session.plan)
    store.searches.enlist(session.fingerprint, {key: _identities(study) for key, study in studies.items()})
    store.unlist(session.fingerprint, _outdated(session, studies))

    def trainings(key: str) -> int:
        return session.protocol.trainings_of(studies[key]) - studies[key].skipped()

    time_left = TimeLeft(rows, executor.workers, session.setup.folds)
    with RunProgress(trainings, session.plan.titles, session.setup.folds, time_left) as progress:
        lab = SharedLab(
            store,
            executor,
            (progress, Tracking(session.name, tracked)),
            session.fingerprint,
            test_curves=experiment.test_curves,
            say=say,
        )
        follow = session.protocol.run

        def after_round(rounds: int) -> None:
            if progress.made:
                measured = MeasuredExperiment.from_store(store, session.fingerprint)
                show_interim(answer_of(after_searches(measured, rounds)), rounds)

        searches = [
            MethodSearch(key, one.setup, partial(follow, RunningSearch(one)), number)
            for key, study in compared_first(studies, planned_question(experiment).compare)
            for number, one in enumerate(study.searches)
        ]
        return progress, lab.run(searches, after_round)


def _probe_ends(session: Session, executor: Executor, tracked: Path | None) -> tuple[Session, bool, int]:
    """Probe the ends of ranges that most searches press.

    Returns:
        The session with what the probes showed, whether its searches go on, and the number of trainings made.
    """
    store = session.store
    probes = Probes(studies_with_validation(session, store.searches), store)
    made, failed = 0, dict[str, RefusedError | WorkFailedError]()
    if words := probes.words():
        say(f"Ends of ranges that most searches press are probed: {words}")
        with RunProgress(probes.trainings, session.plan.titles, session.setup.folds, phase="probes") as progress:
            lab = SharedLab(store, executor, (progress, Tracking(session.name, tracked)), say=say)
            failed = lab.run(probes.searches())
        made = progress.made.total()
    if failed:
        reasons = "; ".join(f"{key}: {error}" for key, error in failed.items())
        say(f"The ends stay open, because a probe failed ({reasons}); the same command tries again")
        return session, False, made
    probed = probes.outcome()
    before = session.plan.rows
    session, goes_on = next_round(session, probed)
    # Runs of a search's first trials are not of the setting that the longer search finds.
    store.unlist(session.fingerprint, [key for key, row in session.plan.rows.items() if row != before[key]])
    store.put_experiment(session.fingerprint, session.name, session.plan)
    for one in probed:
        say(probe_words(one, session.plan.titles[one.method]))
    return session, goes_on, made


def _outdated(session: Session, studies: Mapping[str, Study]) -> set[str]:
    """Return the methods without a search whose listed runs are of an earlier card: no study tells them apart."""
    given = {key: study for key, study in studies.items() if study.name is None}
    planned = {key: {*session.protocol.foreseeable(study)} for key, study in given.items()}
    runs = [run for run in session.store.experiment_runs(session.fingerprint) if run.method in given]
    return {run.method for run in runs if not planned[run.method] & {*run.fold_fingerprints, *run.chosen_by}}


def _keep_what_is_trained_on(session: Session) -> None:
    artifacts, dataset = session.paths.artifacts, session.setup.dataset
    keep_sources(artifacts)
    if not (kept := contents_path(artifacts, dataset.fingerprint)).exists():
        write_atomically(kept, dataset.contents.to_csv(index=False))


def after_searches(measured: MeasuredExperiment, rounds: int) -> MeasuredExperiment:
    """Return what was measured in the first searches of each method; some methods are ahead of the others."""
    return replace(measured, records=tuple(one for one in measured.records if one.search < rounds))


def compared_first(studies: Mapping[str, Study], compare: str) -> list[tuple[str, Study]]:
    """Return the methods' studies, first that of the method with which each other one is compared."""
    return sorted(studies.items(), key=lambda item: item[0] != compare)


def _identities(study: Study) -> list[tuple[str, dict[str, JsonValue]]]:
    return [(search.name, search.identity) for search in study.searches if search.name is not None]


def _say_start(session: Session, executor: Executor) -> None:
    dataset, setup = session.setup.dataset, session.setup
    output_console().print(session.experiment.title, style="bold", highlight=False)
    split = setup.split
    fold = split.folds[0]
    say(
        f"{dataset.name}: {len(dataset.images)} {samples_word(dataset.name)} of {counted(dataset.n_classes, 'class')}; "
        f"{len(fold.train)} train, {len(fold.validation)} validation, {counted(len(split.test), 'test class')}; "
        f"data {dataset.fingerprint[:12]}"
    )
    say("Validation scores below are of validation classes; the test classes are others.")
    for note in notes_on_data(session):
        say(note)
    threads, reason = threads_per_training(executor.device), why_native()
    kernels = f"this processor's own kernels ({reason}), so other processors round differently; " if reason else ""
    say(
        f"device {executor.device}, {counted(executor.workers, 'training')} at a time, {counted(threads, 'thread')} "
        f"each; {kernels}store {session.paths.store}"
    )


def notes_on_data(session: Session) -> list[str]:
    """Say what is not usual about the data: what findings say of them, nested folders, queries."""
    dataset = session.setup.dataset
    findings = data_findings(session.experiment, session.plan.data, split_file=dataset.is_split_given)
    notes = [finding.text for finding in findings]
    if nested := [name for name in dataset.class_names if dataset.name == "folder" and "/" in name]:
        are = f"{counted(len(nested), 'class')} {verb(len(nested), 'have')}"
        notes.append(f"{are} the whole path of a nested folder as name, such as {nested[0]}")
    if queries := note_on_queries(dataset, session.setup.split.test):
        notes.append(queries)
    return notes


def write_table(table: Table, session: Session) -> None:
    """Write a table as Markdown, CSV and LaTeX into the session's folder of tables.

    They carry the experiment's identity; names without it lead to the latest experiment of the name.
    """
    files = table_files(session)
    table = replace(table, label=f"{latest_name(session.name)} results")
    for form, path in files.items():
        write_atomically(path, WRITERS[form](with_notes(table, "short") if form == "latex" else table))
    link_latest(session.name, session.fingerprint, session.store, list(files.values()))


def table_files(session: Session) -> dict[str, Path]:
    """Return the files that a run writes its table to, by format."""
    suffixes = {"markdown": "md", "csv": "csv", "latex": "tex"}
    stem = own_name(session.name, session.fingerprint)
    return {form: session.paths.tables / f"{stem}.{suffix}" for form, suffix in suffixes.items()}
