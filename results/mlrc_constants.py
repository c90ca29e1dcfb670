"""The constants of MLRC's protocol (specification, sections 2, 7 and 8)."""

from results.training_spec import TrainingSettings

FOLDS = 4
"""Number of folds. MLRC trains one model per fold; the folds validate on different classes (section 2)."""

TRIALS = 50
"""Number of hyperparameter settings that MLRC tries per method (section 7)."""

REPRODUCTIONS = 10
"""Number of times that the best setting is trained again (section 8)."""

TRAINING = TrainingSettings()
"""Training settings of MLRC's runs on CUB-200-2011 and Cars196; they are the defaults of this suite."""

SOP_TRAINING = TrainingSettings(validate_every=20, patience=39)
"""MLRC's configuration for Stanford Online Products (section 5)."""

TABLES = ("mlrc_cub200", "mlrc_cars196", "mlrc_sop")
"""Names of the published tables of the MLRC paper."""


def is_mlrc_table(name: str) -> bool:
    """Tell whether a published table is from the MLRC paper; any experiment with MLRC's settings can fill it."""
    return name in TABLES
