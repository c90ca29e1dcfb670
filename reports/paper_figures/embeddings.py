"""The papers' figures that show embeddings or searches, with their captions."""

from itertools import product
from string import ascii_lowercase

import numpy as np
from matplotlib.figure import Figure

from reports.figures.contour import search_contour
from reports.figures.gallery import galleries_side_by_side, retrievals_of
from reports.figures.map_panels import MapPanel, map_panels, tsne_panel
from reports.figures.similarity import SimilarityPanel, similarity_heat_map
from reports.figures.spectrum import Spectrum, singular_value_spectrum
from reports.figures.style import FigureError
from reports.page.material import Material
from reports.paper_figures.paper_figure import Materials, PaperFigure
from results.records.artifacts import Recording, Snapshot

QUERIES, NEIGHBOURS = 4, 4
"""Number of queries per dataset, and number of retrieved images per query, which is the paper's."""

_MOST_SPECTRA = 7
_PROXY_ANCHOR, _CCP = "proxy_anchor", "c2_ccp"


def nearest_test_images(materials: Materials) -> Figure:
    """Draw the nearest test images of the hardest classes' queries, one gallery per dataset."""
    galleries = {}
    for material in materials.values():
        dataset, data = material.measured.summary.dataset, material.figure_data.get(_PROXY_ANCHOR)
        if data is not None and dataset not in galleries:
            retrievals = retrievals_of(data, QUERIES, NEIGHBOURS)
            if retrievals:
                galleries[dataset] = retrievals
    if not galleries:
        raise FigureError(
            f"no run of {_PROXY_ANCHOR} has retrievals beside the store; name their folder with --artifacts"
        )
    return galleries_side_by_side(galleries)


_TSNE_NOTE = "t-SNE of cosine distances: only small distances have a meaning"


def early_embeddings(materials: Materials) -> Figure:
    """Draw training images and proxies after the first recorded epoch, one map per method (Fig. 2)."""
    material = _panel_named(materials, "")
    methods = _methods_with_runs(material, ("proxy_anchor", "normalized_softmax"))
    panels = [
        _training_map(material, method, _recorded_epochs(material, method)[0], letter)
        for letter, method in zip(ascii_lowercase, methods, strict=False)
    ]
    return map_panels(panels, 2, _TSNE_NOTE)


def embeddings_over_time(materials: Materials) -> Figure:
    """Draw Proxy-ISA's training images and proxies at two epochs, and the test images of two methods (Fig. 6)."""
    stages, final = _panel_named(materials, "stages"), _panel_named(materials, "final")
    letters = iter(ascii_lowercase)
    method = _methods_with_runs(stages, ("proxy_isa",))[0]
    panels = [_training_map(stages, method, epoch, next(letters)) for epoch in _recorded_epochs(stages, method)]
    for method in _methods_with_runs(final, ("proxy_anchor", "proxy_isa")):
        if method not in final.figure_data:
            raise FigureError(f"{final.name}, {method}: no test embeddings; name their folder with --artifacts")
        data = final.figure_data[method]
        title = f"({next(letters)}) {final.titles[method]}, test\n{_counted(data.test_labels)}"
        panels.append(tsne_panel(title, data.test_embeddings, data.test_labels))
    return map_panels(panels, 2, _TSNE_NOTE)


def similarities_over_time(materials: Materials) -> Figure:
    """Draw cosines of training images and proxies: one row per epoch, one column per method (Fig. 7)."""
    material = _panel_named(materials, "")
    methods = _methods_with_runs(material, ("normalized_softmax", "proxy_anchor", "proxy_isa"))
    epochs = sorted(set.intersection(*(set(_recorded_epochs(material, method)) for method in methods)))
    if not epochs:
        raise FigureError(f"{material.name}: the methods' recordings have no epoch in common")
    panels = []
    for letter, (epoch, method) in zip(ascii_lowercase, product(epochs, methods), strict=False):
        shot = _recording_of(material, method).at_epoch(epoch)
        assert shot is not None
        stage = f"epoch {epoch}" if epoch else "untrained"
        title = f"({letter}) {material.titles[method]}, {stage}"
        panels.append(SimilarityPanel(title, shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels))
    return similarity_heat_map(panels, columns=len(methods))


