"""The search for a method's hyperparameters."""
