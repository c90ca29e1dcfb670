"""The numbers of MLRC's protocol, each written once (specification, sections 2, 7 and 8)."""

from results.training_spec import TrainingSettings

FOLDS = 4
"""MLRC trains four models on four class-disjoint validation parts (section 2)."""

TRIALS = 50
"""Hyperparameter settings that MLRC tries per method (section 7)."""

REPRODUCTIONS = 10
"""Re-trainings of the best setting (section 8)."""

TRAINING = TrainingSettings()
"""Training settings of MLRC's runs on CUB-200-2011 and Cars196; they are the defaults of this suite."""

SOP_TRAINING = TrainingSettings(validate_every=20, patience=39)
"""MLRC's configuration for Stanford Online Products (section 5)."""

TABLES = ("mlrc_cub200", "mlrc_cars196", "mlrc_sop")
"""The published tables that are MLRC's own."""


def is_mlrc_table(name: str) -> bool:
    """Whether the published table of that name is one of MLRC's own, which take any experiment of MLRC's settings."""
    return name in TABLES
