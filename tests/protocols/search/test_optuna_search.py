"""The search: start-up points, resuming to the bit, ties, failures (specification, section 7; 11.10 to 11.14)."""

import math
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState
from scipy.stats import qmc

from protocols.search.optuna_search import Search, Trial
from protocols.search.space import SearchParameter, settled
from results.records.records import FoldResult
from results.spec.search_settings import SamplerSettings
from results.values import derive_seed
from tests.support.toys import made_up_result

SPACE = (
    SearchParameter(target="loss.margin", scale="linear", low=-0.2, high=2.0),
    SearchParameter(target="loss_optimizer.lr", scale="log", low=1e-6, high=1.0),
    SearchParameter(target="loss.centers", scale="int", low=1, high=12),
    SearchParameter(target="loss.kind", scale="choice", choices=("soft", "hard", None)),
)


LINE = SPACE[:1]


def _score(setting: dict[str, Any]) -> float:
    """A cheap objective with one best setting."""
    score = 0.6 - 0.1 * (setting["loss.margin"] - 0.7) ** 2
    score -= 0.01 * (math.log10(setting["loss_optimizer.lr"]) + 3) ** 2
    score -= 0.002 * abs(setting["loss.centers"] - 5)
    return score - 0.05 * (setting["loss.kind"] != "hard")


def _folds(*scores: float) -> list[FoldResult]:
    return [made_up_result(f"fold {i}", score) for i, score in enumerate(scores)]


def _memory() -> optuna.storages.BaseStorage:
    return optuna.storages.InMemoryStorage()


def _sqlite(path: Path) -> optuna.storages.BaseStorage:
    return optuna.storages.RDBStorage(f"sqlite:///{path}")


def _open(
    storage: optuna.storages.BaseStorage, space: tuple[SearchParameter, ...] = SPACE, startup: int = 5, seed: int = 0
) -> Search:
    return Search(storage, "toys", {"dataset": "toys"}, space, SamplerSettings(startup_trials=startup), seed)


def _go_on(search: Search, trials: int) -> list[dict[str, Any]]:
    while search.trials_told() < trials:
        trial = search.ask()
        score = _score(trial.hyperparameters)
        search.tell(trial, _folds(score - 0.01, score + 0.01))
    return [trial.hyperparameters for trial in search.asked()]


def _tell_values(search: Search, values: list[float]) -> list[Trial]:
    trials = []
    for value in values:
        trials.append(search.ask())
        search.tell(trials[-1], _folds(value))
    return trials


# Resuming


@pytest.mark.slow
def test_twenty_trials_are_the_same_however_they_are_cut(tmp_path: Path) -> None:
    at_once = _go_on(_open(_sqlite(tmp_path / "once.db")), 20)
    assert len(at_once) == 20
    assert len({tuple(map(str, setting.values())) for setting in at_once}) == 20
    for cut in (5, 15, 20):
        in_two = _go_on(_open(_sqlite(tmp_path / "two.db")), cut)
        assert in_two == at_once[:cut]
    for done in range(1, 21):
        one_by_one = _go_on(_open(_sqlite(tmp_path / "one.db")), done)
        assert len(one_by_one) == done
    assert one_by_one == at_once


@pytest.mark.slow
def test_the_gaussian_process_finds_better_settings_than_the_start(tmp_path: Path) -> None:
    settings = _go_on(_open(_memory()), 25)
    assert max(map(_score, settings[5:])) > max(map(_score, settings[:5]))
    assert max(map(_score, settings)) > 0.55


def test_a_few_trials_are_the_same_however_they_are_cut(tmp_path: Path) -> None:
    at_once = _go_on(_open(_memory(), startup=2), 4)
    for done in (1, 2, 3, 4):
        one_by_one = _go_on(_open(_sqlite(tmp_path / "one.db"), startup=2), done)
    assert one_by_one == at_once


def test_trials_told_differently_lead_elsewhere() -> None:
    searches = [_open(_memory(), startup=2) for _ in range(2)]
    _tell_values(searches[0], [0.1, 0.9])
    _tell_values(searches[1], [0.9, 0.1])
    assert searches[0].ask().hyperparameters != searches[1].ask().hyperparameters


