"""How a number comes to be: data, folds, training, search, evaluation."""
