"""The constants of MLRC's protocol (specification, sections 2, 7 and 8)."""

HEADLINE_METRICS = {"precision_at_1": "P@1", "r_precision": "RP", "map_at_r": "MAP@R"}
"""Column titles by metric name, in the order of the columns."""

FOLDS = 4
"""Number of folds. MLRC trains one model per fold; the folds validate on different classes (section 2)."""

TRIALS = 50
"""Number of hyperparameter settings that MLRC tries per method (section 7)."""

REPRODUCTIONS = 10
"""Number of times that the best setting is trained again (section 8)."""
