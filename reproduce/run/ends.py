"""Rounds of an experiment that probes the ends of its ranges (`results.spec.ends` has the rule).

After the searches of a round each pressed end gets a probe from every search of its method. If values beyond an end of
any method are better, its range is widened, and all searches of all methods get more trials in a further round.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from protocols.jobs import Lab, TrainJob
from protocols.mlrc import reproductions
from protocols.study import Study
from protocols.training.build_method import RefusedError
from reproduce.run.lab import MethodSearch
from reproduce.run.session import Session
from results.spec.ends import FEWEST_SEARCHES, ROUNDS, ProbedEnd, pressed_ends
from results.spec.method import HyperparameterError
from results.spec.plan import PlannedRow
from results.spec.range import End
from results.store import StoreError
from results.store.searches import Searches
from results.store.store import Store
from results.wording import counted, listed

MORE_TRIALS = 0.5
"""Further trials of every search in a round, as a part of those that the experiment's file gives."""

PRESSED = 0.63
"""Open ends that most searches press, by searched method: 98 of 156 methods' in the 22 kept records with three searches
or more."""

_Score = float | None


def studies_with_validation(session: Session, log: Searches | None = None) -> dict[str, Study]:
    """Return the studies whose probes have tested runs to be compared with.

    Under the standard protocol a run of one epoch validates no fold.
    """
    return {key: study for key, study in session.studies(log).items() if session.protocol.models(study)[0]}


class Probes:
    """The probes of a round: what they train, and what came.

    Args:
        studies: Studies with validation, whose searches and reproductions are complete.
        store: Has the reproductions.
    """

    def __init__(self, studies: Mapping[str, Study], store: Store) -> None:
        self._store = store
        self._studies = {key: study for key, study in studies.items() if _goes_on(study.row)}
        self._pressed = _pressed_by_method(studies)
        self._scores: dict[tuple[str, int, str, End], _Score] = {}

    def trainings(self, key: str) -> int:
        """Return the number of trainings of a method's probes."""
        study = self._studies.get(key)
        return len(self._pressed.get(key, ())) * study.row.searches * study.setup.folds if study else 0

    def searches(self) -> list[MethodSearch]:
        """Return what a lab follows to train the probes."""
        return [
            MethodSearch(key, search.setup, self._follow(key, search), number)
            for key in self._pressed
            for number, search in enumerate(self._studies[key].searches)
        ]

    def words(self) -> str:
        """Name the ends that are probed."""
        return "; ".join(
            f"{self._studies[key].row.title}: {listed([f'{target} ({end})' for target, end in ends])}"
            for key, ends in self._pressed.items()
        )

    def _follow(self, key: str, search: Study) -> Callable[[Lab], None]:
        def follow(lab: Lab) -> None:
            for target, end in self._pressed[key]:
                self._scores[key, search.setup.search, target, end] = _probe(search, lab, target, end)

        return follow

    def outcome(self) -> tuple[ProbedEnd, ...]:
        """Return what the probes showed."""
        return tuple(
            ProbedEnd(
                method=key,
                target=target,
                end=end,
                low=(searched := self._studies[key].row.ranges[target]).ends[0],
                high=searched.ends[1],
                beyond=searched.beyond(end),
                probes=tuple(self._scores[key, one.setup.search, target, end] for one in self._studies[key].searches),
                runs=tuple(map(self._of_runs, self._studies[key].searches)),
            )
            for key, ends in self._pressed.items()
            for target, end in ends
        )

    def _of_runs(self, search: Study) -> float:
        """Validation MAP@R of a search's tested runs, their mean."""
        found = search.found_hyperparameters()
        assert found is not None
        names = [spec.fingerprint for specs in reproductions(search, found) for spec in specs]
        results = self._store.fold_results(names)
        return fmean(results[name].objective for name in names)


def _goes_on(row: PlannedRow) -> bool:
    """Whether a row has a search that wider ranges can continue: not one that tries every value of its ranges."""
    return bool(row.ranges) and not any(one.exhaustive for one in row.ranges.values())


def _pressed_by_method(studies: Mapping[str, Study]) -> dict[str, list[tuple[str, End]]]:
    return {key: ends for key, study in studies.items() if _goes_on(study.row) and (ends := _pressed(study))}