def _training_map(material: Material, method: str, epoch: int, letter: str) -> MapPanel:
    shot = _recording_of(material, method).at_epoch(epoch)
    assert shot is not None
    title = f"({letter}) {material.titles[method]}, epoch {epoch}\n{_counted(shot.labels)}, {len(shot.proxies)} proxies"
    return tsne_panel(title, shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels)


def _counted(labels: np.ndarray) -> str:
    return f"{len(labels)} images of {len(np.unique(labels))} classes"


_NUMBERS = "radius: average covering radius of a class; distance: mean distance of two images of different classes"


def proxies_in_the_plane(materials: Materials) -> Figure:
    """Draw two-dimensional training embeddings, the proxies and the next proxies, before CCP and after it (Fig. 1)."""
    solutions = _solutions(materials, 5)
    dimensions = solutions[0].embeddings.shape[1]
    if dimensions != 2:
        raise FigureError(f"the figure needs embeddings of two dimensions, not {dimensions}")
    panels = [
        MapPanel(_title(shot), shot.embeddings, shot.labels, shot.proxies, shot.proxy_labels, shot.next_proxies)
        for shot in solutions
    ]
    return map_panels(panels, 3, _NUMBERS, unit_disk=True)


def validation_geometry(materials: Materials) -> Figure:
    """Draw validation embeddings before CCP and after its iterations 1 to 3 by t-SNE (Fig. 2)."""
    panels = [tsne_panel(_title(shot), shot.embeddings, shot.labels) for shot in _solutions(materials, 4)]
    return map_panels(panels, 2, f"{_NUMBERS}\n{_TSNE_NOTE}")


def search_over_strength_and_proxies(materials: Materials) -> Figure:
    """Draw the validation score over lambda and the number of proxies per class (Fig. 3)."""
    material = _panel_named(materials, "")
    search = material.searches.get(_CCP)
    if search is None:
        raise FigureError(f"{material.name}: the store has no search of {_CCP}")
    parameters = {parameter.name: parameter for parameter in search.parameters}
    if missing := {"loss.lam", "loss.proxies_per_class"} - parameters.keys():
        raise FigureError(f"{material.name}: {sorted(missing)[0]} was not searched")
    strength, proxies = parameters["loss.lam"], parameters["loss.proxies_per_class"]
    return search_contour(search.trials, strength, proxies, title=material.titles[_CCP])


def _solutions(materials: Materials, most: int) -> tuple[Snapshot, ...]:
    material = _panel_named(materials, "")
    (method,) = _methods_with_runs(material, (_CCP,))
    solutions = _recording_of(material, method).problems[:most]
    if not solutions:
        raise FigureError(f"{material.name}, {method}: no problem ended during the training")
    return solutions


def _title(shot: Snapshot) -> str:
    when = f"(b.{shot.problem}) iteration {shot.problem}" if shot.problem else "(a) before"
    numbers = f"MAP@R {shot.map_at_r:.2f}   radius {shot.covering_radius:.2f}   distance {shot.class_distance:.2f}"
    return f"{when}, epoch {shot.epoch}\n{numbers}"


def spectra_of_runs(materials: Materials) -> Figure:
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
    if len(spectra) > _MOST_SPECTRA:
        raise FigureError(f"{len(spectra)} methods are too many for one figure; draw one panel with --experiment")
    return singular_value_spectrum(spectra)


def _panel_named(materials: Materials, ending: str) -> Material:
    for panel, material in materials.items():
        if panel.endswith(ending):
            return material
    raise FigureError(f"no panel *{ending} has runs in the store")


def _methods_with_runs(material: Material, methods: tuple[str, ...]) -> tuple[str, ...]:
    present = tuple(method for method in methods if method in material.records)
    if not present:
        raise FigureError(f"{material.name} has no run of {' or '.join(methods)}")
    return present


def _recording_of(material: Material, method: str) -> Recording:
    if method not in material.recordings:
        raise FigureError(
            f"{material.name}, {method}: there are no recorded embeddings beside the weights; name their folder with "
            "--artifacts; if the training was in the store before, run it again with a new --store and --artifacts"
        )
    return material.recordings[method]


