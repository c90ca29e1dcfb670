"""Definitions of the words of the page."""

GLOSSARY = (
    (
        "P@1",
        "Precision at 1, the same as Recall@1: the share of the test images whose nearest neighbour is of their class.",
    ),
    (
        "RP",
        "R-precision: for an image with R other images of its class, the share of its R nearest neighbours that are of "
        "its class; the mean over all test images.",
    ),
    (
        "MAP@R",
        "Mean average precision at R: for an image with R other images of its class, the sum of P(i) for i from 1 to "
        "R, divided by R. P(i) is the share of the i nearest neighbours that are of its class if the i-th neighbour "
        "is, and 0 if it is not. The mean over all test images. It is never above R-precision.",
    ),
    ("separated", "The mean over the models of a run, one per fold. Each model is tested alone."),
    (
        "concatenated",
        "The embeddings of all models of a run are joined into one and tested together. It is an ensemble; a single "
        "network of a paper is not comparable.",
    ),
    ("primary score", "The score in which the methods are tested. All other scores are secondary and not tested."),
    ("trial", "One training during the search, with its own hyperparameters, scored on validation classes."),
    ("run", "One new training of the setting found, on all folds, from new seeds. It is scored on the test classes."),
    (
        "±",
        "Half the width of the 95 % Student-t interval of the mean over runs. It is about the setting found, and not "
        "about another search.",
    ),
    (
        "group",
        "Methods with a common letter: the comparison shows no difference between any two of them. This does not show "
        "that they are equal.",
    ),
    (
        "prediction interval",
        "The range in which a single new result under our conditions would lie in 95 % of cases.",
    ),
)
"""Words with their definitions, in order."""
