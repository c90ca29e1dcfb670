"""The search of a method's hyperparameters."""
