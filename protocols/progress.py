"""How long work, such as a download or the decoding of images, says how far it is."""

from collections.abc import Callable

Progress = Callable[[int, int | None], None]
"""Told how much is done (bytes, files or images) and how much there is in all, or None while that is not known."""
