"""What MLRC's searches found: optima and their validation MAP@R, from its logs (specification, section 7)."""

from dataclasses import dataclass

from results.published.tables import method_keys, read_published

_SEARCHES = {"cub200": "CUB200", "cars196": "Cars196", "sop": "SOP", "cub200_batch256": "CUB200 (batch size 256)"}


@dataclass(frozen=True)
class PublishedOptimum:
    """The best value of one parameter.

    FastAP at batch size 32 was charted only, and SoftTriple's reg_weight was not searched on SOP.

    Attributes:
        method: Key of our card.
        parameter: Name of the parameter in MLRC.
        value: The value at full precision; None where it is not known.
        as_published: The value with the digits of MLRC's table.
        best_map_at_r: Mean validation MAP@R of the best trial over the folds, a fraction of 1; None where it is not
            known.
    """

    method: str | None
    parameter: str
    value: float | None
    as_published: str
    best_map_at_r: float | None


def mlrc_search_optima(dataset: str) -> tuple[PublishedOptimum, ...]:
    """MLRC's optimum of every parameter of every method, in the order of its table of optima.

    `cub200_batch256` has the searches at batch size 256. A dataset without a search is a ValueError.
    """
    if dataset not in _SEARCHES:
        raise ValueError(f"MLRC published no search on {dataset!r}; there are {', '.join(_SEARCHES)}")
    published, logged = read_published("mlrc_hyperparameters"), read_published("mlrc_search_space")
    keys = ["dataset", "method", "parameter"]
    both = published.merge(logged, on=keys, how="left", suffixes=("_printed", ""), validate="one_to_one").fillna("")
    labels = method_keys("mlrc_search")
    return tuple(
        PublishedOptimum(
            method=labels[row["method"]][0],
            parameter=row["parameter"],
            value=_number(row["best_value_full_precision"]),
            as_published=row["value"],
            best_map_at_r=_number(row["best_mean_val_map_at_r"]),
        )
        for row in both[both["dataset"] == _SEARCHES[dataset]].to_dict("records")
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
