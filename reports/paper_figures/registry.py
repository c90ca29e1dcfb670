"""All result figures of the papers by name: their texts are in `figures.toml`, what they show is here."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from reports.paper_figures import embeddings
from reports.paper_figures.scores import Curves, Materials, ScoreSweep, Sweeps

_Shown = Sweeps | Curves | Callable[[Materials], Figure]


@dataclass(frozen=True)
class PaperFigure:
    """A result figure of a paper.

    Attributes:
        number: Number of the figure in the paper (`Figure 9`), or a phrase for a figure without a number.
        title: What it shows.
        experiment: Experiment file of the suite that makes the runs; FILE/PANEL for one panel.
        caption: What a reader must know.
        shows: Scores, or a function that draws embeddings.
        panels: Panels of the file that the paper's figure shows; empty for all.
    """

    paper: str
    number: str
    title: str
    experiment: str
    caption: str
    shows: _Shown
    panels: tuple[str, ...] = ()

    def draw(self, materials: Materials) -> tuple[Figure, pd.DataFrame | None, str]:
        """Return the figure, its scores (None for one of embeddings), and a sentence about them.

        Raises:
            FigureError: There is nothing to draw; the message is one line.
        """
        if not isinstance(self.shows, Sweeps | Curves):
            return self.shows(materials), None, ""
        frame = self.shows.frame(materials)
        return self.shows.draw(frame), frame, self.shows.note(frame, materials)

    @property
    def experiments(self) -> tuple[str, ...]:
        """Names of the experiments that make the figure's runs, as `reproduce run` takes them."""
        return tuple(f"{self.experiment}/{panel}" for panel in self.panels) or (self.experiment,)

    def own_of(self, stored: Iterable[str]) -> list[str]:
        """Select the figure's own experiments among the names NAME or NAME/PANEL, in the order of its panels."""
        names = sorted(stored)
        return [name for own in self.experiments for name in names if f"{name}/".startswith(f"{own}/")]


_SHOWN: dict[str, _Shown] = {
    "proxy_isa_figure2": embeddings.early_embeddings,
    "proxy_isa_figure6": embeddings.embeddings_over_time,
    "proxy_isa_figure7": embeddings.similarities_over_time,
    "proxy_isa_figure9": Sweeps((ScoreSweep("loss.lam", "lambda", line="loss.k", line_label="k ="),), "map_at_r"),
    "proxy_isa_figure10": Sweeps(
        (
            ScoreSweep("loss.V", "V", "log10", panel="a"),
            ScoreSweep("loss.memory_size", "T (embeddings in the memory)", "steps", panel="b"),
        )
    ),
    "proxy_isa_figure11": Curves({"(a) Proxy-ISA": ("proxy_anchor", "proxy_isa"), "(b) Proxy-NCA": ("proxy_nca",)}),
    "proxy_anchor_convergence": Curves(own="proxy_anchor"),
    "proxy_anchor_batch_size": Sweeps((ScoreSweep("training.batch_size", "batch size"),)),
    "proxy_anchor_embedding_size": Sweeps((ScoreSweep("embedding_size", "dimensions of the embedding", "log2"),)),
    "proxy_anchor_alpha_delta": Sweeps(
        (ScoreSweep("loss.alpha", "alpha", "log2", line="loss.margin", line_label="delta ="),)
    ),
    "proxy_anchor_retrievals_cub_cars": embeddings.nearest_test_images,
    "proxy_anchor_retrievals_sop": embeddings.nearest_test_images,
    "proxy_anchor_retrievals_inshop": embeddings.nearest_test_images,
    "proxy_gml_figure1": Curves(published="proxy_gml_figure1", own="proxy_gml"),
    "proxy_gml_figure4": Sweeps(
        (ScoreSweep("loss.proxies_per_class", "N (proxies per class)", "linear", "loss.r", "r =", "proxy_gml_figure4"),)
    ),
    "proxy_gml_figure5": Sweeps((ScoreSweep("loss.r", "r", "steps", published="proxy_gml_figure5"),)),
    "ccp_figure1": embeddings.proxies_in_the_plane,
    "ccp_figure2": embeddings.validation_geometry,
    "ccp_figure3": embeddings.search_over_strength_and_proxies,
    "ccp_figure4": Sweeps(
        (ScoreSweep("training.batch_size", "batch size", "log2"),), "map_at_r", ("separated", "concatenated")
    ),
    "nir_figure3": Curves(
        {
            "Proxy-Anchor": ("proxy_anchor", "nir_proxy_anchor"),
            "ProxyNCA": ("proxy_nca", "nir_proxy_nca"),
            "SoftTriple": ("soft_triple", "nir_soft_triple"),
        }
    ),
    "nir_figure4": embeddings.spectra_of_runs,
}


def _figures() -> dict[str, PaperFigure]:
    texts = tomllib.loads((Path(__file__).parent / "figures.toml").read_text(encoding="utf-8"))
    return {
        name: PaperFigure(**{**text, "panels": tuple(text.get("panels", ()))}, shows=_SHOWN[name])
        for name, text in texts.items()
    }


PAPER_FIGURES: Mapping[str, PaperFigure] = _figures()
