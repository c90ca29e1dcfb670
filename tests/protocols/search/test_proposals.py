"""Proposals: start-up points, equal settings however a search is cut, other samplers (specification, 7 and 11.10)."""

import math
from importlib.util import find_spec

import optuna
import pytest
from scipy.stats import qmc

from protocols.search.proposals import PROPOSED_DIGITS, Proposals, build_sampler, distribution_of, rounded, try_sampler
from protocols.training.build_method import MethodError
from results.records.trials import Trial, repeated_settings
from results.spec.range import Range
from results.spec.search_settings import SamplerSettings
from results.values import derive_seed

SPACE = {
    "loss.margin": Range(scale="linear", low=-0.2, high=2.0),
    "loss_optimizer.lr": Range(scale="log", low=1e-6, high=1.0),
    "loss.centers": Range(scale="int", low=1, high=12),
    "loss.kind": Range(scale="choice", choices=("soft", "hard", None)),
}
LINE = {"loss.margin": SPACE["loss.margin"]}
FIXED = SamplerSettings(
    name="PartialFixedSampler",
    startup_trials=2,
    arguments={"fixed_params": {"loss.kind": "hard"}, "base_sampler": {"name": "TPESampler"}},
)


def _score(setting):
    """A cheap objective with one best setting."""
    score = 0.6 - 0.1 * (setting["loss.margin"] - 0.7) ** 2
    score -= 0.01 * (math.log10(setting["loss_optimizer.lr"]) + 3) ** 2
    score -= 0.002 * abs(setting["loss.centers"] - 5)
    return score - 0.05 * (setting["loss.kind"] != "hard")


def _finished(number, setting, score):
    return Trial(number=number, setting=setting, state="complete", score=score, fold_scores=(score,), trainings=("f",))


def _go_on(trials, count, sampler, seed=0):
    proposals = Proposals(SPACE, sampler, seed)
    trials = list(trials)
    while len(trials) < count:
        setting = proposals.next(trials)
        trials.append(_finished(len(trials), setting, _score(setting)))
    return trials


def _as_kept(trials):
    return [Trial.model_validate_json(trial.model_dump_json()) for trial in trials]


