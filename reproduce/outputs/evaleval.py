"""Records of Every Eval Ever (https://github.com/evaleval/every_eval_ever), schema 0.2.1: written from an answer, read.

A record is one score of one method on one dataset, with its standard error, 95 % interval and number of runs.
"""

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from reports.page.material import version
from reports.tables.table import short
from reproduce.errors import InputError
from results.answer.answers import Answer
from results.answer.intervals import t_quantile
from results.answer.question import Question
from results.findings.experiment import ExperimentAnswer
from results.reading.columns import HELD_UP, LOWER, SCALE

SCHEMA = "0.2.1"

_LIBRARY = "metric-learning-reproductions"
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}
"""Details that later versions of the schema ask for."""


def evaleval_records(found: Answer, dataset: str, source: str, written: float | None = None) -> list[dict[str, Any]]:
    """Return a record for each method of an answer, in the compared score; percentages as fractions of 1.

    Where datasets are the sample, each has its own record, without an interval.

    Args:
        found: The answer.
        dataset: Name of the dataset.
        source: Where the scores are from, such as the name of the experiment or of the file.
        written: When the records are made, in seconds of Unix time; now by default.
    """
    stamp = f"{time.time() if written is None else written:.0f}"
    if found.sample.test == "ranks":
        return [
            _record(found, key, {"score": short(found.scaling.in_file(value))}, str(name), source, stamp)
            for key in found.compared
            for name, (value,) in found.runs[key].items()
        ]
    return [_record(found, key, _details(found, key), dataset, source, stamp) for key in found.intervals]


def _details(found: Answer, key: str) -> dict[str, Any]:
    """The score of a method with its uncertainty, and what held the method up."""
    own, interval = found.values[key], found.intervals[key]
    scaling = found.scaling
    details: dict[str, Any] = {"score": short(scaling.in_file(interval.mean))}
    deviation = own.summary[0] if own.summary and own.n else float(np.std(own.units, ddof=1)) if own.n > 1 else None
    if deviation is not None:
        error = {"value": short(deviation / math.sqrt(own.n)), "method": "standard deviation / sqrt(num_samples)"}
        spread = {"standard_deviation": short(deviation), "num_samples": own.n}
        uncertainty: dict[str, Any] = {} if scaling.ratio else {"standard_error": error, **spread}
        if interval.low is not None:
            low, high = map(scaling.in_file, (interval.low, interval.high))
            ends = {"lower": short(low), "upper": short(high), "confidence_level": 0.95}
            uncertainty["confidence_interval"] = {**ends, "method": found.sample.interval_words}
        details["uncertainty"] = uncertainty
    values = ", ".join(str(short(scaling.in_file(value))) for value in own.failed)
    failed = {f"failed_{found.sample.word}_values": values} if own.failed else {}
    runs = {"runs": str(own.runs)} if found.sample.counted else {}
    limits = [*own.planned.extents, *(["before all searches and runs are there"] if found.interim else [])]
    held_up = {"held_up": ", ".join(limits)} if limits else {}
    details["details"] = {"unit": found.sample.word, **runs, **failed, **held_up}
    return details


def _record(
    found: Answer, key: str, details: Mapping[str, Any], dataset: str, source: str, stamp: str
) -> dict[str, Any]:
    question, name = found.question, found.question.score_name
    low, high = np.clip(found.scaling.ends, -sys.float_info.max, sys.float_info.max).tolist()
    own = isinstance(found, ExperimentAnswer)
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{dataset or source}/{key}/{stamp}",
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": source,
            "source_type": "evaluation_run" if own else "documentation",
            "source_organization_name": "unknown",
            "evaluator_relationship": "third_party" if own else "other",
        },
        "eval_library": {"name": _LIBRARY, "version": version() or "unknown"},
        "model_info": {"name": found.titles[key], "id": key, "additional_details": _UNKNOWN},
        "evaluation_results": [
            {
                "evaluation_name": name,
                "source_data": {"dataset_name": dataset or source, "source_type": "other"},
                "metric_config": {
                    "evaluation_description": _description(question),
                    "lower_is_better": bool(question.lower_is_better),
                    "score_type": "continuous",
                    "min_score": low,
                    "max_score": high,
                },
                "score_details": dict(details),
            }
        ],
    }


def _description(question: Question) -> str:
    return f"{question.score_name}, {question.scaling.description}"


def is_evaleval(record: object) -> bool:
    """Tell whether a JSON value is a record of Every Eval Ever."""
    return isinstance(record, dict) and {"schema_version", "evaluation_results", "model_info"} <= record.keys()


def table_of_records(records: Sequence[Mapping[str, Any]], name: str) -> pd.DataFrame:
    """Return a row for each score of the records, with the number of its record.

    Raises:
        InputError: A record lacks what the schema asks for.
    """
    rows = []
    for number, record in enumerate(records, 1):
        try:
            rows += [(number, row) for row in _rows(record)]
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{name}: record {number} is not as schema {SCHEMA} has it ({error!r})") from error
    table = pd.DataFrame([row for _, row in rows], index=[number for number, _ in rows])
    return table if (table["dataset"] != "").all() else table.drop(columns="dataset")


def _rows(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for result in record["evaluation_results"]:
        config, details = result["metric_config"], result["score_details"]
        source = result.get("source_data")
        source = source if isinstance(source, dict) else {}  # Before version 0.2 it was a list for the whole record.
        bounds = config.get("min_score"), config.get("max_score")
        deviation, number = _deviation(details.get("uncertainty") or {})
        held_up = (details.get("details") or {}).get("held_up")
        yield {
            "method": record["model_info"]["id"],
            "dataset": source.get("dataset_name", ""),
            "metric": result["evaluation_name"],
            "value": details["score"],
            **({"value_std": deviation, "n_runs": number} if number else {}),
            **({HELD_UP: held_up} if held_up else {}),
            LOWER: config["lower_is_better"],
            SCALE: {(0, 1): "fractions", (0, 100): "percent"}.get(bounds, "points"),
        }


def _deviation(uncertainty: Mapping[str, Any]) -> tuple[float | None, int | None]:
    """The standard deviation and the number of samples, from whatever of a record says them."""
    number = uncertainty.get("num_samples")
    if not number or number < 2:
        return None, None
    if "standard_deviation" in uncertainty:
        return uncertainty["standard_deviation"], number
    if "standard_error" in uncertainty:
        return uncertainty["standard_error"]["value"] * math.sqrt(number), number
    if ends := uncertainty.get("confidence_interval"):
        quantile = t_quantile((1 + ends.get("confidence_level", 0.95)) / 2, number - 1)
        return (ends["upper"] - ends["lower"]) / 2 / quantile * math.sqrt(number), number
    return None, None
