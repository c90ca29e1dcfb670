"""The version of the numbers that a loss class computes; it is part of the fingerprint of a training."""


def meaning_of(loss_class: type) -> int:
    """Version of the numbers that a loss class computes from its arguments.

    The version is the class attribute `MEANING`. Raise it by one with every change after which the same arguments give
    other numbers (loss, gradient or starting values). A class without it, like every class of pytorch-metric-learning,
    has version 1. A fingerprint contains the version only if it is above 1, so older fingerprints stay valid.

    If the version of a base loss in a wrapper's `named_bases` rises, the wrapper's version must rise too: a card that
    names its base loss this way does not show the class.

    Args:
        loss_class: the class of a loss, of this package or of any other.

    Returns:
        `loss_class.MEANING`, defined or inherited; 1 without it.
    """
    version: int = getattr(loss_class, "MEANING", 1)
    return version
