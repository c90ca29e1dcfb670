"""The duration of a training, as the store keeps it."""

from typing import NamedTuple

from results.training_spec import FoldSpec


class Timing(NamedTuple):
    """A finished training, its number of iterations, and its duration in seconds."""

    spec: FoldSpec
    iterations: int
    seconds: float
