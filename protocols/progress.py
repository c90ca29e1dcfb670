"""The type of callbacks that report the progress of long work, such as the decoding of images."""

from collections.abc import Callable

Progress = Callable[[int, int | None], None]
"""Receives the amount done and the total amount; the total is None while it is unknown."""
