"""The papers' figures that show embeddings or searches, with their captions."""

from collections.abc import Mapping
from itertools import product
from string import ascii_lowercase

import numpy as np
from matplotlib.figure import Figure

from reports.figures.contour import search_contour
from reports.figures.gallery import galleries_side_by_side, retrievals_of
from reports.figures.map_panels import MapPanel, map_panels, tsne_panel
from reports.figures.similarity import SimilarityPanel, similarity_heat_map
from reports.figures.style import FigureError
from reports.page.material import Material
from reports.paper_figures.paper_figure import PaperFigure
from reports.paper_figures.recorded_moments import methods_with_runs, panel_named, recorded_epochs, recording_of
from results.records.artifacts import Snapshot

QUERIES, NEIGHBOURS = 4, 4
"""Number of queries per dataset, and number of retrieved images per query, which is the paper's."""

_PROXY_ANCHOR = "proxy_anchor"


def nearest_test_images(materials: Mapping[str, Material]) -> Figure:
    """Draw the nearest test images of the hardest classes' queries, one gallery per dataset.

    Args:
        materials: Experiments by panel of their file. The first panel of each dataset with retrievals is drawn.

    Raises:
        FigureError: No panel has retrievals of Proxy-Anchor.
    """
    galleries = {}
    for material in materials.values():
        dataset, exhibit = material.measured.summary.dataset, material.exhibits.get(_PROXY_ANCHOR)
        if exhibit is not None and dataset not in galleries:
            retrievals = retrievals_of(exhibit, QUERIES, NEIGHBOURS)
            if retrievals:
                galleries[dataset] = retrievals
    if not galleries:
        raise FigureError(
            f"no run of {_PROXY_ANCHOR} has retrievals beside the store; name their folder with --artifacts"
        )
    return galleries_side_by_side(galleries)


_NOTE = "t-SNE of cosine distances: only small distances have a meaning"


def early_embeddings(materials: Mapping[str, Material]) -> Figure:
    """Draw training images and proxies after the first recorded epoch, one map per method (Fig. 2).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: No method has a recording.
    """
    material = panel_named(materials, "")
    methods = methods_with_runs(material, ("proxy_anchor", "normalized_softmax"))
    panels = [
        _training_map(material, method, recorded_epochs(material, method)[0], letter)
        for letter, method in zip(ascii_lowercase, methods, strict=False)
    ]
    return map_panels(panels, 2, _NOTE)


def embeddings_over_time(materials: Mapping[str, Material]) -> Figure:
    """Draw Proxy-ISA's training images and proxies at two epochs, and the test images of two methods (Fig. 6).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: A panel has no runs, no recording or no exhibit.
    """
    stages, final = panel_named(materials, "stages"), panel_named(materials, "final")
    letters = iter(ascii_lowercase)
    method = methods_with_runs(stages, ("proxy_isa",))[0]
    panels = [_training_map(stages, method, epoch, next(letters)) for epoch in recorded_epochs(stages, method)]
    for method in methods_with_runs(final, ("proxy_anchor", "proxy_isa")):
        if method not in final.exhibits:
            raise FigureError(f"{final.name}, {method}: no test embeddings; name their folder with --artifacts")
        exhibit = final.exhibits[method]
        title = f"({next(letters)}) {final.titles[method]}, test\n{_counted(exhibit.test_labels)}"
        panels.append(tsne_panel(title, exhibit.test_embeddings, exhibit.test_labels))
    return map_panels(panels, 2, _NOTE)


def similarities_over_time(materials: Mapping[str, Material]) -> Figure:
    """Draw cosines of training images and proxies: one row per epoch, one column per method (Fig. 7).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: A method has no recording, or the recordings have no epoch in common.
    """
    material = panel_named(materials, "")
    methods = methods_with_runs(material, ("normalized_softmax", "proxy_anchor", "proxy_isa"))
    epochs = sorted(set.intersection(*(set(recorded_epochs(material, method)) for method in methods)))
    if not epochs:
        raise FigureError(f"{material.name}: the methods' recordings have no epoch in common")
    panels = []
    for letter, (epoch, method) in zip(ascii_lowercase, product(epochs, methods), strict=False):
        shot = recording_of(material, method).at_epoch(epoch)
        assert shot is not None
        stage = f"epoch {epoch}" if epoch else "untrained"
        title = f"({letter}) {material.titles[method]}, {stage}"
        panels.append(SimilarityPanel(title, shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels))
    return similarity_heat_map(panels, columns=len(methods))


