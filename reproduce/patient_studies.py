"""Optuna's storage, with calls that are repeated if a server restarts or a SQLite file is locked for long."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from results.engine import engine_arguments, engine_url
from results.patience import LockedStoreError, LockWait, LostConnectionError, is_locked, is_lost, patient
from results.store_url import shown_url, without_passwords

_PRIVATE = {"_set_trial_param", "_get_trials", "_get_best_trial_id"}
"""Methods of the storage that Optuna's cache calls besides the public ones."""


class PatientStudies(RDBStorage):
    """The studies of a store. One process at a time may write to a study.

    Args:
        url: SQLAlchemy URL of the store.

    Attributes:
        lock_wait: What to do about a SQLite file that stays locked.
    """

    def __init__(self, url: str) -> None:
        self.lock_wait, self._full_url = LockWait(), url
        parsed = engine_url(url)
        super().__init__(parsed.render_as_string(hide_password=False), engine_kwargs=engine_arguments(parsed))

    @contextmanager
    def passing_errors(self) -> Iterator[None]:
        """Raise errors that pass as those that `patient` methods wait for."""
        try:
            yield
        except (StorageInternalError, SQLAlchemyError) as error:
            cause = error.__cause__ if isinstance(error, StorageInternalError) else error
            if not isinstance(cause, DBAPIError) or not (is_lost(cause) or is_locked(cause)):
                raise
            reason = without_passwords(str(cause.orig), self._full_url).strip().splitlines()[0]
            kind = LostConnectionError if is_lost(cause) else LockedStoreError
            raise kind(f"store {shown_url(self._full_url)}: {reason}; what was stored before is kept") from None

    @patient
    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Change the state of a trial, and its values."""
        try:
            with self.passing_errors():
                return super().set_trial_state_values(trial_id, state, values)
        except LostConnectionError:
            # The server may have committed it; Optuna refuses to finish a trial twice.
            if self.get_trial(trial_id).state == state:
                return True
            raise

    @patient
    def _create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> FrozenTrial:
        count = len(self.get_all_trials(study_id, deepcopy=False))
        try:
            with self.passing_errors():
                return super()._create_new_trial(study_id, template_trial)
        except LostConnectionError:
            # The server may have committed it; nobody else adds trials to this study.
            trials = self.get_all_trials(study_id, deepcopy=False)
            if len(trials) > count:
                return trials[-1]
            raise


def _patient(method: Callable[..., Any]) -> Callable[..., Any]:
    @patient
    @wraps(method)
    def call(self: PatientStudies, *arguments: Any, **options: Any) -> Any:
        with self.passing_errors():
            return method(self, *arguments, **options)

    return call


for _name, _method in vars(RDBStorage).items():
    if _name not in vars(PatientStudies) and isfunction(_method) and (_name in _PRIVATE or not _name.startswith("_")):
        setattr(PatientStudies, _name, _patient(_method))
