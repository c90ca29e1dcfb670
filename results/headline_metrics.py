"""The three metrics that the Metric Learning Reality Check reports, and how they are called in tables."""

HEADLINE_METRICS = {"precision_at_1": "P@1", "r_precision": "RP", "map_at_r": "MAP@R"}
"""Titles by our names, in the order of the columns."""
