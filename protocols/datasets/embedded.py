"""Datasets that the suite makes itself; all others lie in a folder. Needs no torch."""

EMBEDDED = frozenset({"glyphs"})