@pytest.mark.parametrize("told", [0, 1, 3])
def test_a_trial_asked_for_but_not_told_comes_again(tmp_path: Path, told: int) -> None:
    first = _open(_sqlite(tmp_path / "killed.db"), startup=2)
    _go_on(first, told)
    asked = first.ask()
    again = _open(_sqlite(tmp_path / "killed.db"), startup=2)
    assert again.trials_told() == told
    assert again.ask() == asked
    assert again.ask() == asked
    again.tell(asked, _folds(0.5))
    assert again.trials_told() == told + 1
    assert _open(_sqlite(tmp_path / "killed.db"), startup=2).ask().number == told + 1


def test_a_crash_between_queueing_and_asking_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _go_on(_open(_memory(), startup=3), 3)
    search = _open(_sqlite(tmp_path / "killed.db"), startup=3)
    _go_on(search, 1)

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search.study, "ask", killed)
    with pytest.raises(KeyboardInterrupt):
        search.ask()
    resumed = _open(_sqlite(tmp_path / "killed.db"), startup=3)
    assert len(resumed.study.get_trials(states=(TrialState.WAITING,))) == 1
    assert _go_on(resumed, 3) == expected
    assert [trial.number for trial in resumed.asked()] == [0, 1, 2]


@pytest.mark.parametrize("told", [1, 3])
def test_a_crash_while_a_setting_is_drawn_changes_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: int
) -> None:
    expected = _go_on(_open(_memory(), startup=2), 4)
    search = _open(_sqlite(tmp_path / "killed.db"), startup=2)
    _go_on(search, told)
    storage = search.study._storage
    set_param = storage.set_trial_param

    def killed(trial_id: int, name: str, *rest: Any) -> None:
        if name == "loss.centers":
            raise KeyboardInterrupt
        set_param(trial_id, name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "set_trial_param", killed)
        with pytest.raises(KeyboardInterrupt):
            search.ask()
    resumed = _open(_sqlite(tmp_path / "killed.db"), startup=2)
    assert len(resumed.asked()) == told
    assert _go_on(resumed, 4) == expected


@pytest.mark.parametrize("change", ["seed", "space", "sampler", "identity"])
def test_another_search_is_another_study(change: str) -> None:
    storage = _memory()
    one = _open(storage)
    _go_on(one, 1)
    same = _open(storage)
    assert (same.fingerprint, same.trials_told()) == (one.fingerprint, 1)
    others = {
        "seed": lambda: _open(storage, seed=1),
        "space": lambda: _open(storage, SPACE[:3]),
        "sampler": lambda: _open(storage, startup=6),
        "identity": lambda: Search(storage, "toys", {"dataset": "others"}, SPACE, SamplerSettings(), 0),
    }
    other = others[change]()
    assert other.fingerprint != one.fingerprint
    assert other.trials_told() == 0


def test_a_study_says_what_it_is() -> None:
    search = _open(_memory(), seed=7)
    identity = search.study.user_attrs["identity"]
    assert identity["dataset"] == "toys"
    assert identity["seed"] == 7
    assert [parameter["target"] for parameter in identity["space"]] == [p.target for p in SPACE]
    assert identity["sampler"] == SamplerSettings().model_dump()
    assert search.study.direction == optuna.study.StudyDirection.MAXIMIZE


# Start-up


@pytest.mark.parametrize("seed", [0, 11])
def test_the_first_five_are_sobol_points_inside_the_bounds(seed: int) -> None:
    assert SamplerSettings().startup_trials == 5
    settings = _go_on(_open(_memory(), seed=seed), 5)
    points = qmc.Sobol(4, scramble=True, rng=derive_seed("sobol", seed)).random_base2(3)
    for setting, (a, b, c, d) in zip(settings, points, strict=False):
        assert setting["loss.margin"] == pytest.approx(-0.2 + 2.2 * a, abs=1e-12)
        assert setting["loss_optimizer.lr"] == pytest.approx(10 ** (-6 + 6 * b), rel=1e-9)
        assert setting["loss.centers"] == min(12, max(1, round(0.5 + 12 * c)))
        assert setting["loss.kind"] == ("soft", "hard", None)[int(3 * d)]
        assert -0.2 <= setting["loss.margin"] <= 2
        assert 1e-6 <= setting["loss_optimizer.lr"] <= 1
        assert 1 <= setting["loss.centers"] <= 12
    assert len({setting["loss.margin"] for setting in settings}) == 5


