"""The rule of racing: by hand, at its edges, and its error rate on scores whose truth is known."""

import json

import numpy as np
import pytest
from scipy import stats

from protocols.search.racing import ASSUMED_DEVIATION, LEVEL, RACING_VERSION, Race
from results.records.trials import Trial
from results.store.experiment_results import FOLDER

BEST = (0.50, 0.40, 0.52, 0.42)
WORSE = (0.41, 0.30, 0.41, 0.31)


def test_the_first_trial_gets_all_folds_one_with_all_is_complete_and_one_as_bad_as_the_best_is_not_behind():
    assert not Race(()).is_behind([0.0])
    assert not Race((BEST,)).is_behind([0.0] * 4)
    assert not Race(((0.0,) * 4,)).is_behind([0.0])


def test_a_race_is_against_the_trials_that_were_trained_on_all_folds_to_the_end():
    complete = Trial(number=0, setting={}, state="complete", score=0.4, fold_scores=(0.5, 0.3))
    others = [
        {"state": "raced", "fold_scores": (0.2,)},
        {"score": 0.0, "fold_scores": (0.9, 0.0), "reason": "loss not finite"},
        {"state": "running", "score": None},
        {"state": "failed", "score": None, "reason": "refused"},
    ]
    assert Race.against([complete, *(complete.model_copy(update=one) for one in others)]).complete == ((0.5, 0.3),)


def test_with_one_complete_trial_the_bound_comes_from_the_assumed_deviation():
    deviation = ASSUMED_DEVIATION * np.mean(BEST)
    bound = stats.t.ppf(1 - LEVEL, 3) * deviation * np.sqrt(2 * (1 / 1 - 1 / 4))
    race = Race((BEST,))
    assert race.is_behind([BEST[0] - bound - 1e-6])
    assert not race.is_behind([BEST[0] - bound + 1e-6])


def test_the_bound_narrows_with_every_fold():
    race, behind = Race((BEST, WORSE)), 0.06
    scores = [score - behind for score in BEST]
    assert [race.is_behind(scores[:count]) for count in (1, 2, 3)] == [False, True, True]


def test_complete_trials_that_agree_narrow_the_bound():
    alike = tuple(score - 0.05 for score in BEST)
    scores = [BEST[0] - 0.09]
    assert not Race((BEST,)).is_behind(scores)
    assert Race((BEST, alike, alike)).is_behind(scores)


def test_an_easy_fold_gives_no_advantage():
    # The first fold is easy for everybody. The trial's own mean, 0.30, would hide that it is 0.20 behind.
    expected = Race((BEST,)).expected([0.30])
    assert expected == pytest.approx(np.mean(BEST) - 0.20)
    assert expected < 0.30


def test_the_expected_score_of_a_trial_that_is_behind_is_below_the_best_and_not_negative():
    race = Race((BEST, WORSE))
    assert race.expected([0.0]) == 0.0
    for count in (1, 2, 3):
        scores = [score - 0.15 for score in BEST[:count]]
        assert race.is_behind(scores)
        assert 0 < race.expected(scores) < np.mean(BEST)


def test_of_equal_trials_the_earlier_is_the_best():
    assert Race((BEST, BEST[::-1])).best == BEST


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_a_trial_as_good_as_the_best_is_rarely_called_behind(noise):
    """Truth: fold effects, equal noise, and four complete trials. The next trial is as good as the best of them."""
    generator, wrong, searches = np.random.default_rng(0), 0, 400
    for _ in range(searches):
        folds = 0.5 + generator.normal(0, 0.05, 4)
        values = folds + np.array([0, -0.1, -0.2, -0.1])[:, None] + generator.normal(0, noise, (4, 4))
        race = Race(tuple(map(tuple, values)))
        # As good as the best means: its mean over all folds is that of the best.
        scores = folds + generator.normal(0, noise, 4)
        scores += np.mean(race.best) - scores.mean()
        wrong += any(race.is_behind(scores[:count]) for count in (1, 2, 3))
    # LEVEL after each of three folds; the looks depend on each other, so together they stay well below three times it.
    assert wrong / searches < 2.5 * LEVEL


def test_the_record_says_what_a_replay_of_its_searches_gives():
    record = json.loads((FOLDER / "racing.json").read_text())
    trained = total = changed = 0
    for search in record["searches"]:
        scores = search["fold_scores"]
        race = Race(())
        for folds in scores:
            count = next((k for k in (1, 2, 3) if race.is_behind(folds[:k])), 4)
            trained, total = trained + count, total + 4
            if count == 4:
                race = Race((*race.complete, tuple(folds)))
        best = max(np.mean(folds) for folds in race.complete)
        changed += best < max(np.mean(folds) for folds in scores) - 1e-9
    in_order = record["replay"]["in_their_order"]
    assert (trained / total, changed / len(record["searches"])) == pytest.approx(
        (in_order["share_trained"], in_order["winner_changed"])
    )


def test_the_decisions_of_a_kept_search_are_those_of_its_version():
    """How many thousandths a trial may lie behind after 1, 2 and 3 folds in version 1, from the formula by hand."""
    race = Race((BEST, WORSE))
    allowed = [max(d for d in range(500) if not race.is_behind([s - d / 1000 for s in BEST[:k]])) for k in (1, 2, 3)]
    assert (RACING_VERSION, allowed, race.expected([0.3])) == (1, [78, 45, 26], pytest.approx(0.26))
