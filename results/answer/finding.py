"""A finding: one thing that a reader must know beside the numbers."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["limit", "warning", "note"]
"""limit: bounds what the results can show. warning: a number may mislead. note: how the numbers came to be."""

Where = Literal["comparison", "data", "search", "training", "origin"]


@dataclass(frozen=True)
class Finding:
    """One caveat: a short sentence, and what follows from it or the numbers behind it."""

    level: Level
    text: str
    where: Where
    detail: str = ""

    @property
    def sentences(self) -> str:
        """Text and detail."""
        return f"{self.text} {self.detail}".strip()