@pytest.mark.parametrize(
    ("sampler", "count"),
    [
        (SamplerSettings(startup_trials=2), 6),
        (SamplerSettings(name="TPESampler", startup_trials=2, arguments={"n_startup_trials": 4}), 12),
        (SamplerSettings(name="RandomSampler", startup_trials=2), 8),
        (SamplerSettings(name="optuna.samplers:QMCSampler", startup_trials=2), 8),
        (SamplerSettings(name="GridSampler", arguments={"points": 2}), 2 * 2 * 2 * 3),
        (FIXED, 8),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_settings_are_the_same_however_a_search_is_cut(sampler, count):
    at_once = _go_on([], count, sampler)
    assert len({tuple(map(str, trial.setting.values())) for trial in at_once}) == count
    piece = []
    for done in range(1, count + 1):
        piece = _go_on(_as_kept(piece), done, sampler)
    assert piece == at_once


def test_a_search_that_is_filled_again_proposes_what_a_kept_study_of_optuna_would():
    """The reference keeps one study of Optuna's for the whole search, as MLRC's code does."""
    settings = SamplerSettings(startup_trials=3)
    trials = _go_on([], 9, settings)
    study = optuna.create_study(direction="maximize")
    distributions = {target: distribution_of(one) for target, one in SPACE.items()}
    for number, trial in enumerate(trials):
        if number < 3:
            study.enqueue_trial(trial.setting)
        study.sampler = build_sampler(settings, derive_seed("sampler", 0, number) % 2**32)
        asked = study.ask(distributions)
        assert rounded(asked.params, SPACE) == trial.setting
        study.tell(asked, state=optuna.trial.TrialState.FAIL)  # The search knows the setting that was trained.
        study.add_trial(optuna.trial.create_trial(params=trial.setting, distributions=distributions, value=trial.score))


def test_a_raced_trial_counts_with_its_expected_score():
    start = _go_on([], 3, SamplerSettings(startup_trials=3))
    raced = [*start[:2], start[2].model_copy(update={"state": "raced", "score": 0.05})]
    settings = [Proposals(SPACE, SamplerSettings(startup_trials=3), 0).next(told) for told in (start, raced)]
    assert settings[0] != settings[1]


@pytest.mark.parametrize("seed", [0, 11])
def test_the_first_five_are_sobol_points_inside_the_bounds(seed):
    assert SamplerSettings().startup_trials == 5
    settings = [trial.setting for trial in _go_on([], 5, SamplerSettings(), seed)]
    points = qmc.Sobol(4, scramble=True, rng=derive_seed("sobol", seed)).random_base2(3)
    for setting, (a, b, c, d) in zip(settings, points, strict=False):
        assert setting["loss.margin"] == pytest.approx(-0.2 + 2.2 * a, rel=1e-7)
        assert setting["loss_optimizer.lr"] == pytest.approx(10 ** (-6 + 6 * b), rel=1e-7)
        assert setting["loss.centers"] == min(12, max(1, round(0.5 + 12 * c)))
        assert setting["loss.kind"] == ("soft", "hard", None)[int(3 * d)]
    assert len({setting["loss.margin"] for setting in settings}) == 5


@pytest.mark.parametrize("name", ["GPSampler", "TPESampler", "RandomSampler"])
def test_what_is_proposed_has_few_digits_and_stays_in_its_range(name):
    low = 0.1 + 1e-13  # An end with more digits than a proposal has.
    first_two = {target: SPACE[target] for target in ("loss.margin", "loss_optimizer.lr")}
    space = {"loss.a": Range(scale="linear", low=low, high=0.1000001), **first_two}
    proposals, trials = Proposals(space, SamplerSettings(name=name, startup_trials=2), 3), []
    for number in range(5):
        setting = proposals.next(trials)
        assert all(one.holds(setting[target]) for target, one in space.items())
        assert all(float(f"{x:.{PROPOSED_DIGITS}g}") == x or x == low for x in setting.values())
        trials.append(_finished(number, setting, 0.1 + 0.01 * number))


def test_steps_and_values_beyond_a_range_stay_what_they_are():
    space = {
        "loss.step": Range(scale="linear", low=0.123456789012, high=1.123456789012, step=0.5),
        "loss.choice": Range(scale="choice", choices=(0.123456789012, 2)),
        **LINE,
    }
    setting = {
        "loss.step": 0.623456789012,
        "loss.choice": 0.123456789012,
        "loss.margin": 2.123456789,
        "loss.centers": 7,
    }
    assert rounded(setting, space) == {**setting, "loss.margin": 2.1234568}


@pytest.mark.parametrize("name", ["GPSampler", "TPESampler"])
def test_a_search_of_an_older_store_with_all_digits_goes_on(name):
    sampler = SamplerSettings(name=name, startup_trials=2)
    exact = [
        trial.model_copy(
            update={
                "setting": {
                    key: value * (1 + 1e-10) if isinstance(value, float) and value > 0 else value
                    for key, value in trial.setting.items()
                }
            }
        )
        for trial in _go_on([], 4, sampler)
    ]
    (*before, last) = _go_on(exact, 5, sampler)
    assert before == exact
    assert last.setting == _go_on(_as_kept(exact), 5, sampler)[-1].setting


def test_the_default_sampler_gets_all_arguments_and_a_seed(monkeypatch):
    given = {}

    class Kept(optuna.samplers.GPSampler):
        def __init__(self, **arguments):
            given.update(arguments)
            super().__init__(**arguments)

    monkeypatch.setattr(optuna.samplers, "GPSampler", Kept)
    build_sampler(SamplerSettings(startup_trials=3), seed=7)
    assert (given["deterministic_objective"], given["n_startup_trials"], given["seed"]) == (False, 3, 7)


SEEDED = [
    ("GPSampler", {"seed": 7}),
    ("TPESampler", {"seed": 7, "n_startup_trials": 3}),
    ("QMCSampler", {}),
    ("optuna.samplers:QMCSampler", {"seed": 7}),
    ("PartialFixedSampler", FIXED.arguments | {"base_sampler": {"name": "RandomSampler", "arguments": {"seed": 7}}}),
]


@pytest.mark.parametrize(("name", "arguments"), SEEDED, ids=[name for name, _ in SEEDED])
def test_searches_differ_whatever_seed_a_sampler_is_given(name, arguments):
    sampler = SamplerSettings(name=name, startup_trials=0, arguments=arguments)
    searches = [_go_on([], 6, sampler, seed) for seed in (0, 1, 2, 0)]
    assert searches[0] == searches[3]
    assert repeated_settings(searches[:3]) == (0, 12)
    assert all(len({str(trial.setting) for trial in trials}) == 6 for trials in searches)
    assert repeated_settings(searches) == (6, 18)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (SamplerSettings(name="QMCSampler", arguments={"seed": "x"}), "seed must be a whole number, found 'x'"),
        (SamplerSettings(name="TPSampler"), "there is no sampler 'TPSampler'; use one of Optuna's .*TPESampler"),
        (SamplerSettings(name="BaseSampler"), "there is no sampler"),
        (SamplerSettings(name="optuna.samplers:Nope"), "there is no sampler 'optuna.samplers:Nope'"),
        (SamplerSettings(name="no_such_package:Sampler"), "needs the package no_such_package: pip install no_such"),
        (SamplerSettings(name="PartialFixedSampler"), "missing 2 required positional arguments"),
        (SamplerSettings(name="GridSampler", arguments={"points": 0}), "points must be a whole number from 1 on"),
        (SamplerSettings(name="TPESampler", arguments={"n_startup": 3}), "TPESampler: .*n_startup"),
    ],
)
def test_a_sampler_that_cannot_be_built_is_named(settings, message):
    with pytest.raises(MethodError, match=message):
        build_sampler(settings)


