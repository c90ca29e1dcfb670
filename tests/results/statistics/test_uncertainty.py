"""The sources of uncertainty on simulated differences whose truth is known."""

import numpy as np
import pytest
from scipy import stats

from results.statistics.uncertainty import uncertainty, uncertainty_of_pairs
from tests.support.page_material import values, with_classes

REPEATS = 1200
CLASSES = 60
STANDARD_ERRORS = 3 * (0.05 * 0.95 / REPEATS) ** 0.5


class World:
    """Two methods with known variances. Runs and searches of equal numbers share half of their variance if matched."""

    def __init__(self, seed, *, of_run=0.006, of_class=0.03, of_rest=0.02, of_search=0.0, matched=True):
        self.rng = np.random.default_rng(seed)
        self.of_run, self.of_class, self.of_rest, self.of_search = of_run, of_class, of_rest, of_search
        self.matched = matched

    def draw(self, runs, searches=1, fixed_classes=None):
        """Class scores of methods a and b; b is 0.02 lower."""
        classes = self.rng.normal(0, self.of_class, (2, CLASSES)) if fixed_classes is None else fixed_classes
        a, b = {}, {}
        for search in range(searches):
            effects = self.rng.normal(0, self.of_search, 2)
            for run in range(runs):
                shared = self.rng.normal(0, self.of_run) if self.matched else 0.0
                for number, (scores, mean) in enumerate(((a, 0.32), (b, 0.30))):
                    own = self.rng.normal(0, self.of_run) + self.rng.normal(0, self.of_rest, CLASSES)
                    key = (search, run if self.matched else 1000 * number + run)
                    scores[key] = mean + effects[number] + shared + classes[number] + own
        return a, b


def covered(draws, source, truth=0.02, queries=None):
    hits = 0
    for a, b in draws:
        weights = np.ones(CLASSES) if queries is None else queries
        budget = uncertainty(("a", "b"), a, b, weights)
        hits += abs(budget.difference - truth) <= getattr(budget, source)
    return hits / len(draws)


@pytest.mark.long
@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize("runs", [3, 10])
def test_all_together_covers_the_difference_over_new_runs_and_new_classes(runs, matched):
    world = World(runs, matched=matched)
    draws = [world.draw(runs) for _ in range(REPEATS)]
    # With three runs the wider half width counts, so the coverage is a little higher.
    assert 0.95 - STANDARD_ERRORS <= covered(draws, "together") <= 0.985
    # Each source alone promises too much here.
    assert covered(draws, "runs") < 0.95 - STANDARD_ERRORS
    assert covered(draws, "classes") < covered(draws, "together")


def test_runs_alone_cover_the_difference_on_the_same_classes():
    world = World(1)
    classes = world.rng.normal(0, world.of_class, (2, CLASSES))
    truth = 0.02 + float((classes[0] - classes[1]).mean())
    draws = [world.draw(3, fixed_classes=classes) for _ in range(REPEATS)]
    assert covered(draws, "runs", truth) == pytest.approx(0.95, abs=STANDARD_ERRORS)


def test_classes_alone_cover_the_difference_of_runs_that_do_not_vary():
    world = World(2, of_run=0.0, of_rest=0.0)
    draws = [world.draw(2) for _ in range(REPEATS)]
    assert covered(draws, "classes") == pytest.approx(0.95, abs=STANDARD_ERRORS)
    assert covered(draws, "together") == pytest.approx(0.95, abs=STANDARD_ERRORS)


def test_repeated_searches_belong_to_the_sum():
    world = World(4, of_search=0.015)
    draws = [world.draw(3, searches=4) for _ in range(REPEATS)]
    assert 0.95 - STANDARD_ERRORS <= covered(draws, "together") <= 0.985
    assert covered(draws, "runs") < 0.7
    budgets = [uncertainty(("a", "b"), a, b, np.ones(CLASSES)) for a, b in draws[:200]]
    # sqrt(2) for two methods; four searches.
    expected = stats.t.ppf(0.975, 3) * 0.015 * np.sqrt(2 / 4)
    assert np.sqrt(np.mean([budget.search**2 for budget in budgets])) == pytest.approx(expected, rel=0.15)


def test_unequal_numbers_of_queries_are_weights():
    world = World(5)
    queries = world.rng.integers(5, 60, CLASSES).astype(float)
    draws = [world.draw(3) for _ in range(REPEATS)]
    assert 0.95 - STANDARD_ERRORS <= covered(draws, "together", queries=queries) <= 0.985


