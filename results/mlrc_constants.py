"""The numbers of MLRC's protocol, each written once (specification, sections 2, 7 and 8)."""

FOLDS = 4
"""MLRC trains four models on four class-disjoint validation parts (section 2)."""

TRIALS = 50
"""Hyperparameter settings that MLRC tries per method (section 7)."""

REPRODUCTIONS = 10
"""Re-trainings of the best setting (section 8)."""

TABLES = ("mlrc_cub200", "mlrc_cars196", "mlrc_sop")
"""The published tables that are MLRC's own."""


def is_mlrc_table(name: str) -> bool:
    """Whether the published table of that name is one of MLRC's own, which take any experiment of MLRC's settings."""
    return name in TABLES
