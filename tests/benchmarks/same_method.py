"""`python -m tests.benchmarks.same_method`: counts how often a method is called different from itself.

It reads the kept record of an experiment whose only method was searched repeatedly, writes the counts and the
components of variance to results/measured, and draws them for the docs. To measure the record anew::

    python -m reproduce run same_method_frozen_cub200 --data CUB_200_2011
    python -m reproduce table same_method_frozen_cub200 --format json > results/measured/same_method_frozen_cub200.json
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from reports.figures.same_method import same_method_figure
from reports.figures.style import svg_of
from results.experiment_results import FOLDER, MeasuredExperiment
from results.headline_metrics import HEADLINE_METRICS
from results.statistics.method_comparison import ALPHA
from results.statistics.nested_runs import by_search
from results.statistics.primary_comparison import primary_score
from results.statistics.run_values import values_by_run
from results.statistics.same_method import search_variance_interval, variance_components, wrong_calls
from results.whole_files import write_whole

SEARCHES = (1, 2, 3, 4, 6)
"""Searches on each side."""

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "same_method.svg"


def main() -> None:
    """Count, write the file, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, default=FOLDER / "same_method_frozen_cub200.json", help="kept record")
    parser.add_argument("--out", type=Path, default=FOLDER / "same_method.json")
    parser.add_argument("--figure", type=Path, default=FIGURE)
    arguments = parser.parse_args()
    measured = MeasuredExperiment.from_json(arguments.record.read_text(encoding="utf-8"))
    score = primary_score(measured)
    (values,) = values_by_run(measured.records, score.metric, score.embeddings).values()
    runs = by_search(values)
    components = variance_components(runs, measured.records, score.metric, score.embeddings)
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
        "standard_deviations": {name: variance**0.5 for name, variance in components._asdict().items()},
        "search_deviation_interval": [variance**0.5 for variance in search_variance_interval(runs)],
        "wrong_calls": [asdict(call) for call in calls],
    }
    write_whole(arguments.out, json.dumps(content, indent=1) + "\n")
    write_whole(arguments.figure, svg_of(same_method_figure(list(runs.values()), calls, ALPHA, title)))
    print(json.dumps(content["standard_deviations"]), json.dumps(content["search_deviation_interval"]))
    for call in calls:
        print(f"{call.searches} searches on each side: {json.dumps(call.shares)}")


if __name__ == "__main__":
    main()
