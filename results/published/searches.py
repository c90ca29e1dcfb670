"""What MLRC's searches found: optima and their validation MAP@R, from its logs (specification, section 7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from results.published.tables import method_keys, read_published

_SEARCHES = {"cub200": "CUB200", "cars196": "Cars196", "sop": "SOP", "cub200_batch256": "CUB200 (batch size 256)"}


@dataclass(frozen=True)
class PublishedOptimum:
    """The best value of one parameter.

    label, parameter: as MLRC calls them; method: key of our card. scale: `linear`, `log` or `int`, with its note.
    initial, final: bounds that the search began and ended with, None where not known. value: at full precision.
    as_published: with the digits of MLRC's table. trials: of the search; best_trial: the winner's number from 1,
    best_map_at_r: its mean validation MAP@R over the folds, a fraction of 1. None is not known: FastAP at batch size 32
    was charted only, SoftTriple's reg_weight was not searched on SOP.
    """

    dataset: str
    label: str
    method: str | None
    parameter: str
    scale: str | None
    initial: tuple[float, float] | None
    final: tuple[float, float] | None
    value: float | None
    as_published: str
    trials: int | None
    best_trial: int | None
    best_map_at_r: float | None
    source: str


def mlrc_search_optima(dataset: str) -> tuple[PublishedOptimum, ...]:
    """MLRC's optimum of every parameter of every method, in the order of its table of optima.

    dataset: `cub200`, `cars196`, `sop`, or `cub200_batch256` for the searches at batch size 256; raises ValueError for
    another one.
    """
    if dataset not in _SEARCHES:
        raise ValueError(f"MLRC published no search on {dataset!r}; there are {', '.join(_SEARCHES)}")
    published, logged = read_published("mlrc_hyperparameters"), read_published("mlrc_search_space")
    keys = ["dataset", "method", "parameter"]
    both = published.merge(logged, on=keys, how="left", suffixes=("_printed", ""), validate="one_to_one").fillna("")
    labels = method_keys("mlrc_search")
    return tuple(
        _optimum(dataset, labels[row["method"]][0], row)
        for row in both[both["dataset"] == _SEARCHES[dataset]].to_dict("records")
    )


def _optimum(dataset: str, method: str | None, row: Mapping[Any, str]) -> PublishedOptimum:
    return PublishedOptimum(
        dataset=dataset,
        label=row["method"],
        method=method,
        parameter=row["parameter"],
        scale=row["scale"] or None,
        initial=_bounds(row["initial_lower"], row["initial_upper"]),
        final=_bounds(row["final_lower"], row["final_upper"]),
        value=float(row["best_value_full_precision"]) if row["best_value_full_precision"] else None,
        as_published=row["value"],
        trials=int(row["trials"]) if row["trials"] else None,
        best_trial=int(row["best_trial_1based"]) if row["best_trial_1based"] else None,
        best_map_at_r=float(row["best_mean_val_map_at_r"]) if row["best_mean_val_map_at_r"] else None,
        source=row["source"] or row["source_printed"],
    )


def _bounds(low: str, high: str) -> tuple[float, float] | None:
    return (float(low), float(high)) if low and high else None
