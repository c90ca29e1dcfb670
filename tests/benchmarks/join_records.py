"""`python -m tests.benchmarks.join_records`: joins kept records of one experiment whose methods were run apart.

The methods of a long experiment can be run on machines, or in weeks, that share no store. No seed depends on the other
methods of a run, so the joined record is that of one run. A method that is in several records must have equal runs
there: a quick one, run again with every part, shows that the parts were made under the same conditions::

    python -m tests.benchmarks.join_records mlrc_frozen_cub200/pca_start first.json second.json > joined.json
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from reproduce.config.experiment_file import load_experiments
from results.records.records import RunRecord
from results.store.experiment_results import MeasuredExperiment


def joined(parts: Sequence[MeasuredExperiment], order: Sequence[str]) -> MeasuredExperiment:
    """Return one record with the methods of all parts.

    Args:
        parts: The records. At least one.
        order: Keys of methods in the order of the table's rows; methods that it lacks come last.

    Raises:
        ValueError: Parts differ in their settings or data, or in the runs of a method that they share.
    """
    if len({repr(_conditions(part)) for part in parts}) != 1:
        raise ValueError("the records differ in more than their methods: in their settings, their data or their budget")
    runs: dict[str, list[RunRecord]] = {}
    for part in parts:
        for method in part.summary.methods:
            of_part = [record for record in part.records if record.method == method]
            if _scores(runs.setdefault(method, of_part)) != _scores(of_part):
                raise ValueError(f"the runs of {method} differ between two of the records")
    keys = sorted(runs, key=[*order, *(key for key in runs if key not in order)].index)
    titles = {key: title for part in parts for key, title in part.summary.methods.items()}
    planned = {key: number for part in parts for key, number in part.summary.runs.items()}
    ranges = {key: searched for part in parts for key, searched in part.summary.ranges.items()}
    settings = parts[0].summary.experiment
    summary = parts[0].summary.model_copy(
        update={
            "methods": {key: titles[key] for key in keys},
            "runs": {key: planned[key] for key in keys if key in planned},
            "ranges": {key: ranges[key] for key in keys if key in ranges},
            "experiment": settings.model_copy(update={"methods": tuple(keys)}),
        }
    )
    searches = {name: search for part in parts for name, search in part.searches.items()}
    cut_off = {fingerprint: count for part in parts for fingerprint, count in part.cut_off.items()}
    # The order of a store's records, so that a record joined with a part of itself stays as it is.
    records = [record for key in sorted(runs) for record in runs[key]]
    ordered = {record.fingerprint: cut_off[record.fingerprint] for record in records if record.fingerprint in cut_off}
    return MeasuredExperiment(summary, tuple(records), searches=dict(sorted(searches.items())), cut_off=ordered)


def _conditions(part: MeasuredExperiment) -> dict[str, JsonValue]:
    """What all parts have in common: the summary without its methods."""
    content: dict[str, JsonValue] = part.summary.model_dump(mode="json", exclude={"methods", "runs", "ranges"})
    content["experiment"] = {
        key: value for key, value in part.summary.experiment.without_folder().items() if key != "methods"
    }
    return content


def _scores(records: Sequence[RunRecord]) -> dict[str, tuple[object, ...]]:
    """What repeated runs have in common, by fingerprint: all scores, but not their time and machine."""
    return {record.fingerprint: (record.fold_scores, record.separated, record.concatenated) for record in records}


def main() -> None:
    """Join the files and print the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", help="experiment, or EXPERIMENT/PANEL, whose methods give the order of the rows")
    parser.add_argument("records", type=Path, nargs="+", help="files that `table NAME --format json` wrote")
    arguments = parser.parse_args()
    (experiment,) = load_experiments(arguments.experiment, {}).values()
    parts = [MeasuredExperiment.from_json(path.read_text(encoding="utf-8")) for path in arguments.records]
    sys.stdout.write(joined(parts, experiment.methods).to_json())


if __name__ == "__main__":
    main()
