"""The papers' figures that show embeddings or searches, with their captions."""

from reports.paper_figures.chance_constraints import (
    proxies_in_the_plane,
    search_over_strength_and_proxies,
    validation_geometry,
)
from reports.paper_figures.isa_embeddings import early_embeddings, embeddings_over_time, similarities_over_time
from reports.paper_figures.paper_figure import PaperFigure
from reports.paper_figures.retrievals import nearest_test_images

_ISA, _ANCHOR, _CCP = "Proxy-ISA", "Proxy-Anchor", "CCP"
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

EMBEDDING_FIGURES = (
    PaperFigure(
        name="proxy_isa_figure2",
        paper=_ISA,
        number="Figure 2",
        title="Training images and proxies of Cars196 early in the training",
        experiment="proxy_isa_figure2",
        draw=early_embeddings,
        caption=f"t-SNE of all training images, with the proxies as stars. {_FIRST_RUN} {_TSNE} The paper does not "
        "name the epoch; the epoch is our choice.",
    ),
    PaperFigure(
        name="proxy_isa_figure6",
        paper=_ISA,
        number="Figure 6",
        title="Embeddings of Cars196 during and after the training",
        experiment="proxy_isa_figure6",
        draw=embeddings_over_time,
        caption="t-SNE. First the training images with the proxies of Proxy-ISA during its training, then images of "
        f"some test classes. {_FIRST_RUN} {_TSNE} The networks of the test images have the epoch that validation "
        "classes chose. The paper does not name its epoch and draws all test classes.",
    ),
    PaperFigure(
        name="proxy_isa_figure7",
        paper=_ISA,
        number="Figure 7",
        title="Similarity of training images and proxies of Cars196 during the training",
        experiment="proxy_isa_figure7",
        draw=similarities_over_time,
        caption="Cosine of training images (rows) and proxies (columns), both sorted by class; three random images per "
        f"class. {_FIRST_RUN} The paper does not name the epochs; they are our choice.",
    ),
    PaperFigure(
        name="proxy_anchor_retrievals_cub_cars",
        paper=_ANCHOR,
        number="retrievals",
        title="Nearest test images on CUB-200-2011 and Cars196",
        experiment="proxy_anchor_cub_cars",
        draw=nearest_test_images,
        caption=_QUERIES,
        panels=("cub200_bn_512", "cars196_bn_512"),
    ),
    PaperFigure(
        name="proxy_anchor_retrievals_sop",
        paper=_ANCHOR,
        number="retrievals",
        title="Nearest test images on Stanford Online Products",
        experiment="proxy_anchor_sop/sop_bn_512",
        draw=nearest_test_images,
        caption=_QUERIES,
    ),
    PaperFigure(
        name="proxy_anchor_retrievals_inshop",
        paper=_ANCHOR,
        number="retrievals",
        title="Nearest gallery images on In-Shop",
        experiment="proxy_anchor_inshop/inshop_bn_512",
        draw=nearest_test_images,
        caption=_QUERIES,
    ),
    PaperFigure(
        name="ccp_figure1",
        paper=_CCP,
        number="Figure 1",
        title="Proxies and embeddings over CCP's iterations, with glyphs in place of MNIST",
        experiment="ccp_figure1",
        draw=proxies_in_the_plane,
        caption="A stand-in: the paper's figure is on MNIST, with a network and settings that are not published. Here "
        "a small network embeds glyphs in two dimensions; the dotted circle is the unit circle. Six of the training "
        f"classes are drawn and measured. {_SOLUTIONS} Next proxies are chosen at the end of a problem, some "
        "validations after the drawn network. Do not compare the numbers with the paper's.",
    ),
    PaperFigure(
        name="ccp_figure2",
        paper=_CCP,
        number="Figure 2",
        title="Validation embeddings of C2-CCP on CUB-200-2011 before and after its iterations",
        experiment="ccp_figure2",
        draw=validation_geometry,
        caption=f"t-SNE of the validation images of the first fold. {_SOLUTIONS} {_TSNE} The paper has other "
        "validation classes, so its numbers are not comparable.",
    ),
    PaperFigure(
        name="ccp_figure3",
        paper=_CCP,
        number="Figure 3",
        title="Search over lambda and the number of proxies per class, C2-CCP on CUB-200-2011",
        experiment="ccp_figure3",
        draw=search_over_strength_and_proxies,
        caption="Each point is a trial, with its best MAP@R on the validation classes of the first fold. The surface "
        "is interpolated linearly between the trials; the paper draws that of its Gaussian process, on other "
        "validation classes.",
    ),
)
"""All of them, in the order of the papers."""