def _training_map(material: Material, method: str, epoch: int, letter: str) -> MapPanel:
    shot = recording_of(material, method).at_epoch(epoch)
    assert shot is not None
    title = f"({letter}) {material.titles[method]}, epoch {epoch}\n{_counted(shot.labels)}, {len(shot.proxies)} proxies"
    return tsne_panel(title, shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels)


def _counted(labels: np.ndarray) -> str:
    return f"{len(labels)} images of {len(np.unique(labels))} classes"


_CCP = "c2_ccp"
_NUMBERS = "radius: average covering radius of a class; distance: mean distance of two images of different classes"


def proxies_in_the_plane(materials: Mapping[str, Material]) -> Figure:
    """Draw two-dimensional training embeddings, the proxies and the next proxies, before CCP and after it (Fig. 1).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: There is no recording, no problem ended, or the embeddings have more than two dimensions.
    """
    solutions = _solutions(materials, 5)
    dimensions = solutions[0].embeddings.shape[1]
    if dimensions != 2:
        raise FigureError(f"the figure needs embeddings of two dimensions, not {dimensions}")
    panels = [
        MapPanel(_title(shot), shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels, shot.next_proxies)
        for shot in solutions
    ]
    return map_panels(panels, 3, _NUMBERS, unit_disk=True)


def validation_geometry(materials: Mapping[str, Material]) -> Figure:
    """Draw validation embeddings before CCP and after its iterations 1 to 3 by t-SNE (Fig. 2).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: There is no recording, or no problem ended.
    """
    panels = [tsne_panel(_title(shot), shot.embeddings, shot.labels) for shot in _solutions(materials, 4)]
    return map_panels(panels, 2, f"{_NUMBERS}\nt-SNE of cosine distances: only small distances have a meaning")


def search_over_strength_and_proxies(materials: Mapping[str, Material]) -> Figure:
    """Draw the validation score over lambda and the number of proxies per class (Fig. 3).

    Args:
        materials: Experiments by panel of their file.

    Raises:
        FigureError: The store has no search over both hyperparameters.
    """
    material = panel_named(materials, "")
    search = material.searches.get(_CCP)
    if search is None:
        raise FigureError(f"{material.name}: the store has no search of {_CCP}")
    parameters = {parameter.name: parameter for parameter in search.parameters}
    if missing := {"loss.lam", "loss.proxies_per_class"} - parameters.keys():
        raise FigureError(f"{material.name}: {sorted(missing)[0]} was not searched")
    strength, proxies = parameters["loss.lam"], parameters["loss.proxies_per_class"]
    return search_contour(search.trials, strength, proxies, title=material.titles[_CCP])


def _solutions(materials: Mapping[str, Material], most: int) -> tuple[Snapshot, ...]:
    """Return the solutions of the first problems, at most `most`."""
    material = panel_named(materials, "")
    (method,) = methods_with_runs(material, (_CCP,))
    solutions = recording_of(material, method).problems[:most]
    if not solutions:
        raise FigureError(f"{material.name}, {method}: no problem ended during the training")
    return solutions


def _title(shot: Snapshot) -> str:
    """Name the panel as in the paper: the first problem is (a), `before`."""
    when = f"(b.{shot.problem}) iteration {shot.problem}" if shot.problem else "(a) before"
    numbers = f"MAP@R {shot.map_at_r:.2f}   radius {shot.covering_radius:.2f}   distance {shot.class_distance:.2f}"
    return f"{when}, epoch {shot.epoch}\n{numbers}"


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
