"""The protocols and their parts: data, folds, training, search and test evaluation."""
