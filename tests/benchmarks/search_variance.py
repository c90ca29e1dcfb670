"""`python -m tests.benchmarks.search_variance`: how much a search varies, from the kept records with repeated searches.

It reads every record of `results/measured` whose methods were searched three times or more, and writes
`results/measured/search_variance.json`, its figure, and `results/statistics/search_deviations.csv`, which the product
reads. The first k trials of a search are a search of k trials. To measure a record anew::

    python -m reproduce run reality_check/glyphs --searches 6 --trials 20
    python -m reproduce table reality_check/glyphs --format json | xz > results/measured/reality_check_glyphs.json.xz
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from reports.figures.style import BLUE, INK, new_figure, styled, svg_of
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.measured_noise import pooled_variance, setting_phrase
from results.statistics.planning import run_deviation, values_of_searches
from results.statistics.primary_comparison import Metric, primary_score
from results.statistics.run_values import EMBEDDING_KINDS, by_search, values_by_run
from results.statistics.search_deviation import FEWEST_DEGREES, FEWEST_TRIALS, repeated_searches, search_deviation
from results.store.experiment_results import FOLDER, MeasuredExperiment
from results.whole_files import write_whole

FEWEST_SEARCHES = 3
FEWEST_OF_A_LOSS = 6
"""Searches from which on the deviation of a single loss is shown."""
BUDGETS = (5, 10, 12, 15, 20, 30, 50)
OUT = FOLDER / "search_variance.json"
DEVIATIONS = Path(__file__).resolve().parents[2] / "results" / "statistics" / "search_deviations.csv"
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "search_variance.svg"


@cache
def kept_measurements() -> tuple[tuple[str, MeasuredExperiment], ...]:
    """Return the experiments in `results/measured` with the names of their files."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.json"))}
    return tuple(
        (f"results/measured/{name}", MeasuredExperiment.from_json(text))
        for name, text in texts.items()
        if '"records"' in text
    )


def kept_deviations() -> pd.DataFrame:
    """Return what `results/statistics/search_deviations.csv` holds, computed from the kept records."""
    scores = [
        PrimaryScore(metric=metric, embeddings=kind) for metric, kind in product(get_args(Metric), EMBEDDING_KINDS)
    ]
    lines = [
        line
        for name, kept in kept_measurements()
        if kept.repeats_searches and kept.searches and kept.summary.trials >= FEWEST_TRIALS
        for score in scores
        if (line := _deviation_line(name, kept, score)) is not None
    ]
    for score, on_features in product(scores, (False, True)):
        settings = [
            runs
            for _, kept in kept_measurements()
            if kept.summary.experiment.conditions.trunk.is_input_features == on_features
            for runs in values_of_searches(kept.records, score)
        ]
        about = {"features": "yes" if on_features else "no", "metric": score.metric, "embeddings": score.embeddings}
        lines.append({"record": "all kept records", **about, "deviation": run_deviation(settings)})
    return pd.DataFrame(lines)


def _deviation_line(name: str, kept: MeasuredExperiment, score: PrimaryScore) -> dict[str, Any] | None:
    found, experiment = search_deviation(kept, score, name), kept.summary.experiment
    if found is None or found.degrees < FEWEST_DEGREES or found.deviation == 0:
        return None
    return {
        "record": name,
        "setting": found.setting,
        "dataset": kept.summary.dataset,
        "trunk": experiment.conditions.trunk.name,
        "features": "yes" if experiment.conditions.trunk.is_input_features else "no",
        "metric": score.metric,
        "embeddings": score.embeddings,
        "trials": found.trials,
        "degrees": found.degrees,
        "deviation": found.deviation,
        "largest": found.largest,
        "shorter": " ".join(map(repr, _shorter(kept, list(repeated_searches(kept, score))))),
    }


def _shorter(kept: MeasuredExperiment, methods: Sequence[str]) -> list[float]:
    """Factors of the deviation for searches of 10 trials, 11 trials, and so on, up to one less than the record's."""

    def best(count: int) -> float:
        scores = [[max(trials[:count]) for trials in _trials(kept, method)] for method in methods]
        return pooled_variance(scores)[0]

    of_all = best(kept.summary.trials)
    lengths = range(FEWEST_TRIALS, kept.summary.trials)
    return [max(1.0, float(np.sqrt(best(count) / of_all))) for count in lengths]


