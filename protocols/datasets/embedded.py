"""Names of the datasets that the suite generates itself; all others are read from a folder. Needs no torch."""

EMBEDDED = frozenset({"glyphs"})