@pytest.mark.parametrize("name", ["GPSampler", "TPESampler"])
def test_a_search_with_failed_trials_is_proposed_equally_however_it_is_cut(name):
    sampler = SamplerSettings(name=name, startup_trials=2)
    proposals, trials = Proposals(SPACE, sampler, 0), list[Trial]()
    while len(trials) < 7:
        setting = proposals.next(trials)
        assert setting == Proposals(SPACE, sampler, 0).next(trials), "as a search that was cut here"
        number = len(trials)
        failed = Trial(number=number, setting=setting, state="failed", reason="refused")
        trials.append(failed if number in (1, 3, 4) else _finished(number, setting, _score(setting)))
    assert len({str(trial.setting) for trial in trials}) == 7


def test_a_refused_trial_counts_as_the_lowest_score_so_that_a_search_keeps_away(monkeypatch):
    """As the highest it would draw the search: of 100 trials 78 were refused in place of 15."""
    scores = []

    class Watched(optuna.samplers.GPSampler):
        def before_trial(self, study, trial):
            scores.extend(one.value for one in study.trials if one.state.is_finished())

    monkeypatch.setattr(optuna.samplers, "GPSampler", Watched)
    trials = _go_on([], 2, SamplerSettings(startup_trials=3))
    refused = Trial(number=2, setting={**trials[0].setting, "loss.margin": 2.0}, state="failed", reason="refused")
    Proposals(SPACE, SamplerSettings(startup_trials=3), 0).next([*trials, refused])
    assert scores == [*(trial.score for trial in trials), min(trial.score for trial in trials)]


def test_plan_finds_what_only_a_proposal_needs():
    for settings in (SamplerSettings(name="TPESampler"), FIXED):
        try_sampler(SPACE, settings, 9)
    try_sampler(SPACE, SamplerSettings(name="GridSampler", arguments={"points": 2}), 24)
    with pytest.raises(MethodError, match="the grid has 24 points, fewer than the 25 trials"):
        try_sampler(SPACE, SamplerSettings(name="GridSampler", arguments={"points": 2}), 25)
    with pytest.raises(MethodError, match=r"BruteForceSampler: search.ranges must give loss.margin a step"):
        try_sampler(LINE, SamplerSettings(name="BruteForceSampler"), 9)
    if find_spec("cmaes") is None:
        with pytest.raises(MethodError, match="CmaEsSampler needs the package cmaes: pip install cmaes"):
            try_sampler(SPACE, SamplerSettings(name="CmaEsSampler"), 9)


@pytest.mark.parametrize("name", ["GPSampler", "TPESampler"])
def test_enqueued_settings_come_first_however_a_search_is_cut(name):
    sampler = SamplerSettings(name=name, startup_trials=2)
    enqueued = [{"loss.margin": 0.1}, {"loss.kind": "hard", "loss.centers": 3}, {"loss.margin": 0.2}]
    proposals, trials = Proposals(SPACE, sampler, 0, enqueued), list[Trial]()
    plain = [trial.setting for trial in _go_on([], 2, sampler)]
    while len(trials) < 6:
        setting = proposals.next(trials)
        assert setting == Proposals(SPACE, sampler, 0, enqueued).next(trials)
        trials.append(_finished(len(trials), setting, _score(setting)))
    assert trials[0].setting == {**plain[0], **enqueued[0]}
    assert trials[1].setting == {**plain[1], **enqueued[1]}
    assert trials[2].setting["loss.margin"] == 0.2
    assert len({str(trial.setting) for trial in trials}) == 6
