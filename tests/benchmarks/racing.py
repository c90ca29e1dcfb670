"""`make bench-racing`: what racing saves, and how often and by how much it changes the winner of a search.

Two parts. The replay takes complete trials of real searches and races them, in their order and in random orders of
trials and folds. A replay cannot show what the sampler would have proposed after a raced trial. So the simulation runs
whole searches, with the suite's sampler, on scores whose true values are known.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from protocols.search.proposals import Proposals
from protocols.search.space import SearchParameter
from results.records.provenance import provenance
from results.records.trials import Trial, mean_of
from results.spec.mlrc_constants import FOLDS
from results.spec.racing import Race
from results.spec.search_settings import SamplerSettings
from results.store.experiment_results import FOLDER
from results.store.store import Store
from results.values import fingerprint_of
from results.whole_files import write_whole

OUT = FOLDER / "racing.json"
FEWEST_TRIALS = 6
ORDERS = 200
"""Random orders of each real search."""

NOISE = (0.03, 0.06, 0.12)
"""Simulated deviations of a fold's score, as fractions of the best true score. Real searches on glyphs have 0.04 to
0.15."""

Array = npt.NDArray[np.float64]
Tell = Callable[[Race, Sequence[float]], float]
TOLD: dict[str, Tell | None] = {
    "all folds": None,
    "raced, told the expected score": lambda race, scores: race.expected(scores),
    "raced, told the mean of its folds": lambda race, scores: float(np.mean(scores)),
}
SPACE = tuple(SearchParameter(target=name, scale="linear", low=0.0, high=1.0) for name in ("a", "b"))


def stored_searches(url: str) -> Iterator[dict[str, Any]]:
    """Read the fold scores of the complete searches of a store that were not raced."""
    store = Store(url, Path(), only_read=True)
    studies = {
        study.fingerprint: study
        for experiment in store.experiments()["fingerprint"].astype(str)
        for study in store.searches.of_experiment(experiment).values()
    }
    for study in studies.values():
        scores = [trial.fold_scores for trial in study.trials if trial.state == "complete"]
        if FEWEST_TRIALS <= len(scores) == len(study.trials) and all(len(folds) == FOLDS for folds in scores):
            name = f"{study.identity['dataset']}/{study.identity['method']['name']}"
            yield {"search": name, "seed": study.identity["seed"], "fold_scores": np.round(scores, 6).tolist()}


@dataclass(frozen=True)
class RacedTrial:
    """One trial of a raced search.

    Attributes:
        folds: Number of folds that it was trained on.
        score: Its mean over all folds, or the expected score of a trial that got no more folds.
        complete: Whether it was trained on all folds. Only then it can be the best trial.
    """

    folds: int
    score: float
    complete: bool


def raced(trials: Sequence[Sequence[float]], folds: int) -> list[RacedTrial]:
    """Race trials in order.

    `trials` are scores by trial and fold, fractions of 1. Scores behind the fold of a stop are ignored. A trial that
    lacks the score of a fold that it needs is a ValueError.
    """
    outcomes: list[RacedTrial] = []
    race = Race(())
    for number, scores in enumerate(trials):
        count = next((k for k in range(1, folds) if len(scores) >= k and race.is_behind(scores[:k])), folds)
        if len(scores) < count:
            raise ValueError(f"trial {number} has {len(scores)} of the {count} folds that it needs")
        if count < folds:
            outcomes.append(RacedTrial(count, race.expected(scores[:count]), complete=False))
        else:
            outcomes.append(RacedTrial(folds, float(np.mean(scores)), complete=True))
            race = Race((*race.complete, tuple(scores)))
    return outcomes


def replay(scores: Array) -> dict[str, float]:
    """Race the complete trials of a search: share of trainings, and what the raced winner lacks to the full one's."""
    outcome = raced(scores.tolist(), scores.shape[1])
    winner = max((trial.score, -number) for number, trial in enumerate(outcome) if trial.complete)
    return {
        "trained": sum(trial.folds for trial in outcome) / scores.size,
        "lost": float(scores.mean(axis=1).max() - winner[0]),
    }


def replays(searches: list[dict[str, Any]]) -> dict[str, Any]:
    """Replay searches in their order, and in random orders of trials and folds."""
    generator = np.random.default_rng(0)
    all_scores = [np.array(search["fold_scores"]) for search in searches]
    shuffled = [
        scores[generator.permutation(len(scores))][:, generator.permutation(FOLDS)]
        for scores in all_scores
        for _ in range(ORDERS)
    ]
    return {
        "searches": len(searches),
        "trials": sum(len(scores) for scores in all_scores),
        "trainings": sum(scores.size for scores in all_scores),
        "in_their_order": _summary(all_scores),
        "random_orders": {"orders": ORDERS, **_summary(shuffled)},
    }


