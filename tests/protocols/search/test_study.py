"""The study of one method on one setup: what decides it, its seeds, and what earlier runs left of it."""

from contextlib import suppress
from dataclasses import replace

import pytest

from protocols.datasets.splits import mlrc_split
from protocols.study import RunningSearch
from protocols.training.build_method import RefusedError
from results.spec.conditions import ImageSettings, TrainingSettings
from results.spec.range import Range
from results.spec.trunk_spec import TrunkSpec
from results.values import derive_seed
from tests.support import studies
from tests.support.labs import InventedLab, TrialsInMemory
from tests.support.small_setup import COSFACE, TRIPLET, small_setup, with_changes
from tests.support.toys import made_up_result

MARGIN = {"loss.margin": Range(scale="linear", low=0.0, high=1.0)}


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    return small_setup(tmp_path_factory.mktemp("cache"))


def study_of(setup, log=None, method=TRIPLET, ranges=MARGIN, **search):
    return studies.study_of(setup, method, ranges, log, **{"trials": 4, **search})


CHANGES = {
    "split": {"split": replace(mlrc_split(16), name="another")},
    "folds": {"folds": 1},
    "images": {"images": ImageSettings(resize=None, crop=8)},
    "trunk": {"trunk": TrunkSpec(name="small_conv", weights="random", batch_norm="frozen")},
    "embedding_size": {"embedding_size": 4},
    "training": {"training": TrainingSettings()},
    "seed": {"seed": 6},
    "embedder_bias": {"embedder_bias": False},
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_shared_condition_makes_another_study(setup, change):
    other = with_changes(setup, **CHANGES[change])
    assert study_of(other).name != study_of(setup).name


@pytest.mark.parametrize("change", [{"fingerprint": "d" * 32}, {"name": "another"}])
def test_other_data_make_another_study(setup, change):
    changed = replace(setup, dataset=replace(setup.dataset, **change))
    assert study_of(changed).name != study_of(setup).name


def test_another_method_makes_another_study_and_a_longer_budget_does_not(setup):
    assert study_of(setup, method=COSFACE).name != study_of(setup).name
    assert study_of(setup, trials=50).name == study_of(setup).name


def test_a_study_says_what_it_is(setup):
    identity = study_of(setup).identity
    assert identity["dataset"] == setup.dataset.name
    assert identity["seed"] == setup.seed
    assert identity["space"] == [
        {"target": "loss.margin", "scale": "linear", "low": 0.0, "high": 1.0, "choices": None, "exhaustive": False}
    ]
    assert "racing" not in identity
    assert "enqueue" not in identity
    assert study_of(setup, racing=True).name != study_of(setup).name
    tried_first = study_of(setup, enqueue=({"loss.margin": 0.5}, {"loss.alpha": 1.0}))
    assert tried_first.identity == {**identity, "enqueue": [{"loss.margin": 0.5}]}


class _EnoughError(Exception):
    """The search is cut here."""


class CutLab(InventedLab):
    """A lab that ends a search after some trials."""

    def __init__(self, study, score, trials):
        super().__init__(lambda spec: result_of(spec, score))
        self.study, self.trials = study, trials

    def train(self, jobs):
        if sum(trial.state != "running" for trial in self.study.trials()) >= self.trials:
            raise _EnoughError
        return super().train(jobs)


def finish(study, score, trials):
    """Run a search until `trials` trials have scores by `score` of margin and fold; return the jobs of each step."""
    lab = CutLab(study, score, trials)
    with suppress(_EnoughError):
        RunningSearch(study).best_hyperparameters(lab)
    return lab.asked


def result_of(spec, score):
    value = score(spec.method.loss.arguments["margin"], spec.fold)
    return made_up_result(spec, value or 0.0, reason="loss not finite" if value is None else None)


def test_a_search_goes_on_where_it_was_cut_and_asks_for_the_same_trainings(setup):
    score = lambda margin, fold: 0.7 - abs(margin - 0.6) + 0.01 * fold  # noqa: E731
    whole, log = study_of(setup), TrialsInMemory()
    steps = finish(whole, score, 4)
    for done in range(1, 5):
        cut = study_of(setup, log)
        steps_of_cut = finish(cut, score, done)
    assert cut.trials() == whole.trials()
    assert steps_of_cut == steps
    for number, jobs in enumerate(steps):
        assert [job.spec.seed for job in jobs] == [derive_seed(5, "search", number, fold) for fold in (0, 1)]


def test_a_trial_that_was_begun_comes_again(setup):
    study = study_of(setup)
    finish(study, None, 0)
    (begun,) = study.trials()
    assert begun.state == "running"
    jobs = finish(study, lambda margin, fold: 0.5, 1)[0]
    assert [job.spec for job in jobs] == list(study.specs(begun))
    assert study.trials()[0].setting == begun.setting


def test_a_trial_with_a_fold_that_diverged_scores_0_as_in_mlrcs_code(setup):
    study = study_of(setup)
    finish(study, lambda margin, fold: 0.4 if fold == 0 else None, 1)
    (trial,) = study.trials()[:1]
    assert (trial.score, trial.fold_scores, trial.reason) == (0.0, (0.4, 0.0), "loss not finite")
    assert list(trial.trainings) == [spec.fingerprint for spec in study.specs(trial)]


def test_a_search_whose_settings_are_all_refused_ends_with_the_reason(setup):
    class RefusingLab(InventedLab):
        def train(self, jobs):
            raise RefusedError("the margin is too large")

    study = study_of(setup)
    with pytest.raises(RefusedError, match="all 4 trials of the search failed; the last: the margin is too large"):
        RunningSearch(study).best_hyperparameters(RefusingLab(lambda spec: result_of(spec, None)))
    assert {(trial.state, trial.score) for trial in study.trials()} == {("failed", None)}
    assert study.skipped() == 8


@pytest.mark.parametrize(
    ("scores", "best"), [((0.2, 0.5, 0.5, 0.1), 1), ((0.0, 0.0, 0.0, 0.0), 0), ((0.2, 0.5, 0.3, 0.9), 3)]
)
def test_the_best_is_the_highest_score_and_of_equals_the_earliest(setup, scores, best):
    study = study_of(setup)
    remaining = [score for score in scores for _ in range(2)]
    finish(study, lambda margin, fold: remaining.pop(0), 4)
    assert study.found_hyperparameters() == study.trials()[best].setting


def test_a_search_that_is_not_finished_has_found_nothing(setup):
    study = study_of(setup)
    finish(study, lambda margin, fold: 0.5, 3)
    assert study.found_hyperparameters() is None


def test_in_a_race_a_trial_that_is_clearly_behind_gets_no_more_folds(setup):
    log, four = TrialsInMemory(), replace(setup, folds=4)
    searches = study_of(four, log, racing=True, trials=2, searches=2).searches
    for search in searches:
        remaining = [0.5] * 4 + [0.1]
        steps = finish(search, lambda margin, fold, left=remaining: left.pop(0), 2)
        best, behind = search.trials()
        assert [(trial.state, len(trial.trainings)) for trial in (best, behind)] == [("complete", 4), ("raced", 1)]
        assert search.known_trainings() == [spec.fingerprint for spec in (*search.specs(best), search.specs(behind)[0])]
        assert search.found_hyperparameters() == best.setting
        assert [[job.spec.fold for job in jobs] for jobs in steps] == [[0], [1], [2], [3], [0]]
    assert searches[0].skipped() == 6, "three folds in each of the two searches"


def test_a_trial_that_is_not_behind_is_trained_on_all_folds(setup):
    study = study_of(setup, racing=True)
    finish(study, lambda margin, fold: 0.5, 4)
    assert [trial.state for trial in study.trials()] == ["complete"] * 4
    assert study.skipped() == 0


def test_each_search_is_kept_under_one_of_the_names(setup):
    log = TrialsInMemory()
    study = study_of(setup, log, trials=1, searches=3)
    for search in study.searches:
        finish(search, lambda margin, fold: 0.5, 1)
    assert list(log.studies) == [search.name for search in study.searches]
    assert len(log.studies) == 3
    assert study_of(setup, ranges={}).name is None
