"""A search of 50 trials: the suite's asks, with its stored trials, beside the same sampler of Optuna alone."""

import tempfile
import time
from pathlib import Path

import optuna

from protocols.search.optuna_search import Search
from protocols.search.space import SearchParameter
from results.spec.search_settings import SamplerSettings
from tests.benchmarks.bench_rows import BenchRow
from tests.support.sample_records import some_result, some_spec

TRIALS = 50
SPACE = (
    SearchParameter(target="loss.pos_margin", scale="linear", low=0.0, high=1.0),
    SearchParameter(target="loss.neg_margin", scale="linear", low=0.0, high=1.0),
)


def score(setting: dict[str, float]) -> float:
    """A smooth score with one maximum."""
    return 0.5 - (setting["loss.pos_margin"] - 0.3) ** 2 - (setting["loss.neg_margin"] - 0.6) ** 2


def ours(folder: Path, number: int) -> float:
    """Seconds of a search with the suite's search in a database, without the time of trainings."""
    storage = optuna.storages.RDBStorage(f"sqlite:///{folder}/{number}.sqlite")
    search = Search(storage, "bench", {"number": number}, SPACE, SamplerSettings(), number)
    result = some_result(some_spec())
    started = time.perf_counter()
    for _ in range(TRIALS):
        trial = search.ask()
        value = score({name: float(str(given)) for name, given in trial.hyperparameters.items()})
        search.tell(trial, [result.model_copy(update={"best_map_at_r": value})] * 4)
    seconds = time.perf_counter() - started
    assert search.trials_told() == TRIALS
    return seconds


def usual(folder: Path, number: int) -> float:
    """Seconds of the same search with Optuna alone, in a database too."""
    settings = SamplerSettings()
    sampler = optuna.samplers.GPSampler(
        seed=number,
        n_startup_trials=settings.startup_trials,
        deterministic_objective=settings.deterministic_objective,
    )
    storage = f"sqlite:///{folder}/optuna_{number}.sqlite"
    study = optuna.create_study(storage=storage, direction="maximize", sampler=sampler)
    started = time.perf_counter()
    for _ in range(TRIALS):
        trial = study.ask({parameter.target: parameter.distribution() for parameter in SPACE})
        study.tell(trial, score({name: float(value) for name, value in trial.params.items()}))
    seconds = time.perf_counter() - started
    assert len(study.trials) == TRIALS
    return seconds


def measure(rounds: int) -> list[BenchRow]:
    """Measure whole searches in turn.

    Args:
        rounds: Number of rounds.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pairs = [(ours(folder, number), usual(folder, number)) for number in range(rounds + 1)][1:]
    name = f"search of {TRIALS} trials in a database / Optuna's sampler alone"
    equal = "both tell 50 trials of the same function, with the same sampler and number of first trials"
    return [BenchRow(name, [pair[0] for pair in pairs], [pair[1] for pair in pairs], "at most 1.5", equal)]
