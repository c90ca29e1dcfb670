"""The papers' figures of sweeps, curves and spectra, with their captions."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from reports.figures.spectrum import Spectrum, singular_value_spectrum
from reports.figures.style import FigureError
from reports.page.material import Material
from reports.paper_figures.learning_curves import ConvergenceFigure
from reports.paper_figures.paper_figure import PaperFigure
from reports.paper_figures.parameter_sweeps import ParameterSweep, SweepFigure

_MOST_LINES = 7


def spectra_of_runs(materials: Mapping[str, Material]) -> Figure:
    """Draw the singular values of the first runs of all methods."""
    several = len(materials) > 1
    spectra = [
        Spectrum(
            f"{material.titles[key]}, {material.measured.summary.dataset}" if several else material.titles[key],
            tuple(data.spectrum.tolist()),
        )
        for material in materials.values()
        for key, data in material.figure_data.items()
    ]
    if not spectra:
        raise FigureError("no run has embeddings beside the store; name their folder with --artifacts")
    if len(spectra) > _MOST_LINES:
        raise FigureError(f"{len(spectra)} methods are too many for one figure; draw one panel with --experiment")
    return singular_value_spectrum(spectra)


_LOST = "The paper's text does not have the figure. The grid is our choice."
_ONE_NETWORK = "The paper has one network per point."

_CHANCE_BATCHES = SweepFigure(
    (ParameterSweep("training.batch_size", "batch size", "log2"),), "map_at_r", ("separated", "concatenated")
)
_ISA_SEARCH_LENGTH = SweepFigure((ParameterSweep("loss.lam", "lambda", line="loss.k", line_label="k ="),), "map_at_r")
_ISA_MEMORY = SweepFigure(
    (
        ParameterSweep("loss.V", "V", "log10", panel="a"),
        ParameterSweep("loss.memory_size", "T (embeddings in the memory)", "steps", panel="b"),
    )
)
_ISA_CONVERGENCE = ConvergenceFigure({"(a) Proxy-ISA": ("proxy_anchor", "proxy_isa"), "(b) Proxy-NCA": ("proxy_nca",)})
_ANCHOR_CONVERGENCE = ConvergenceFigure()
_ANCHOR_BATCHES = SweepFigure((ParameterSweep("training.batch_size", "batch size"),))
_ANCHOR_DIMENSIONS = SweepFigure((ParameterSweep("embedding_size", "dimensions of the embedding", "log2"),))
_ANCHOR_ALPHA = SweepFigure((ParameterSweep("loss.alpha", "alpha", "log2", line="loss.margin", line_label="delta ="),))
_GML_CONVERGENCE = ConvergenceFigure(published="proxy_gml_figure1")
_GML_PROXIES = SweepFigure(
    (
        ParameterSweep(
            "loss.proxies_per_class",
            "N (proxies per class)",
            line="loss.r",
            line_label="r =",
            published="proxy_gml_figure4",
        ),
    )
)
_GML_RATIO = SweepFigure((ParameterSweep("loss.r", "r", "steps", published="proxy_gml_figure5"),))
_NIR_CONVERGENCE = ConvergenceFigure(
    {
        "Proxy-Anchor": ("proxy_anchor", "nir_proxy_anchor"),
        "ProxyNCA": ("proxy_nca", "nir_proxy_nca"),
        "SoftTriple": ("soft_triple", "nir_soft_triple"),
    }
)

SCORE_FIGURES = (
    PaperFigure(
        name="proxy_isa_figure9",
        paper="Proxy-ISA",
        number="Figure 9",
        title="MAP@R over k and lambda on Cars196",
        experiment="proxy_isa_figure9",
        draw=_ISA_SEARCH_LENGTH.draw,
        scores=_ISA_SEARCH_LENGTH,
        caption=f"{_LOST} {_ONE_NETWORK}",
    ),
    PaperFigure(
        name="proxy_isa_figure10",
        paper="Proxy-ISA",
        number="Figure 10",
        title="Recall@1 over V (bound of the effective number) and T (size of the memory) on CUB-200-2011",
        experiment="proxy_isa_figure10",
        draw=_ISA_MEMORY.draw,
        scores=_ISA_MEMORY,
        caption=f"{_LOST} {_ONE_NETWORK} One of the two numbers varies, the other keeps the paper's value.",
    ),
    PaperFigure(
        name="proxy_isa_figure11",
        paper="Proxy-ISA",
        number="Figure 11",
        title="Convergence on the unseen classes of Cars196",
        experiment="proxy_isa_table1/cars196",
        draw=_ISA_CONVERGENCE.draw,
        scores=_ISA_CONVERGENCE,
        caption="From the runs of Table 1. The paper's panel (b) also has Proxy-NCA with adaptive weights; neither the "
        "paper nor its code says how the weights enter that loss. The paper's metric is lost with the figure.",
    ),
    PaperFigure(
        name="proxy_anchor_convergence",
        paper="Proxy-Anchor",
        number="convergence plot",
        title="Recall@1 against training epochs on Cars196",
        experiment="proxy_anchor_convergence",
        draw=_ANCHOR_CONVERGENCE.draw,
        scores=_ANCHOR_CONVERGENCE,
        caption="The settings of the baselines are not published; the head of the experiment file has our choices. The "
        "suite has no semi-hard mining and no N-pair loss: the triplet loss here takes all triplets.",
    ),
    PaperFigure(
        name="proxy_anchor_batch_size",
        paper="Proxy-Anchor",
        number="batch size plot",
        title="Recall@1 against the batch size on Cars196",
        experiment="proxy_anchor_batch_size",
        draw=_ANCHOR_BATCHES.draw,
        scores=_ANCHOR_BATCHES,
        caption=f"{_LOST} The dataset is our choice too.",
    ),
    PaperFigure(
        name="proxy_anchor_embedding_size",
        paper="Proxy-Anchor",
        number="dimension plot",
        title="Recall@1 against the dimension of the embedding on Cars196",
        experiment="proxy_anchor_embedding_size",
        draw=_ANCHOR_DIMENSIONS.draw,
        scores=_ANCHOR_DIMENSIONS,
        caption=f"{_LOST} The dataset is our choice too. The paper's text says that the performance is stable and high "
        "enough from 128 dimensions.",
    ),
    PaperFigure(
        name="proxy_anchor_alpha_delta",
        paper="Proxy-Anchor",
        number="alpha and delta plot",
        title="Recall@1 against alpha and delta (the margin) on Cars196",
        experiment="proxy_anchor_alpha_delta",
        draw=_ANCHOR_ALPHA.draw,
        scores=_ANCHOR_ALPHA,
        caption=f"{_LOST} The dataset is our choice too, and so is that delta varies. The paper's text says that the "
        "performance is stable and high enough from alpha 16.",
    ),
    PaperFigure(
        name="proxy_gml_figure1",
        paper="ProxyGML",
        number="Figure 1",
        title="Recall@1 against training epochs on Cars196",
        experiment="proxy_gml_table2/cars196_bn_512",
        draw=_GML_CONVERGENCE.draw,
        scores=_GML_CONVERGENCE,
        caption="From the runs of Table 2 with 512 dimensions. The paper's baselines are a semi-hard triplet loss, "
        "Margin, ProxyNCA and Multi-Similarity, without settings; here are the methods of Table 2.",
    ),
    PaperFigure(
        name="proxy_gml_figure4",
        paper="ProxyGML",
        number="Figure 4",
        title="Recall@1 over the number N of proxies per class for three r on Cars196",
        experiment="proxy_gml_figure4",
        draw=_GML_PROXIES.draw,
        scores=_GML_PROXIES,
        caption=f"{_ONE_NETWORK} Published values are read off the authors' slides (+-0.1).",
    ),
    PaperFigure(
        name="proxy_gml_figure5",
        paper="ProxyGML",
        number="Figure 5",
        title="Recall@1 over r with 12 proxies per class on Cars196",
        experiment="proxy_gml_figure5",
        draw=_GML_RATIO.draw,
        scores=_GML_RATIO,
        caption=f"{_ONE_NETWORK} Published values are read off the authors' slides (+-0.2). At r = 1 they differ from "
        "Figure 4 at the same setting (78.9 and 81).",
    ),
    PaperFigure(
        name="ccp_figure4",
        paper="CCP",
        number="Figure 4",
        title="MAP@R of the contrastive loss without and with CCP against the batch size",
        experiment="ccp_figure4",
        draw=_CHANCE_BATCHES.draw,
        scores=_CHANCE_BATCHES,
        caption="Four images per class.",
    ),
    PaperFigure(
        name="nir_figure3",
        paper="NIR",
        number="Figure 3",
        title="Recall@1 on the test classes after every epoch, without and with NIR",
        experiment="nir_table1",
        draw=_NIR_CONVERGENCE.draw,
        scores=_NIR_CONVERGENCE,
        caption="From the runs of Table 1. The paper shows 50 epochs on CUB-200-2011 and 90 on Cars196, with mean and "
        "spread over seeds.",
        panels=("cub200", "cars196"),
    ),
    PaperFigure(
        name="nir_figure4",
        paper="NIR",
        number="Figure 4",
        title="Singular values of the test embeddings, without and with NIR",
        experiment="nir_table3",
        draw=spectra_of_runs,
        caption="The model of a method is that of its first run and first fold, at the epoch that validation chose. "
        "The paper's text does not have the figure.",
    ),
)
