"""`python -m tests.benchmarks.deviations`: trains deviations both ways on glyphs, the other way and ours.

Both ways are trained on all four folds from the same seeds. Their score is the separated MAP@R of the test classes. The
record is written after every run, so the program goes on where it stopped. Changed settings are measured anew; delete
the record after a change of `deviation_ways`. `python -m tests.benchmarks.kept_tables` then draws the docs' table.
"""

import argparse
import json
import re
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import yaml
from scipy import stats

from protocols.evaluation.evaluate_run import evaluate_run
from protocols.evaluation.test_data import test_data
from protocols.jobs import EvaluateJob
from protocols.training.train_fold import train_fold
from reproduce.commands.options import STORE
from reproduce.config.experiment_file import load_experiments
from reproduce.execution.session import Session, open_session
from reproduce.storage import storage_paths
from results.records.provenance import provenance
from results.spec.training_spec import FoldSpec
from results.store.experiment_results import FOLDER
from results.values import fingerprint_of
from results.whole_files import write_whole
from tests.benchmarks import deviation_ways

RECORD = FOLDER / "deviations.json"
_TEXT = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
PAIRS: list[dict[str, Any]] = [{"data": "features", **pair} for pair in yaml.safe_load(_TEXT)]
EXPERIMENT = "all_methods_glyphs"
SETTINGS: dict[str, dict[str, Any]] = {
    "features": {
        "trunk.name": "efficientnet_lite0",
        "trunk.weights": "imagenet",
        "trunk.frozen": True,
        "images": {"resize": 96, "crop": 96},
        "training.iterations_per_epoch": 15,
    },
    "images": {"images.crop": 16, "training.batch_size": 16, "training.iterations_per_epoch": 25},
}
"""What the experiment becomes: only the embedder is trained, or the trunk too where a deviation is about it."""

WAYS = ("other", "ours")
_Named = list[tuple[dict[str, Any], list[str]]]


def opened(data: str) -> Session:
    """Open the experiment on `features` or `images`, with the methods of the pairs."""
    settings = {**SETTINGS[data], "training.patience": 100}
    settings["methods"] = sorted({pair["method"] for pair in PAIRS})
    (experiment,) = load_experiments(EXPERIMENT, settings).values()
    return open_session(EXPERIMENT, experiment, storage_paths(STORE, None, None, None), None)


def specs_of(session: Session, pair: Mapping[str, Any], way: str, run: int) -> tuple[FoldSpec, ...]:
    """The trainings of a run one way, `other` or `ours`, one per fold."""
    method = session.methods[pair["method"]].method
    changes = {**pair.get("both", {}), **pair.get(way, {})}
    return tuple(_changed(spec, changes) for spec in session.problem.fold_specs(method, "reproduction", run))


def _changed(spec: FoldSpec, changes: Mapping[str, Any]) -> FoldSpec:
    content = spec.model_dump(mode="json")
    for dotted, value in changes.items():
        *path, last = re.sub(r"^loss\.", "method.loss.arguments.", dotted).split(".")
        place = content
        for key in path:
            place = place[key]
        place[last] = value
    return FoldSpec.model_validate_json(json.dumps(content))


def code_of(pair: Mapping[str, Any], way: str) -> dict[str, str]:
    """What is put in the place of the suite's code one way, by full name."""
    return pair.get("code", {}) if way == "other" else {}


def score(session: Session, pair: Mapping[str, Any], way: str, run: int) -> float:
    """Train the four folds one way, and return the separated MAP@R of the test classes."""
    problem, specs = session.problem, specs_of(session, pair, way, run)
    with ExitStack() as stack:
        for name, part in code_of(pair, way).items():
            stack.enter_context(patch(name, getattr(deviation_ways, part)))
        trained = [train_fold(spec, problem.training_data(spec)) for spec in specs]
        job = EvaluateJob(specs, "mlrc", {}, run, problem.seed, sum(fold.result.wall_time for fold in trained))
        tested = evaluate_run(job, [fold.weights for fold in trained], test_data(problem.dataset, problem.split))
    return tested.separated.map_at_r


def compared(others: list[float], ours: list[float]) -> dict[str, Any]:
    """What ours has more, in fractions of 1, with the 95 % t interval of the differences between equal seeds."""
    differences = np.subtract(ours, others)
    if not differences.any():
        low = high = 0.0
    else:
        low, high = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    return {
        "n": len(ours),
        "map_at_r": float(np.mean(ours)),
        "difference": float(differences.mean()),
        "interval": [float(low), float(high)],
    }


def deviations_markdown() -> str:
    """Return the kept record as a table in Markdown; a pair that was not run twice has no number."""
    measured = {found["what"]: found for found in json.loads(RECORD.read_text(encoding="utf-8"))["pairs"]}
    lines = [
        "| entry | the other way; ours | on | ours, MAP@R | ours minus other, points | n |",
        "|--:|---|---|--:|--:|--:|",
    ]
    for pair in PAIRS:
        cells = [pair["entry"], pair["what"], pair["data"], "-", "not measured yet", 0]
        if found := measured.get(pair["what"]):
            points = [100 * number for number in (found["difference"], *found["interval"])]
            cells[3:] = f"{100 * found['map_at_r']:.1f} %", "{:+.2f} ({:+.2f} to {:+.2f})".format(*points), found["n"]
            if max(map(abs, points)) < 0.005:
                cells[4] = "below 0.005" if any(points) else "0, bit-equal"
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Train what the record lacks, one run of every pair after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.deviations", description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each way; default: %(default)s")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    scores: dict[str, list[float]] = json.loads(RECORD.read_text())["scores"] if RECORD.exists() else {}
    sessions = {data: opened(data) for data in SETTINGS}
    named: _Named = [(pair, [_name(sessions[pair["data"]], pair, way) for way in WAYS]) for pair in PAIRS]
    for data, run in product(SETTINGS, range(arguments.runs)):
        for pair, names in named:
            if pair["data"] != data:
                continue
            for way, name in zip(WAYS, names, strict=True):
                if len(scores.setdefault(name, [])) <= run:
                    scores[name].append(score(sessions[data], pair, way, run))
                    _write(scores, named)
            print(run, pair["entry"], pair["what"], *(f"{100 * scores[name][run]:.2f}" for name in names), flush=True)


def _name(session: Session, pair: Mapping[str, Any], way: str) -> str:
    """The name of a way's scores in the record: ways that are equal share them."""
    fingerprints = [spec.fingerprint for spec in specs_of(session, pair, way, 0)]
    return f"{pair['method']} {fingerprint_of([fingerprints, code_of(pair, way)])[:8]}"


def _write(scores: Mapping[str, list[float]], named: _Named) -> None:
    pairs = []
    for pair, names in named:
        n = min(len(scores.get(name, [])) for name in names)
        if n > 1:
            found = compared(*(scores[name][:n] for name in names))
            pairs.append({**{key: pair[key] for key in ("entry", "what", "data")}, **found, "scores": names})
    content = {
        "experiment": EXPERIMENT,
        "settings": SETTINGS,
        "pairs": pairs,
        "scores": {name: scores[name] for _, names in named for name in names if name in scores},
        "provenance": provenance("cpu", 1).model_dump(mode="json"),
    }
    write_whole(RECORD, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
