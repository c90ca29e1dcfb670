"""Which of pytorch-metric-learning's classes have in version 3 the numbers of 2.9: one card, one number.

What version 3 changed is known from its documentation alone, of which the pages of several losses could not be read.
"""

from collections.abc import Mapping
from importlib import metadata
from types import MappingProxyType

from pydantic import JsonValue

from losses.bridge import THREE

LIBRARY = "pytorch-metric-learning"

_SAME = frozenset(
    {
        *("ContrastiveLoss", "FastAPLoss", "MarginLoss", "MultiSimilarityLoss", "MultipleLosses", "TripletMarginLoss"),
        *("CosineSimilarity", "DotProductSimilarity", "LpDistance", "SNRDistance"),
        *("AvgNonZeroReducer", "DivisorReducer", "MeanReducer", "MultipleReducers", "SumReducer", "ThresholdReducer"),
        *("LpRegularizer", "ZeroMeanRegularizer"),
    }
)
"""Classes to which no page and no release note gives another number, where the arguments of `_DEFAULTS` are given."""

_DEFAULTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "TripletMarginLoss": ("margin", "the default margin is 0.2 and no longer 0.05, so give one"),
        "DotProductSimilarity": ("normalize_embeddings", "normalize_embeddings is false by default, so give it"),
    }
)


def other_number(kind: str, name: str, arguments: Mapping[str, JsonValue], with_miner: bool = False) -> str | None:
    """Say in one line why a class of the library may have another number in version 3 than in 2.9.

    Args:
        kind: `loss`, `miner`, ...
        name: Of the class.
        arguments: What a card gives it.
        with_miner: Whether a miner chooses what the loss gets.

    Returns:
        The line with its remedy; None where version 2.9 is installed, and where no change is known.
    """
    if not THREE:
        return None
    argument, why = _DEFAULTS.get(name, (None, ""))
    if argument in arguments:
        return None
    if name == "MultiSimilarityLoss" and with_miner:
        why = "the mean is over the samples that the miner found, and no longer over the batch"
    elif name == "NormalizedSoftmaxLoss":
        why = "the classes start from other random numbers"
    elif kind == "miner":
        why = "miners have other boundaries since 3.0.4"
    elif name not in _SAME:
        why = "the numbers may differ from those of 2.9: nothing is known of this class"
    if not why:
        return None
    return f"{name}: in {LIBRARY} {metadata.version(LIBRARY)} {why}; with 2.9.0 this method runs"