def deviations_text() -> str:
    """Return the CSV file of the kept deviations."""
    return kept_deviations().astype({"trials": "Int64", "degrees": "Int64"}).to_csv(index=False, lineterminator="\n")


class Deviation(NamedTuple):
    """A standard deviation in points with its 95 % interval, for normal values."""

    value: float
    low: float
    high: float
    degrees: int


def deviation_of(samples: Iterable[Sequence[float]]) -> Deviation | None:
    """Pool the deviation within samples of scores; None if no sample has two."""
    variance, degrees = pooled_variance(samples)
    if not degrees:
        return None
    deviation = 100 * float(np.sqrt(variance))
    low, high = (deviation * float(np.sqrt(degrees / stats.chi2.ppf(end, degrees))) for end in (0.975, 0.025))
    return Deviation(deviation, low, high, degrees)


def varied(measured: MeasuredExperiment, score: PrimaryScore) -> dict[str, Any]:
    """Say how much the searches of a record vary, by method and pooled.

    The mean of a search contains the chance of its runs, so the deviation between searches does too; that of the runs
    of one setting stands beside it.
    """
    values = values_by_run(measured.records, score.metric, score.embeddings)
    runs = {
        method: list(by_search(values[method]).values()) for method in values if method in measured.searched_methods
    }
    runs = {method: own for method, own in runs.items() if len(own) >= FEWEST_SEARCHES}
    means = {method: [float(np.mean(search)) for search in own] for method, own in runs.items()}
    trials = {method: _trials(measured, method) for method in runs}
    budgets = [count for count in BUDGETS if count <= measured.summary.trials]
    best = {count: {method: [max(scores[:count]) for scores in trials[method]] for method in runs} for count in budgets}
    gains = {
        f"{few} to {many}": 100
        * float(np.mean([np.mean(best[many][method]) - np.mean(best[few][method]) for method in runs]))
        for few, many in pairwise(budgets)
    }
    return {
        "methods": {
            method: {
                "title": measured.summary.methods[method],
                "means_of_searches": means[method],
                "between_searches": deviation_of([means[method]]),
                "between_runs": deviation_of(runs[method]),
            }
            for method in runs
        },
        "between_searches": deviation_of(means.values()),
        "between_runs": deviation_of(search for own in runs.values() for search in own),
        "p_if_equal_for_all_losses": float(stats.bartlett(*means.values()).pvalue) if len(means) > 1 else None,
        "share_of_the_worst": share_of_the_worst(means.values()),
        "best_validation_score_by_trials": {count: deviation_of(best[count].values()) for count in budgets},
        "gain_of_more_trials": gains,
    }


def _trials(measured: MeasuredExperiment, method: str) -> list[Sequence[float]]:
    return [search.scores for (key, _), search in sorted(measured.searches.items()) if key == method]


def share_of_the_worst(means: Iterable[Sequence[float]], draws: int = 20_000) -> dict[str, float]:
    """Return the mean share of the lowest search in the squares of its method: found, and for normal searches.

    Each method counts alike, whatever its deviation. So unequal deviations of methods do not look like bad searches.
    """
    own = [np.asarray(values) for values in means]

    def share(samples: Iterable[Any]) -> Any:
        centred = [sample - sample.mean(axis=-1, keepdims=True) for sample in samples]
        return np.mean([sample.min(axis=-1) ** 2 / (sample**2).sum(axis=-1) for sample in centred], axis=0)

    generator = np.random.default_rng(0)
    drawn = share(generator.normal(size=(draws, len(values))) for values in own)
    beyond = (1 + int((drawn >= share(own)).sum())) / (1 + len(drawn))
    return {"found": float(share(own)), "normal": float(drawn.mean()), "p_if_normal": beyond}


def kept_variation() -> dict[str, dict[str, Any]]:
    """Return what all kept records with repeated searches say, by the name of the record."""
    found = {}
    for name, measured in kept_measurements():
        if measured.searches and measured.summary.experiment.search.searches >= FEWEST_SEARCHES:
            score = primary_score(measured)
            about = {
                "setting": setting_phrase(measured),
                "score": f"{score.embeddings} {HEADLINE_METRICS[score.metric]}",
                "trials": measured.summary.trials,
            }
            found[Path(name).name.partition(".")[0]] = about | varied(measured, score)
    return found


