"""All result figures of the papers by name."""

import re
from collections.abc import Mapping

from reports.paper_figures.embeddings import EMBEDDING_FIGURES
from reports.paper_figures.paper_figure import PaperFigure
from reports.paper_figures.score_figures import SCORE_FIGURES

_FIGURES = (*SCORE_FIGURES, *EMBEDDING_FIGURES)
_PAPERS = ("Proxy-ISA", "Proxy-Anchor", "ProxyGML", "CCP", "NIR")


def _place(figure: PaperFigure) -> tuple[int, int]:
    number = re.search(r"\d+", figure.number)
    return _PAPERS.index(figure.paper), int(number[0]) if number else 0


PAPER_FIGURES: Mapping[str, PaperFigure] = {figure.name: figure for figure in sorted(_FIGURES, key=_place)}
"""All figures by name, in the order of the papers and of their figures."""
