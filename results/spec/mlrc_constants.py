"""The constants of MLRC's protocol (specification, sections 2, 7 and 8)."""

HEADLINE_METRICS = {"precision_at_1": "P@1", "r_precision": "RP", "map_at_r": "MAP@R"}
"""Column titles by metric name, in the order of the columns."""

_FRACTIONS = ("recall@", "map@", "nmi")


def is_in_percent(metric: str) -> bool:
    """Return whether a metric is a fraction of 1, which people read in percent; other metrics are shown as computed."""
    return metric in HEADLINE_METRICS or metric.startswith(_FRACTIONS)


FOLDS = 4
"""Number of folds. MLRC trains one model per fold; the folds validate on different classes (section 2)."""

TRIALS = 50
"""Number of hyperparameter settings that MLRC tries per method (section 7)."""

REPRODUCTIONS = 10
"""Number of times that the best setting is trained again (section 8)."""
