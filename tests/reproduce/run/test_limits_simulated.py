"""How often verdicts are wrong where ranges are too narrow or trainings too short: searches on surfaces of known truth.

`python -m tests.reproduce.run.test_limits_simulated` prints the counts of more worlds.
"""

import math
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from results.answer.answer_question import early_answer
from tests.support.surfaces import noise, run_surface, surface_file

OPEN = (("loss.alpha", 0), ("loss.alpha", 1), ("loss.margin", 1), ("loss_optimizer.lr", 1))
"""Ends of Proxy-Anchor's ranges that are no limit of the loss: the hyperparameter, and 0 for the low end."""

DEVIATION, CURVATURE = 0.005, 0.06
DEVIATION_OF_FOLDS = 0.028
"""Of one training, so that searches, means over two folds, vary by 2 points, as in `search_variance_glyphs`."""

RANGES = {
    "proxy_anchor": {
        "loss_optimizer.lr": (1e-5, 1, True),
        "loss.alpha": (8, 128, True),
        "loss.margin": (0, 0.5, False),
    },
    "normalized_softmax": {"loss_optimizer.lr": (1e-6, 1, True), "loss.temperature": (0.01, 100, True)},
}


def held_up(seed: int, gain: float = 0.0):
    """Two losses that are equal at their best settings, or of which the first is better by `gain`.

    The best value of one of its hyperparameters lies up to .8 widths beyond an end.
    """
    draws = np.random.default_rng(seed)
    best = {(method, target): draws.uniform(0.15, 0.85) for method, ranges in RANGES.items() for target in ranges}
    target, side = OPEN[draws.integers(len(OPEN))]
    best["proxy_anchor", target] = side + (1 if side else -1) * draws.uniform(0, 0.8)

    def surface(method, spec):
        values = spec.method.values_of(RANGES[method])
        score = 0.4 + noise(spec, DEVIATION) + (gain if method == "proxy_anchor" else 0.0)
        for name, (low, high, log) in RANGES[method].items():
            value, ends = float(values[name]), (low, high)
            if log:
                value, ends = math.log(value), (math.log(low), math.log(high))
            score -= CURVATURE * ((value - ends[0]) / (ends[1] - ends[0]) - best[method, name]) ** 2
        return max(score, 0.01)

    return surface


def verdicts(folder: Path, seed: int, gain: float) -> dict[str, str | None]:
    """Which loss each policy calls better: as before, no verdict against an open end, probed, and with more trials."""
    surface, search = held_up(seed, gain), {"searches": 3, "trials": 12}
    pair = run_surface(folder, surface_file(search, seed), surface)[0].answer.pairs[0]
    probed = run_surface(folder, surface_file({**search, "probe_ends": True}, seed), surface)[0].answer.pairs[0]
    more = run_surface(folder, surface_file({**search, "trials": 24}, seed), surface)[0].answer.pairs[0]
    return {
        "as before": pair.better or pair.ahead,
        "more trials": more.better or more.ahead,
        "no verdict against an open end": pair.better,
        "probed": probed.better,
    }


def counted_verdicts(seeds: range, gain: float) -> Counter[tuple[str, str | None]]:
    found: Counter[tuple[str, str | None]] = Counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            found.update(verdicts(Path(folder), seed, gain).items())
    return found


def of_speed(folder: Path, seed: int, slow: float) -> tuple[str | None, str | None]:
    """The better one after 400 steps and after 1,600, of two losses that end equal; one learns more slowly."""
    speeds = {"proxy_anchor": 290.0, "normalized_softmax": slow}

    def surface(method, spec):
        training = spec.conditions.training
        steps = training.max_epochs * training.iterations_per_epoch
        return 0.5 * (1 - math.exp(-steps / speeds[method])) + noise(spec, DEVIATION_OF_FOLDS)

    content = surface_file({"searches": 3, "trials": 2}, seed, "reproduction_epochs: 160")
    content = content.replace("max_epochs: 4", "max_epochs: 40")
    found = run_surface(folder, content, surface)[0].answer
    early = early_answer(found)
    assert early is not None
    return early.pairs[0].better, found.pairs[0].better


@pytest.mark.long
def test_probing_ends_calls_few_equal_losses_better_and_finds_a_better_one():
    equal, better = counted_verdicts(range(12), 0.0), counted_verdicts(range(12), 0.03)
    wrong = {policy: sum(count for (of, who), count in equal.items() if of == policy and who) for policy in _policies()}
    assert wrong["probed"] <= 1
    assert wrong["no verdict against an open end"] <= 1
    assert wrong["more trials"] > 3, "what more trials in the same range do"
    assert better["probed", "normalized_softmax"] == 0
    assert better["probed", "proxy_anchor"] > better["as before", "proxy_anchor"]


@pytest.mark.long
def test_a_slower_loss_is_no_worse_one_at_the_end(tmp_path):
    # Of 60 such worlds 56 and 4.
    found = [of_speed(tmp_path, seed, 500.0) for seed in range(20)]
    assert sum(early == "proxy_anchor" for early, _ in found) >= 15
    assert sum(late is not None for _, late in found) <= 5


def _policies() -> list[str]:
    return ["as before", "more trials", "no verdict against an open end", "probed"]


if __name__ == "__main__":
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 42
    for gain in (0.0, 0.03):
        found = counted_verdicts(range(worlds), gain)
        for policy in _policies():
            of = {who: found[policy, who] for who in ("proxy_anchor", "normalized_softmax", None)}
            print(f"gain {gain}: {policy}: {of}", flush=True)
    for slow in (290.0, 380.0, 500.0):
        with tempfile.TemporaryDirectory() as folder:
            pairs = [of_speed(Path(folder), seed, slow) for seed in range(worlds)]
        print(f"slow {slow}: early {sum(e is not None for e, _ in pairs)}, end {sum(e is not None for _, e in pairs)}")
