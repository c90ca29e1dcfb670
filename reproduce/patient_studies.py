"""Optuna's storage, with calls that are repeated if a server restarts or a SQLite file is locked for long."""

from collections.abc import Sequence
from inspect import isfunction

from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from results.store.database import engine_arguments, engine_url, raise_passing_errors, wait_for_restarts
from results.store.patience import LockWait, LostConnectionError, patient

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
        self.lock_wait = LockWait()
        parsed = engine_url(url)
        super().__init__(parsed.render_as_string(hide_password=False), engine_kwargs=engine_arguments(parsed))
        raise_passing_errors(self.engine, url)
        wait_for_restarts(self.engine, reached=True)

    @patient
    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """Change the state of a trial, and its values."""
        try:
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
            return super()._create_new_trial(study_id, template_trial)
        except LostConnectionError:
            # The server may have committed it; nobody else adds trials to this study.
            trials = self.get_all_trials(study_id, deepcopy=False)
            if len(trials) > count:
                return trials[-1]
            raise


for _name, _method in vars(RDBStorage).items():
    if _name not in vars(PatientStudies) and isfunction(_method) and (_name in _PRIVATE or not _name.startswith("_")):
        setattr(PatientStudies, _name, patient(_method))
