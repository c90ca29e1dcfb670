"""Which version of a loss's numbers a class computes, for the names of trainings."""


def meaning_of(loss_class: type) -> int:
    """Version of what a loss class computes from the same arguments.

    A class states it as `MEANING`. Raise it by one with every change after which the same arguments give other numbers
    (loss, gradient or starting values). A class that states nothing, like every class of pytorch-metric-learning, has
    meaning 1. A training's name writes the version only if it is above 1, so that names made before stay as they are.

    A wrapper's version rises with that of a base loss in its `named_bases`: a card that names its base loss this way
    does not show the class.

    Args:
        loss_class: the class of a loss, of this package or of any other.

    Returns:
        `loss_class.MEANING`, its own or inherited, and 1 without one.
    """
    version: int = getattr(loss_class, "MEANING", 1)
    return version