@styled
def search_variance_figure(found: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw each search's distance from the mean of its method, a panel for each record; grey is the deviation."""
    figure = new_figure(0.6 + sum(0.55 + 0.24 * len(said["methods"]) for said in found.values()))
    heights = [1 + len(said["methods"]) for said in found.values()]
    panels = figure.subplots(len(found), 1, height_ratios=heights, squeeze=False).flat
    for axes, (name, said) in zip(panels, found.items(), strict=True):
        methods = list(said["methods"].values())
        for place, method in enumerate(methods):
            means = 100 * np.asarray(method["means_of_searches"])
            axes.plot(means - means.mean(), [place] * len(means), "o", color=BLUE, markersize=4, alpha=0.75)
        deviation = said["between_searches"].value
        axes.axvspan(-deviation, deviation, color="0.9", zorder=0)
        axes.axvline(0, color=INK, linewidth=0.9)
        axes.set_yticks(range(len(methods)), [method["title"] for method in methods])
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.set_xlabel(f"{said['score']}: points from the mean of the method's searches")
        axes.set_title(f"{name}: {said['trials']} trials", loc="left", fontsize="medium")
    return figure


def search_variance_markdown(numbers: str | None = None) -> str:
    """Return numbers in JSON, by default the kept ones, as tables in Markdown: by record, budget, and loss."""
    found = json.loads(numbers or OUT.read_text(encoding="utf-8"))
    deviations = ["| record | losses | searches × trials | between searches | between runs |", "|---|--:|--:|--:|--:|"]
    shapes = ["| record | p, if losses are equal | lowest's share (if normal) | p, if normal |", "|---|--:|--:|--:|"]
    budgets = ["| record | trials | differ after the first | after all | gain |", "|---|--:|--:|--:|--:|"]
    for name, said in found.items():
        searches, share = _searches(next(iter(said["methods"].values()))), said["share_of_the_worst"]
        cells = [name, str(len(said["methods"])), f"{searches} × {said['trials']}"]
        cells += [_cell(said["between_searches"]), _cell(said["between_runs"])]
        deviations.append(f"| {' | '.join(cells)} |")
        shape = f"{100 * share['found']:.0f} % ({100 * share['normal']:.0f} %)"
        p_values = [_p(value) for value in (said["p_if_equal_for_all_losses"], share["p_if_normal"])]
        shapes.append(f"| {name} | {p_values[0]} | {shape} | {p_values[1]} |")
        budget = list(said["best_validation_score_by_trials"].items())
        (few, before), (many, after) = budget[0], budget[-1]
        gain = sum(said["gain_of_more_trials"].values())
        budgets.append(f"| {name} | {few}, {many} | {_cell(before)} | {_cell(after)} | {gain:+.2f} |")
    return "\n".join([*deviations, "", *shapes, "", *budgets, "", *_by_loss(found)])


def _by_loss(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    many = {
        name: said["methods"]
        for name, said in found.items()
        if len(said["methods"]) > 1 and min(map(_searches, said["methods"].values())) >= FEWEST_OF_A_LOSS
    }
    titles = {key: method["title"] for methods in many.values() for key, method in methods.items()}
    prefix = f"{OUT.stem}_"
    heads = [name.removeprefix(prefix) for name in many]
    rows = [f"| {prefix}... | {' | '.join(heads)} |", f"|---|{'--:|' * len(many)}"]
    for key, title in titles.items():
        cells = [_cell(methods[key]["between_searches"]) if key in methods else "" for methods in many.values()]
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return rows if many else []


def _searches(method: Mapping[str, Any]) -> int:
    return len(method["means_of_searches"])


def _p(value: float | None) -> str:
    return "-" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _cell(deviation: Sequence[float] | None) -> str:
    if deviation is None:
        return "-"
    value, low, high, _ = deviation
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    """Write the numbers and draw the figure."""
    found = kept_variation()
    write_whole(OUT, json.dumps(found, indent=1) + "\n")
    write_whole(DEVIATIONS, deviations_text())
    write_whole(FIGURE, svg_of(search_variance_figure(found)))


if __name__ == "__main__":
    main()