def _recorded_epochs(material: Material, method: str) -> tuple[int, ...]:
    shots = _recording_of(material, method).snapshots
    epochs = tuple(sorted(shot.epoch for shot in shots if shot.problem < 0))
    if not epochs:
        raise FigureError(f"{material.name}, {method}: the training ended before the first epoch to record")
    return epochs


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
        paper="Proxy-ISA",
        number="Figure 2",
        title="Training images and proxies of Cars196 early in the training",
        experiment="proxy_isa_figure2",
        drawing=early_embeddings,
        caption=f"t-SNE of all training images, with the proxies as stars. {_FIRST_RUN} {_TSNE} The paper does not "
        "name the epoch; the epoch is our choice.",
    ),
    PaperFigure(
        name="proxy_isa_figure6",
        paper="Proxy-ISA",
        number="Figure 6",
        title="Embeddings of Cars196 during and after the training",
        experiment="proxy_isa_figure6",
        drawing=embeddings_over_time,
        caption="t-SNE. First the training images with the proxies of Proxy-ISA during its training, then images of "
        f"some test classes. {_FIRST_RUN} {_TSNE} The networks of the test images have the epoch that validation "
        "classes chose. The paper does not name its epoch and draws all test classes.",
    ),
    PaperFigure(
        name="proxy_isa_figure7",
        paper="Proxy-ISA",
        number="Figure 7",
        title="Similarity of training images and proxies of Cars196 during the training",
        experiment="proxy_isa_figure7",
        drawing=similarities_over_time,
        caption="Cosine of training images (rows) and proxies (columns), both sorted by class; three random images per "
        f"class. {_FIRST_RUN} The paper does not name the epochs; they are our choice.",
    ),
    PaperFigure(
        name="proxy_anchor_retrievals_cub_cars",
        paper="Proxy-Anchor",
        number="retrievals",
        title="Nearest test images on CUB-200-2011 and Cars196",
        experiment="proxy_anchor_cub_cars",
        drawing=nearest_test_images,
        caption=_QUERIES,
        panels=("cub200_bn_512", "cars196_bn_512"),
    ),
    PaperFigure(
        name="proxy_anchor_retrievals_sop",
        paper="Proxy-Anchor",
        number="retrievals",
        title="Nearest test images on Stanford Online Products",
        experiment="proxy_anchor_sop/sop_bn_512",
        drawing=nearest_test_images,
        caption=_QUERIES,
    ),
    PaperFigure(
        name="proxy_anchor_retrievals_inshop",
        paper="Proxy-Anchor",
        number="retrievals",
        title="Nearest gallery images on In-Shop",
        experiment="proxy_anchor_inshop/inshop_bn_512",
        drawing=nearest_test_images,
        caption=_QUERIES,
    ),
    PaperFigure(
        name="ccp_figure1",
        paper="CCP",
        number="Figure 1",
        title="Proxies and embeddings over CCP's iterations, with glyphs in place of MNIST",
        experiment="ccp_figure1",
        drawing=proxies_in_the_plane,
        caption="A stand-in: the paper's figure is on MNIST, with a network and settings that are not published. Here "
        "a small network embeds glyphs in two dimensions; the dotted circle is the unit circle. Six of the training "
        f"classes are drawn and measured. {_SOLUTIONS} Next proxies are chosen at the end of a problem, some "
        "validations after the drawn network. Do not compare the numbers with the paper's.",
    ),
    PaperFigure(
        name="ccp_figure2",
        paper="CCP",
        number="Figure 2",
        title="Validation embeddings of C2-CCP on CUB-200-2011 before and after its iterations",
        experiment="ccp_figure2",
        drawing=validation_geometry,
        caption=f"t-SNE of the validation images of the first fold. {_SOLUTIONS} {_TSNE} The paper has other "
        "validation classes, so its numbers are not comparable.",
    ),
    PaperFigure(
        name="ccp_figure3",
        paper="CCP",
        number="Figure 3",
        title="Search over lambda and the number of proxies per class, C2-CCP on CUB-200-2011",
        experiment="ccp_figure3",
        drawing=search_over_strength_and_proxies,
        caption="Each point is a trial, with its best MAP@R on the validation classes of the first fold. The surface "
        "is interpolated linearly between the trials; the paper draws that of its Gaussian process, on other "
        "validation classes.",
    ),
    PaperFigure(
        name="nir_figure4",
        paper="NIR",
        number="Figure 4",
        title="Singular values of the test embeddings, without and with NIR",
        experiment="nir_table3",
        drawing=spectra_of_runs,
        caption="The model of a method is that of its first run and first fold, at the epoch that validation chose. "
        "The paper's text does not have the figure.",
    ),
)
