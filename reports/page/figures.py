"""The figures of a page: intervals and curves of runs, searches, and embeddings of each method's first run.

t-SNE takes seconds and a gallery takes space, so both are made for the best few methods only.
"""

import base64
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from reports.figures import curves, embedding_map, gallery, intervals, search, spectrum
from reports.figures.curves import FoldCurve, MethodCurves
from reports.figures.intervals import MethodRuns
from reports.figures.search import SearchHistory
from reports.figures.style import PAGE_WIDTH, FigureError, UndrawableError, png_of, svg_of
from reports.page.material import Material
from results.atomic_files import file_name, write_atomically
from results.records.artifacts import FigureData
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.wording import capitalized

MAPS, SPECTRA, GALLERIES, QUERIES, NEIGHBOURS = 2, 7, 2, 6, 4
"""Number of best methods that are shown by t-SNE, spectra and galleries; queries and neighbours in a gallery."""


@dataclass(frozen=True)
class Drawn:
    """A figure.

    Attributes:
        name: Name of the files, without suffix.
        svg: Content of the SVG file; None, as `png`, if the figure cannot be drawn.
        caption: Explains how to read the figure, or why it cannot be drawn.
        fold: Heading of the collapsed group that the figure belongs to; empty for a figure that is always visible.
    """

    name: str
    title: str
    svg: str | None
    png: bytes | None
    alt: str = ""
    caption: str = ""
    fold: str = ""

    @property
    def image(self) -> str:
        """The picture as a data URI; empty for a figure that cannot be drawn."""
        return f"data:image/png;base64,{base64.b64encode(self.png).decode()}" if self.png else ""

    def save(self, folder: Path) -> list[str]:
        """Write the files into `folder`, and return their names."""
        contents = {f"{self.name}.svg": self.svg, f"{self.name}.png": self.png}
        written = {name: content for name, content in contents.items() if content is not None}
        for name, content in written.items():
            write_atomically(folder / name, content)
        return list(written)


def page_figures(material: Material) -> Iterator[Drawn]:
    """Draw all figures for which there are data."""
    if material.records:
        yield from _intervals(material)
        yield from _validation_curves(material)
        yield from _test_curves(material)
        for key, history in material.searches.items():
            yield from _search(key, material.titles[key], history)
        yield from _embeddings(material)


def _drawn(
    name: str, title: str, draw: Callable[[], Figure], describe: Callable[[], str], caption: str, fold: str = ""
) -> Iterator[Drawn]:
    """Draw a figure; nothing if there are no data for it.

    A figure whose data cannot be drawn, such as equal embeddings, becomes a sentence with the reason. `describe` writes
    the alternative text, and is called only if the figure was drawn.
    """
    try:
        figure = draw()
    except UndrawableError as error:
        yield Drawn(name, title, None, None, "", f"This figure cannot be drawn: {error}.", fold)
    except FigureError:
        return
    else:
        yield Drawn(name, title, svg_of(figure), png_of(figure), describe(), caption, fold)


def _intervals(material: Material) -> Iterator[Drawn]:
    unit = material.unit
    rows = [
        MethodRuns(material.titles[key], values.units, material.intervals[key])
        for key, values in material.values.items()
    ]
    return _drawn(
        "intervals",
        f"{capitalized(material.score_name)} by method",
        lambda: intervals.interval_plot(rows, material.score_name, unit),
        lambda: intervals.alternative_text(rows, unit),
        intervals.caption(unit),
    )


def _validation_curves(material: Material) -> Iterator[Drawn]:
    shown = []
    for key, records in material.records.items():
        folds = [curve for name in records[0].fold_fingerprints if (curve := _validations(material, name))]
        if folds:
            shown.append(MethodCurves(material.titles[key], tuple(folds)))
    return _drawn(
        "validation_curves",
        "Validation scores during the trainings of each method's first run",
        lambda: curves.score_curves(shown),
        lambda: curves.alternative_text(shown, "Validation MAP@R"),
        curves.CAPTION,
    )


def _validations(material: Material, fingerprint: str) -> FoldCurve | None:
    if fingerprint not in material.measured.trainings:
        return None
    result = material.measured.trainings[fingerprint][1]
    scores = {point.iteration: point.map_at_r for point in result.curve if point.map_at_r is not None}
    return _curve({at: score for at, score in scores.items() if math.isfinite(score)}, result.best_iteration)