def test_the_sources_of_a_small_example():
    """Two matched runs, two classes: all half widths by hand."""
    a = {(0, run): np.array(row) for run, row in enumerate([[0.5, 0.3], [0.6, 0.2]])}
    b = {(0, run): np.zeros(2) for run in range(2)}
    budget = uncertainty(("a", "b"), a, b, np.array([1.0, 1.0]))
    quantile = stats.t.ppf(0.975, 1)
    assert budget.paired
    assert (budget.difference, budget.runs, budget.search) == (pytest.approx(0.4), pytest.approx(0.0, abs=1e-12), None)
    # The classes' means are 0.55 and 0.25; the variance of their mean is 0.045 / 2.
    assert budget.classes == pytest.approx(quantile * np.sqrt(0.0225))
    assert budget.together == pytest.approx(budget.classes)


def test_a_method_without_a_search_is_not_matched_with_one_search_of_another():
    world = World(6, of_search=0.015)
    a, _ = world.draw(3, searches=2)
    b = world.draw(3)[1]
    budget = uncertainty(("a", "b"), a, b, np.ones(CLASSES))
    assert not budget.paired
    assert budget.difference == pytest.approx(np.mean(list(a.values())) - np.mean(list(b.values())))
    assert budget.search > 0


def test_too_few_runs_or_classes_leave_their_source_out():
    one = {(0, 0): np.array([0.5, 0.3])}
    budget = uncertainty(("a", "b"), one, one, np.ones(2))
    assert (budget.runs, budget.together, budget.paired) == (None, None, False)
    assert budget.classes == 0.0
    single = {(0, run): np.array([0.5 + run]) for run in range(2)}
    other = {(0, run): np.array([0.3]) for run in range(2)}
    assert uncertainty(("a", "b"), single, other, np.ones(1)).classes is None


def test_every_pair_of_methods_has_a_budget():
    runs = {key: with_classes(own, (0.0, 0.01, 0.03, 0.0)) for key, own in values(a=[0.5, 0.6], b=[0.4, 0.45]).items()}
    (budget,) = uncertainty_of_pairs(runs)
    assert (budget.a, budget.b, budget.paired) == ("a", "b", True)
    assert budget.difference == pytest.approx((0.55 - 0.425) / 4, abs=1e-6)
    with pytest.raises(ValueError, match="without class scores"):
        uncertainty_of_pairs(values(a=[0.5, 0.6], b=[0.4, 0.45]))


def test_classes_must_be_the_same_and_without_queries_do_not_count():
    full = with_classes(values(a=[0.5, 0.6])["a"], (0.0, 0.01, 0.03, 0.0))
    others = [run.class_scores.model_copy(update={"queries": (9, 9, 9, 8)}) for run in full]
    other = [run.model_copy(update={"class_scores": one}) for run, one in zip(full, others, strict=True)]
    with pytest.raises(ValueError, match="b was tested on other classes than the first run"):
        uncertainty_of_pairs({"a": full, "b": other})
    with pytest.raises(ValueError, match="was tested on other classes than the first run"):
        uncertainty_of_pairs({"a": [full[0], other[1]]})
    rows = {(0, run): np.array([0.5 + run, 0.3, 0.9]) for run in range(2)}
    less = {key: row[:2] for key, row in rows.items()}
    whole = uncertainty(("a", "b"), rows, rows, np.array([1.0, 2.0, 0.0]))
    assert whole == uncertainty(("a", "b"), less, less, np.array([1.0, 2.0]))


@pytest.mark.long
@pytest.mark.parametrize("searches", [1, 4])
def test_all_together_covers_the_difference_from_a_method_without_randomness(searches):
    world = World(6, of_search=0.01 if searches > 1 else 0.0)
    draws = []
    for _ in range(REPEATS):
        a, _ = world.draw(3, searches)
        # Nothing in b varies with a run, so all of its deviation belongs to the classes.
        draws.append((a, dict.fromkeys(a, world.rng.normal(0.30, world.of_class, CLASSES))))
    assert 0.95 - STANDARD_ERRORS <= covered(draws, "together") <= 0.985
    budget = uncertainty(("a", "b"), *draws[0], np.ones(CLASSES))
    assert budget.paired
    assert (budget.search is None) == (searches == 1)


def test_a_method_without_randomness_has_the_runs_of_the_others():
    runs = {
        "a": with_classes(values(a=[0.5, 0.6, 0.7])["a"], (0.0, 0.01, 0.03, 0.0)),
        "b": with_classes(values(b=[0.4])["b"], (0.02, 0.01, 0.0, 0.0)),
    }
    (too_few,) = uncertainty_of_pairs(runs)
    assert (too_few.runs, too_few.together) == (None, None)
    (budget,) = uncertainty_of_pairs(runs, constant=["b"])
    assert budget.runs == pytest.approx(stats.t.ppf(0.975, 2) * 0.1 / 4 / np.sqrt(3), abs=1e-6)
    assert budget.together >= max(budget.runs, budget.classes)
    assert budget.classes == pytest.approx(too_few.classes)