def _pressed(study: Study) -> list[tuple[str, End]]:
    settings = [search.found_hyperparameters() for search in study.searches]
    known = [setting for setting in settings if setting is not None]
    return pressed_ends(study.row.ranges, known) if len(known) == len(settings) else []


def _probe(search: Study, lab: Lab, target: str, end: End) -> _Score:
    """Train the setting of a search with one value beyond an end, as its first reproduction is trained."""
    setting = {**(search.found_hyperparameters() or {}), target: search.row.ranges[target].beyond(end)}
    try:
        specs = search.trainings(setting, "reproduction", 0)
        return fmean(fold.objective for fold in lab.train([TrainJob(spec) for spec in specs]))
    except (RefusedError, HyperparameterError):
        return None


def next_round(session: Session, probed: Sequence[ProbedEnd]) -> tuple[Session, bool]:
    """Return the session with what its probes showed, and whether another round of searches begins.

    The ranges of that round are wider at the ends that opened, and all searches have more trials.
    """
    plan = session.plan.model_copy(update={"probed": (*session.plan.probed, *probed)})
    opened = [one for one in probed if one.opens]
    if not opened:
        return replace(session, plan=plan), False
    more = math.ceil(MORE_TRIALS * session.experiment.search.trials)
    rows = {key: _further(row, [one for one in opened if one.method == key], more) for key, row in plan.rows.items()}
    return replace(session, plan=plan.model_copy(update={"rows": rows})), True


def in_latest_round(session: Session, store: Store | None) -> tuple[Session, int]:
    """Return the session in the round of searches that its run goes on with, by the probes in the store.

    Returns:
        The session, and how many rounds of probes can follow.
    """
    rounds = ROUNDS if session.experiment.search.probe_ends and studies_with_validation(session) else 0
    try:
        left = store.experiment(session.fingerprint).probed if store else ()
    except StoreError:
        left = ()
    while left and rounds:
        assert store
        studies = studies_with_validation(session, store.searches)
        pressed = {
            (key, target, end, *studies[key].row.ranges[target].ends)
            for key, ends in _pressed_by_method(studies).items()
            for target, end in ends
        }
        # A round's probes come after those of the round before, which can be of the same end.
        probed, left = left[: len(pressed)], left[len(pressed) :]
        if not pressed or {(one.method, one.target, one.end, one.low, one.high) for one in probed} != pressed:
            break
        session, goes_on = next_round(session, probed)
        rounds = rounds - 1 if goes_on else 0
    if rounds and store and session.searched(store.searches):
        return session, rounds if _pressed_by_method(studies_with_validation(session, store.searches)) else 0
    return session, rounds


def _further(row: PlannedRow, opened: Sequence[ProbedEnd], more: int) -> PlannedRow:
    if not _goes_on(row):
        return row
    ranges = dict(row.ranges)
    for one in opened:
        ranges[one.target] = ranges[one.target].widened(one.end)
    before = row if opened else row.before
    return row.model_copy(update={"ranges": ranges, "trials": row.trials + more, "before": before})


def rounds_words(session: Session, rounds: int) -> list[str]:
    """Say how many further trainings the ends of ranges need, expected and at most; nothing where none are probed.

    Args:
        session: The experiment in its present round.
        rounds: How many rounds of probes can follow.
    """
    search = session.experiment.search
    searched = [study for study in session.studies().values() if _goes_on(study.row)]
    more, made = math.ceil(MORE_TRIALS * search.trials), ROUNDS - rounds
    if search.searches < FEWEST_SEARCHES or not searched or not rounds:
        return []
    folds = searched[0].setup.folds
    trials = rounds * folds * more * sum(study.row.searches for study in searched)
    runs = rounds * folds * sum(study.row.runs for study in searched)
    of_end = search.searches * folds
    expected = counted(round(PRESSED * len(searched)) * of_end, "training")
    first = f"; expected in the first round, by kept records: {expected}" if not made else ""
    return [
        f"ends of ranges that most searches press {'after this round ' if made else ''}are probed, each by "
        f"{counted(of_end, 'training')}{first}",
        f"if values beyond an end are better, all searches go on by {counted(more, 'trial')}, at most "
        f"{'once more' if made else 'twice'}: at most {counted(trials, 'training')} of trials and {runs:,} of new "
        "settings",
    ]
