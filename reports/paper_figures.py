"""The result figures of the papers whose data their sources determine, by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.page.sweeps import Curves, Materials, ScoreSweep


@dataclass(frozen=True)
class PaperFigure:
    """A result figure of a paper.

    Attributes:
        number: Number of the figure in the paper (`Figure 9`).
        title: What it shows.
        experiment: Experiment file of the suite that makes the runs; FILE/PANEL for one panel.
        caption: What a reader must know.
        panels: Panels of the file that the paper's figure shows; empty for all.
    """

    paper: str
    number: str
    title: str
    experiment: str
    caption: str
    shows: ScoreSweep | Curves
    panels: tuple[str, ...] = ()

    def draw(self, materials: Materials) -> tuple[Figure, pd.DataFrame, str]:
        """Return the figure, its scores, and a sentence about them.

        Raises:
            FigureError: There is nothing to draw; the message is one line.
        """
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


PAPER_FIGURES: Mapping[str, PaperFigure] = {
    "proxy_isa_figure11": PaperFigure(
        "Proxy-ISA",
        "Figure 11",
        "Convergence on the unseen classes of Cars196",
        "proxy_isa_table1/cars196",
        "From the runs of Table 1. The paper's panel (b) also has Proxy-NCA with adaptive weights; neither the paper "
        "nor its code says how the weights enter that loss. The paper's metric is lost with the figure.",
        Curves({"(a) Proxy-ISA": ("proxy_anchor", "proxy_isa"), "(b) Proxy-NCA": ("proxy_nca",)}),
    ),
    "proxy_gml_figure1": PaperFigure(
        "ProxyGML",
        "Figure 1",
        "Recall@1 against training epochs on Cars196",
        "proxy_gml_table2/cars196_bn_512",
        "From the runs of Table 2 with 512 dimensions. The paper's baselines are a semi-hard triplet loss, Margin, "
        "ProxyNCA and Multi-Similarity, without settings; here are the methods of Table 2.",
        Curves(published="proxy_gml_figure1", own="proxy_gml"),
    ),
    "proxy_gml_figure4": PaperFigure(
        "ProxyGML",
        "Figure 4",
        "Recall@1 over the number N of proxies per class for three r on Cars196",
        "proxy_gml_figure4",
        "The paper has one network per point. Published values are read off the authors' slides (+-0.1).",
        ScoreSweep("loss.proxies_per_class", "N (proxies per class)", "linear", "loss.r", "r =", "proxy_gml_figure4"),
    ),
    "proxy_gml_figure5": PaperFigure(
        "ProxyGML",
        "Figure 5",
        "Recall@1 over r with 12 proxies per class on Cars196",
        "proxy_gml_figure5",
        "The paper has one network per point. Published values are read off the authors' slides (+-0.2). At r = 1 they "
        "differ from Figure 4 at the same setting (78.9 and 81).",
        ScoreSweep("loss.r", "r", "steps", published="proxy_gml_figure5"),
    ),
    "ccp_figure4": PaperFigure(
        "CCP",
        "Figure 4",
        "MAP@R of the contrastive loss without and with CCP against the batch size",
        "ccp_figure4",
        "Four images per class.",
        ScoreSweep(
            "training.batch_size",
            "batch size",
            "log2",
            metric="map_at_r",
            kinds=("separated", "concatenated"),
        ),
    ),
    "nir_figure3": PaperFigure(
        "NIR",
        "Figure 3",
        "Recall@1 on the test classes after every epoch, without and with NIR",
        "nir_table1",
        "From the runs of Table 1. The paper shows 50 epochs on CUB-200-2011 and 90 on Cars196, with mean and spread "
        "over seeds.",
        Curves(
            {
                "Proxy-Anchor": ("proxy_anchor", "nir_proxy_anchor"),
                "ProxyNCA": ("proxy_nca", "nir_proxy_nca"),
                "SoftTriple": ("soft_triple", "nir_soft_triple"),
            }
        ),
        panels=("cub200", "cars196"),
    ),
}