def _test_curves(material: Material) -> Iterator[Drawn]:
    metric = material.measured.summary.experiment.peeking_metric
    name, unit = f"test {HEADLINE_METRICS[metric]}", "run" if material.folds == 1 else "fold"
    shown = []
    for key, records in material.records.items():
        # A run with one training is one line; of runs with several folds only the first is drawn.
        names = [name for record in records[: None if unit == "run" else 1] for name in record.fold_fingerprints]
        lines = [curve for name in names if (curve := _test_scores(material, name, metric))]
        if lines:
            shown.append(MethodCurves(material.titles[key], tuple(lines)))
    return _drawn(
        "test_curves",
        f"{capitalized(name)} during the trainings",
        lambda: curves.score_curves(shown, name, unit),
        lambda: curves.alternative_text(shown, capitalized(name), unit),
        curves.CAPTION_OF_TEST_SCORES,
        "Test scores during the trainings",
    )


def _test_scores(material: Material, fingerprint: str, metric: str) -> FoldCurve | None:
    measured = material.measured
    if fingerprint not in measured.test_curves or fingerprint not in measured.trainings:
        return None
    points = measured.test_curves[fingerprint].points
    scores = {point.iteration: float(getattr(point.scores, metric)) for point in points}
    return _curve(scores, measured.trainings[fingerprint][1].best_iteration)


def _curve(scores: dict[int, float], best: int) -> FoldCurve | None:
    """The curve; None for fewer than two scores, as of an untrained trunk, or without the one of the checkpoint."""
    return FoldCurve(tuple(scores), tuple(scores.values()), best) if len(scores) > 1 and best in scores else None


def _search(key: str, title: str, history: SearchHistory) -> Iterator[Drawn]:
    """Draw a method's search; with two or more hyperparameters also the two that matter most."""
    if not history.values:
        return
    name, fold, describe = f"search_{file_name(key)}", "Searches", partial(search.alternative_text, history)
    draw = partial(search.search_history, history)
    yield from _drawn(f"{name}_history", f"{title}: trials", draw, describe, search.caption(history), fold)
    if len(history.parameters) > 1:
        x, y = search.strongest_pair(history)
        draw = partial(search.search_plane, history, x, y)
        yield from _drawn(f"{name}_plane", f"{title}: {x} and {y}", draw, describe, search.CAPTION_OF_PAIR, "Searches")


def _embeddings(material: Material) -> Iterator[Drawn]:
    shown = {key: material.figure_data[key] for key in material.best_first if key in material.figure_data}
    trained = [key for key, data in shown.items() if material.records[key][0].hyperparameters or len(data.proxies)]
    for key in (trained or list(shown))[:MAPS]:
        yield from _test_map(material.titles[key], key, shown[key])
    for key in [key for key, data in shown.items() if len(data.proxies)][:MAPS]:
        yield from _proxy_map(material.titles[key], key, shown[key])
    spectra = {material.titles[key]: data.spectrum for key, data in list(shown.items())[:SPECTRA]}
    yield from _drawn(
        "spectrum",
        "Singular values of the test embeddings",
        lambda: spectrum.singular_value_spectrum(spectra, PAGE_WIDTH),
        lambda: spectrum.alternative_text(spectra),
        spectrum.CAPTION,
    )
    for key, data in list(shown.items())[:GALLERIES]:
        yield from _drawn(
            f"gallery_{file_name(key)}",
            f"{material.titles[key]}: hardest classes",
            partial(gallery.retrieval_gallery, {"": data}, QUERIES, NEIGHBOURS),
            partial(gallery.alternative_text, data, QUERIES, NEIGHBOURS),
            gallery.CAPTION,
            "Nearest test images",
        )


def _test_map(title: str, key: str, data: FigureData) -> Iterator[Drawn]:
    classes = np.unique(data.test_labels)
    most = embedding_map.IMAGES_PER_CLASS
    rows = np.concatenate([np.flatnonzero(data.test_labels == label)[:most] for label in classes])
    labels = data.test_labels[rows]
    panel = cache(lambda: embedding_map.tsne_panel("", data.test_embeddings[rows], labels))
    return _drawn(
        f"tsne_test_{file_name(key)}",
        f"{title}: images of test classes",
        lambda: embedding_map.embedding_map(panel(), data.test_names.tolist()),
        lambda: embedding_map.alternative_text(panel()),
        embedding_map.CAPTION_OF_TEST_IMAGES,
        "Embeddings of test images (t-SNE)",
    )


def _proxy_map(title: str, key: str, data: FigureData) -> Iterator[Drawn]:
    proxies = (data.proxies, data.proxy_labels)
    panel = cache(lambda: embedding_map.tsne_panel("", data.train_embeddings, data.train_labels, *proxies))
    return _drawn(
        f"tsne_proxies_{file_name(key)}",
        f"{title}: images of training classes with their proxies",
        lambda: embedding_map.embedding_map(panel(), data.train_names.tolist()),
        lambda: embedding_map.alternative_text(panel()),
        embedding_map.CAPTION_OF_PROXIES,
        "Training images and proxies (t-SNE)",
    )
