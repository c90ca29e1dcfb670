"""`python -m tests.benchmarks.same_method`: counts how often a method is called different from itself.

It reads the kept record of an experiment whose only method was searched repeatedly, writes the counts and the
components of variance to results/measured, and draws them for the docs. To measure the record anew::

    python -m reproduce run same_method_frozen_cub200 --data CUB_200_2011 --subset
    python -m reproduce table same_method_frozen_cub200 --format json \\
        > results/measured/same_method_frozen_cub200_subset.json

`python -m tests.benchmarks.kept_tables` then draws the docs' tables.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from reports.figures.style import svg_of
from results.records.records import RunRecord
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.statistics.method_comparison import ALPHA
from results.statistics.primary_comparison import primary_score
from results.statistics.run_values import SearchKey, by_search, values_by_run
from results.store.experiment_results import FOLDER, MeasuredExperiment
from results.whole_files import write_whole
from tests.benchmarks.same_method_counts import search_variance_interval, variance_components, wrong_calls
from tests.benchmarks.same_method_figure import same_method_figure

SEARCHES = (1, 2, 3, 4, 6)
"""Searches on each side."""

RUNS = 10
"""Runs of a setting by MLRC's protocol."""

RECORD = FOLDER / "same_method_frozen_cub200_subset.json"
COUNTS = FOLDER / "same_method.json"
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "same_method.svg"


def main() -> None:
    """Count, write the file, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, default=RECORD, help="kept record")
    parser.add_argument("--out", type=Path, default=COUNTS)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    arguments = parser.parse_args()
    measured = MeasuredExperiment.from_json(arguments.record.read_text(encoding="utf-8"))
    score = primary_score(measured)
    (values,) = values_by_run(measured.records, score.metric, score.embeddings).values()
    runs = by_search(values)
    odd = max(runs, key=lambda search: np.var(runs[search]))
    others = {search: values for search, values in runs.items() if search != odd}
    calls = [wrong_calls(runs, count) for count in SEARCHES if 2 * count <= len(runs)]
    title = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}"
    content = {
        "record": arguments.record.name,
        "score": title,
        "searches": len(runs),
        "runs_of_each_search": len(next(iter(runs.values()))),
        "alpha": ALPHA,
        "margin": score.margin / 100,
        "means_of_searches": [float(np.mean(values)) for values in runs.values()],
        "variation": _variation(runs, measured.records, score),
        "without_the_search_whose_runs_vary_most": {
            "search": odd.search,
            "variation": _variation(others, [run for run in measured.records if run.search != odd.search], score),
        },
        "wrong_calls": [asdict(call) for call in calls],
    }
    write_whole(arguments.out, json.dumps(content, indent=1) + "\n")
    write_whole(arguments.figure, svg_of(same_method_figure(list(runs.values()), calls, ALPHA, title)))
    print(json.dumps(content["variation"]))
    for call in calls:
        print(f"{call.searches} searches on each side: {json.dumps(call.shares)}")


def _variation(
    runs: Mapping[SearchKey, Sequence[float]], records: Sequence[RunRecord], score: PrimaryScore
) -> dict[str, Any]:
    """Standard deviations, and the difference of two such methods, searched once each, that 5 % of pairs exceed."""
    components = variance_components(runs, records, score.metric, score.embeddings)
    of_a_mean = components.search + components.run / RUNS
    return {
        "standard_deviations": {name: variance**0.5 for name, variance in components._asdict().items()},
        "search_deviation_interval": [variance**0.5 for variance in search_variance_interval(runs)],
        "difference_by_chance": float(stats.norm.isf(ALPHA / 2)) * (2 * of_a_mean) ** 0.5,
    }


def counts_markdown() -> str:
    """Return the kept counts and components as two tables in Markdown."""
    content = json.loads(COUNTS.read_text(encoding="utf-8"))
    left_out = content["without_the_search_whose_runs_vary_most"]
    of_all, of_others = (_variation_cells(found["variation"]) for found in (content, left_out))
    tests = list(content["wrong_calls"][0]["shares"])
    sources = (
        f"| {content['score']}, points | all {content['searches']} searches | without search {left_out['search']} |",
        "|---|--:|--:|",
        *(f"| {what} | {all_searches} | {of_others[what]} |" for what, all_searches in of_all.items()),
    )
    counts = (
        f"| searches on each side | splits | {' | '.join(tests)} | called equal by the comparison |",
        f"|--:|--:|{'--:|' * len(tests)}--:|",
        *(_counted(call, tests) for call in content["wrong_calls"]),
    )
    return "\n".join([*sources, "", *counts])


def _variation_cells(variation: Mapping[str, Any]) -> dict[str, str]:
    deviations = {name: f"{100 * value:.2f}" for name, value in variation["standard_deviations"].items()}
    low, high = (f"{100 * end:.2f}" for end in variation["search_deviation_interval"])
    return {
        "standard deviation between searches: of the expected score of the setting found": (
            f"{deviations['search']} ({low} to {high})"
        ),
        "standard deviation between runs of one setting": deviations["run"],
        "standard deviation over choices of test classes": deviations["classes"],
        f"difference of two equally good methods in 5 % of cases, one search and {RUNS} runs each: at least": (
            f"{100 * variation['difference_by_chance']:.2f}"
        ),
    }


def _counted(call: dict[str, Any], tests: Sequence[str]) -> str:
    shares = [f"{100 * call['shares'][test]:.0f} %" for test in tests]
    cells = [f"{call['searches']}", f"{call['splits']:,}", *shares, f"{100 * call['equal']:.0f} %"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