def test_the_start_depends_on_the_seed_and_not_on_the_method() -> None:
    storage = _memory()
    identities = ({"method": "one"}, {"method": "two"})
    searches = [Search(storage, "toys", identity, SPACE, SamplerSettings(), 0) for identity in identities]
    assert searches[0].ask().hyperparameters == searches[1].ask().hyperparameters
    assert _open(_memory(), seed=1).ask().hyperparameters != _open(_memory(), seed=2).ask().hyperparameters


# Exhaustive parameters


def test_an_exhaustive_parameter_takes_every_value_once() -> None:
    bins = SearchParameter(target="loss.num_bins", scale="int", low=2, high=8, exhaustive=True)
    space, trials = settled((bins,), 50)
    assert (space, trials) == ((bins,), 7)
    search = _open(_memory(), space)
    trials_asked = _tell_values(search, [0.1] * 7)
    assert [trial.hyperparameters["loss.num_bins"] for trial in trials_asked] == [2, 3, 4, 5, 6, 7, 8]


def test_exhaustive_beside_others_is_searched() -> None:
    bins = SearchParameter(target="loss.num_bins", scale="int", low=2, high=8, exhaustive=True)
    space, count = settled((bins, *LINE), 50)
    assert count == 50
    assert not any(parameter.exhaustive for parameter in space)


# The Gaussian process


@pytest.mark.parametrize("deterministic", [False, True])
def test_the_sampler_gets_the_experiments_settings(monkeypatch: pytest.MonkeyPatch, deterministic: bool) -> None:
    given: dict[str, Any] = {}
    make = optuna.samplers.GPSampler

    def keep(**arguments: Any) -> optuna.samplers.BaseSampler:
        given.update(arguments)
        return make(**arguments)

    monkeypatch.setattr(optuna.samplers, "GPSampler", keep)
    settings = SamplerSettings(startup_trials=3, deterministic_objective=deterministic)
    search = Search(_memory(), "toys", {}, LINE, settings, 0)
    search.ask()
    assert given["deterministic_objective"] is deterministic
    assert given["n_startup_trials"] == 3
    assert given["seed"] == derive_seed("sampler", search.fingerprint, 0) % 2**32


def test_trainings_of_one_setting_differ_so_the_objective_is_noisy() -> None:
    assert SamplerSettings().deterministic_objective is False


# Telling


def test_the_score_is_the_mean_over_folds_and_the_folds_are_kept() -> None:
    search = _open(_memory(), LINE)
    search.tell(search.ask(), _folds(0.1, 0.2, 0.3, 0.6))
    (trial,) = search.study.trials
    assert trial.value == pytest.approx(0.3, abs=1e-15)
    assert trial.user_attrs["fold_values"] == [0.1, 0.2, 0.3, 0.6]
    assert trial.user_attrs["fold_fingerprints"] == ["fold 0", "fold 1", "fold 2", "fold 3"]
    assert "reasons" not in trial.user_attrs


def test_a_fold_that_went_nan_counts_0_and_says_why() -> None:
    search = _open(_memory(), LINE)
    failed = made_up_result("fold 1", 0.9, reason="loss not finite at iteration 12")
    search.tell(search.ask(), [*_folds(0.4), failed])
    (trial,) = search.study.trials
    assert trial.value == pytest.approx(0.2)
    assert trial.user_attrs["fold_values"] == [0.4, 0.0]
    assert trial.user_attrs["reasons"] == ["loss not finite at iteration 12"]


def test_ties_go_to_the_earlier_trial() -> None:
    search = _open(_memory(), LINE)
    trials = _tell_values(search, [0.2, 0.5, 0.5, 0.1, 0.5])
    assert search.best(5) == trials[1]


def test_the_best_is_the_highest_observed_among_the_first() -> None:
    search = _open(_memory(), LINE)
    trials = _tell_values(search, [0.2, 0.5, 0.3, 0.9, 0.1])
    assert [search.best(n) for n in range(1, 6)] == [trials[i] for i in (0, 1, 1, 3, 3)]


def test_all_zero_is_the_first() -> None:
    search = _open(_memory(), LINE)
    trials = _tell_values(search, [0.0, 0.0])
    assert search.best(2) == trials[0]
