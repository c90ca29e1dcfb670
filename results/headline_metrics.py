"""The three metrics that the Metric Learning Reality Check reports, and their column titles."""

HEADLINE_METRICS = {"precision_at_1": "P@1", "r_precision": "RP", "map_at_r": "MAP@R"}
"""Column titles by metric name, in the order of the columns."""
