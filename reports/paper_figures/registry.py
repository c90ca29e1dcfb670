"""All result figures of the papers by name, in the order of the papers and of their figures."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from reports.paper_figures import embeddings
from reports.paper_figures.scores import Curves, Materials, ScoreSweep, Sweeps


@dataclass(frozen=True)
class PaperFigure:
    """A result figure of a paper.

    Attributes:
        paper: The paper.
        number: Number of the figure in the paper (`Figure 9`), or a phrase for a figure without a number.
        title: What it shows.
        experiment: Experiment file of the suite that makes the runs; FILE/PANEL for one panel.
        shows: Scores, or a function that draws embeddings.
        caption: What a reader must know.
        panels: Panels of the file that the paper's figure shows; empty for all.
    """

    paper: str
    number: str
    title: str
    experiment: str
    shows: Sweeps | Curves | Callable[[Materials], Figure]
    caption: str
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


_LOST = "The paper's text does not have the figure. The grid is our choice."
_DATASET = f"{_LOST} The dataset is our choice too"
_ONE_NETWORK = "The paper has one network per point."
_TSNE = "Distances between groups have no meaning in t-SNE."
_FIRST_RUN = "Model of the first run."
_QUERIES = (
    "The four nearest test images of one query from each of the four classes with the lowest MAP@R, in the first run. "
    "These classes are the hardest ones and not typical. The authors picked their queries by hand; neither the queries "
    "nor the network are known."
)
_SOLUTIONS = (
    "Each map shows the network with the best validation score of a problem. (a) is the first problem, which is usual "
    "training with proxies; (b.n) is the problem after n iterations of CCP."
)

PAPER_FIGURES: Mapping[str, PaperFigure] = {
    "proxy_isa_figure2": PaperFigure(
        *("Proxy-ISA", "Figure 2", "Training images and proxies of Cars196 early in the training"),
        "proxy_isa_figure2",
        embeddings.early_embeddings,
        f"t-SNE of all training images, with the proxies as stars. {_FIRST_RUN} {_TSNE} The paper does not name the "
        "epoch; the epoch is our choice.",
    ),
    "proxy_isa_figure6": PaperFigure(
        *("Proxy-ISA", "Figure 6", "Embeddings of Cars196 during and after the training"),
        "proxy_isa_figure6",
        embeddings.embeddings_over_time,
        "t-SNE. First the training images with the proxies of Proxy-ISA during its training, then images of some test "
        f"classes. {_FIRST_RUN} {_TSNE} The networks of the test images have the epoch that validation classes chose. "
        "The paper does not name its epoch and draws all test classes.",
    ),
    "proxy_isa_figure7": PaperFigure(
        *("Proxy-ISA", "Figure 7", "Similarity of training images and proxies of Cars196 during the training"),
        "proxy_isa_figure7",
        embeddings.similarities_over_time,
        "Cosine of training images (rows) and proxies (columns), both sorted by class; three random images per class. "
        f"{_FIRST_RUN} The paper does not name the epochs; they are our choice.",
    ),
    "proxy_isa_figure9": PaperFigure(
        *("Proxy-ISA", "Figure 9", "MAP@R over k and lambda on Cars196"),
        "proxy_isa_figure9",
        Sweeps((ScoreSweep("loss.lam", "lambda", line="loss.k", line_label="k ="),), "map_at_r"),
        f"{_LOST} {_ONE_NETWORK}",
    ),
    "proxy_isa_figure10": PaperFigure(
        "Proxy-ISA",
        "Figure 10",
        "Recall@1 over V (bound of the effective number) and T (size of the memory) on CUB-200-2011",
        "proxy_isa_figure10",
        Sweeps(
            (
                ScoreSweep("loss.V", "V", "log10", panel="a"),
                ScoreSweep("loss.memory_size", "T (embeddings in the memory)", "steps", panel="b"),
            )
        ),
        f"{_LOST} {_ONE_NETWORK} One of the two numbers varies, the other keeps the paper's value.",
    ),
    "proxy_isa_figure11": PaperFigure(
        *("Proxy-ISA", "Figure 11", "Convergence on the unseen classes of Cars196"),
        "proxy_isa_table1/cars196",
        Curves({"(a) Proxy-ISA": ("proxy_anchor", "proxy_isa"), "(b) Proxy-NCA": ("proxy_nca",)}),
        "From the runs of Table 1. The paper's panel (b) also has Proxy-NCA with adaptive weights; neither the paper "
        "nor its code says how the weights enter that loss. The paper's metric is lost with the figure.",
    ),
    "proxy_anchor_convergence": PaperFigure(
        *("Proxy-Anchor", "convergence plot", "Recall@1 against training epochs on Cars196"),
        "proxy_anchor_convergence",
        Curves(own="proxy_anchor"),
        "The settings of the baselines are not published; the head of the experiment file has our choices. The triplet "
        "loss here takes all triplets in place of semi-hard ones, and N-pair is left out.",
    ),
    "proxy_anchor_batch_size": PaperFigure(
        *("Proxy-Anchor", "batch size plot", "Recall@1 against the batch size on Cars196"),
        "proxy_anchor_batch_size",
        Sweeps((ScoreSweep("training.batch_size", "batch size"),)),
        f"{_DATASET}.",
    ),
    "proxy_anchor_embedding_size": PaperFigure(
        *("Proxy-Anchor", "dimension plot", "Recall@1 against the dimension of the embedding on Cars196"),
        "proxy_anchor_embedding_size",
        Sweeps((ScoreSweep("embedding_size", "dimensions of the embedding", "log2"),)),
        f"{_DATASET}. The paper's text says that the performance is stable and high enough from 128 dimensions.",
    ),
    "proxy_anchor_alpha_delta": PaperFigure(
        *("Proxy-Anchor", "alpha and delta plot", "Recall@1 against alpha and delta (the margin) on Cars196"),
        "proxy_anchor_alpha_delta",
        Sweeps((ScoreSweep("loss.alpha", "alpha", "log2", line="loss.margin", line_label="delta ="),)),
        f"{_DATASET}, and so is that delta varies. The paper's text says that the performance is stable and high "
        "enough from alpha 16.",
    ),
    "proxy_anchor_retrievals_cub_cars": PaperFigure(
        *("Proxy-Anchor", "retrievals", "Nearest test images on CUB-200-2011 and Cars196"),
        "proxy_anchor_cub_cars",
        embeddings.nearest_test_images,
        _QUERIES,
        ("cub200_bn_512", "cars196_bn_512"),
    ),
    "proxy_anchor_retrievals_sop": PaperFigure(
        *("Proxy-Anchor", "retrievals", "Nearest test images on Stanford Online Products"),
        "proxy_anchor_sop/sop_bn_512",
        embeddings.nearest_test_images,
        _QUERIES,
    ),
    "proxy_anchor_retrievals_inshop": PaperFigure(
        *("Proxy-Anchor", "retrievals", "Nearest gallery images on In-Shop"),
        "proxy_anchor_inshop/inshop_bn_512",
        embeddings.nearest_test_images,
        _QUERIES,
    ),
    "proxy_gml_figure1": PaperFigure(
        *("ProxyGML", "Figure 1", "Recall@1 against training epochs on Cars196"),
        "proxy_gml_table2/cars196_bn_512",
        Curves(published="proxy_gml_figure1", own="proxy_gml"),
        "From the runs of Table 2 with 512 dimensions. The paper's baselines are a semi-hard triplet loss, Margin, "
        "ProxyNCA and Multi-Similarity, without settings; here are the methods of Table 2.",
    ),
    "proxy_gml_figure4": PaperFigure(
        *("ProxyGML", "Figure 4", "Recall@1 over the number N of proxies per class for three r on Cars196"),
        "proxy_gml_figure4",
        Sweeps(
            (
                ScoreSweep(
                    "loss.proxies_per_class",
                    "N (proxies per class)",
                    line="loss.r",
                    line_label="r =",
                    published="proxy_gml_figure4",
                ),
            )
        ),
        f"{_ONE_NETWORK} Published values are read off the authors' slides (+-0.1).",
    ),
    "proxy_gml_figure5": PaperFigure(
        *("ProxyGML", "Figure 5", "Recall@1 over r with 12 proxies per class on Cars196"),
        "proxy_gml_figure5",
        Sweeps((ScoreSweep("loss.r", "r", "steps", published="proxy_gml_figure5"),)),
        f"{_ONE_NETWORK} Published values are read off the authors' slides (+-0.2). At r = 1 they differ from Figure 4 "
        "at the same setting (78.9 and 81).",
    ),
    "ccp_figure1": PaperFigure(
        *("CCP", "Figure 1", "Proxies and embeddings over CCP's iterations, with glyphs in place of MNIST"),
        "ccp_figure1",
        embeddings.proxies_in_the_plane,
        "A stand-in: the paper's figure is on MNIST, with a network and settings that are not published. Here a small "
        "network embeds glyphs in two dimensions; the dotted circle is the unit circle. Six of the training classes "
        f"are drawn and measured. {_SOLUTIONS} Next proxies are chosen at the end of a problem, some validations after "
        "the drawn network. Do not compare the numbers with the paper's.",
    ),
    "ccp_figure2": PaperFigure(
        *("CCP", "Figure 2", "Validation embeddings of C2-CCP on CUB-200-2011 before and after its iterations"),
        "ccp_figure2",
        embeddings.validation_geometry,
        f"t-SNE of the validation images of the first fold. {_SOLUTIONS} {_TSNE} The paper has other validation "
        "classes, so its numbers are not comparable.",
    ),
    "ccp_figure3": PaperFigure(
        *("CCP", "Figure 3", "Search over lambda and the number of proxies per class, C2-CCP on CUB-200-2011"),
        "ccp_figure3",
        embeddings.search_over_strength_and_proxies,
        "Each point is a trial, with its best MAP@R on the validation classes of the first fold. The surface is "
        "interpolated between the trials; the paper draws that of its Gaussian process, on other validation classes.",
    ),
    "ccp_figure4": PaperFigure(
        *("CCP", "Figure 4", "MAP@R of the contrastive loss without and with CCP against the batch size"),
        "ccp_figure4",
        Sweeps((ScoreSweep("training.batch_size", "batch size", "log2"),), "map_at_r", ("separated", "concatenated")),
        "Four images per class.",
    ),
    "nir_figure3": PaperFigure(
        *("NIR", "Figure 3", "Recall@1 on the test classes after every epoch, without and with NIR"),
        "nir_table1",
        Curves(
            {
                "Proxy-Anchor": ("proxy_anchor", "nir_proxy_anchor"),
                "ProxyNCA": ("proxy_nca", "nir_proxy_nca"),
                "SoftTriple": ("soft_triple", "nir_soft_triple"),
            }
        ),
        "From the runs of Table 1. The paper shows 50 epochs on CUB-200-2011 and 90 on Cars196, with mean and spread "
        "over seeds.",
        ("cub200", "cars196"),
    ),
    "nir_figure4": PaperFigure(
        *("NIR", "Figure 4", "Singular values of the test embeddings, without and with NIR"),
        "nir_table3",
        embeddings.spectra_of_runs,
        "The model of a method is that of its first run and first fold, at the epoch that validation chose. The "
        "paper's text does not have the figure.",
    ),
}