def _summary(all_scores: list[Array]) -> dict[str, float]:
    outcomes = [replay(scores) for scores in all_scores]
    lost = np.array([outcome["lost"] for outcome in outcomes])
    sizes = [scores.size for scores in all_scores]
    return {
        "share_trained": float(np.average([outcome["trained"] for outcome in outcomes], weights=sizes)),
        "winner_changed": float((lost > 1e-9).mean()),
        "mean_lost": float(lost.mean()),
        "most_lost": float(lost.max()),
    }


def simulated_search(told: Tell | None, noise: float, trials: int, seed: int) -> dict[str, float]:
    """Run one search whose true scores are known: a hill over two hyperparameters, with harder and easier folds."""
    generator = np.random.default_rng(seed)
    top, width = generator.uniform(0.2, 0.8, 2), generator.uniform(0.15, 0.35)
    folds = generator.normal(0, 0.08, FOLDS)
    proposals = Proposals(fingerprint_of({"seed": seed}), SPACE, SamplerSettings(), seed)
    true, trained, finished = [], 0, list[Trial]()
    for number in range(trials):
        setting = proposals.next(finished)
        race = Race(tuple(trial.fold_scores for trial in finished if trial.state == "complete"))
        distance = np.sum((np.array([setting[p.target] for p in SPACE], dtype=float) - top) ** 2)
        true.append(0.5 * float(np.exp(-distance / (2 * width**2))))
        drawn = np.random.default_rng([seed, number]).normal(0, noise * 0.5, FOLDS)
        scores = np.clip(true[-1] * (1 + folds - folds.mean()) + drawn, 0, 1).tolist()
        behind = (k for k in range(1, FOLDS) if told is not None and race.is_behind(scores[:k]))
        count = next(behind, FOLDS)
        is_raced = told is not None and count < FOLDS
        finished.append(
            Trial(
                number=number,
                setting=setting,
                state="raced" if is_raced else "complete",
                score=told(race, scores[:count]) if told is not None and is_raced else mean_of(scores),
                fold_scores=tuple(scores[:count]),
                trainings=tuple(f"fold {fold}" for fold in range(count)),
            )
        )
        trained += count
    winner = max((trial for trial in finished if trial.state == "complete"), key=lambda trial: trial.score or 0.0)
    return {"trained": trained / (trials * FOLDS), "winner": true[winner.number] / 0.5}


def simulations(trials: int, searches: int) -> list[dict[str, Any]]:
    """Run simulated searches at each level of noise, each with all folds and raced, from equal seeds."""
    outcomes = []
    for noise in NOISE:
        by_kind = {
            kind: [simulated_search(told, noise, trials, seed) for seed in range(searches)]
            for kind, told in TOLD.items()
        }
        full = np.array([search["winner"] for search in by_kind["all folds"]])
        for kind, runs in by_kind.items():
            winners = np.array([search["winner"] for search in runs])
            gains = winners - full
            outcomes.append(
                {
                    "noise": noise,
                    "kind": kind,
                    "share_trained": float(np.mean([search["trained"] for search in runs])),
                    "winner_of_the_best_possible": float(winners.mean()),
                    "difference_to_all_folds": float(gains.mean()),
                    "standard_error": float(gains.std(ddof=1) / np.sqrt(searches)),
                }
            )
            print(outcomes[-1], flush=True)
    return outcomes


def main() -> None:
    """Replay the searches of stores or of the kept record, simulate searches, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="append", default=[], help="SQLAlchemy URL; by default the record's searches")
    parser.add_argument("--trials", type=int, default=50, help="trials of a simulated search")
    parser.add_argument(
        "--searches", type=int, default=20, help="simulated searches of each kind; 0 keeps the record's"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    content = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    if arguments.store:
        content["searches"] = [search for url in arguments.store for search in stored_searches(url)]
    content["replay"] = replays(content["searches"])
    if arguments.searches:
        outcomes = simulations(arguments.trials, arguments.searches)
        content["simulation"] = {"trials": arguments.trials, "searches": arguments.searches, "outcomes": outcomes}
    content["provenance"] = provenance("cpu", 1).model_dump(mode="json")
    order = ("replay", "simulation", "provenance", "searches")
    write_whole(arguments.out, json.dumps({key: content[key] for key in order}, indent=1) + "\n")
    print(f"written: {arguments.out}")


if __name__ == "__main__":
    main()
