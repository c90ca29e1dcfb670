"""The figures of a page: intervals, curves and sweeps of runs, and searches."""

import base64
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from reports.figures import score_figures
from reports.figures.score_figures import FoldCurve
from reports.figures.style import FigureError, files_of
from reports.page.material import Material
from reports.page.sweeps import dependence_plot, sweeps_of
from results.atomic_files import file_name, write_atomically
from results.records.records import RunRecord
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.wording import capitalized


@dataclass(frozen=True)
class PageFigure:
    """A figure.

    Attributes:
        name: Name of the files, without suffix.
        files: Contents of the files by suffix.
        caption: Explains how to read the figure.
        section: Heading of the collapsed section that the figure belongs to; empty for a figure that is always visible.
    """

    name: str
    title: str
    files: Mapping[str, str | bytes]
    caption: str = ""
    section: str = ""

    @cached_property
    def image(self) -> str:
        """The picture as a data URI."""
        png = self.files["png"]
        assert isinstance(png, bytes)
        return f"data:image/png;base64,{base64.b64encode(_smaller(png)).decode()}"

    def save(self, folder: Path) -> list[str]:
        """Write the files into `folder`, and return their names."""
        for suffix, content in self.files.items():
            write_atomically(folder / f"{self.name}.{suffix}", content)
        return [f"{self.name}.{suffix}" for suffix in self.files]


def _smaller(png: bytes) -> bytes:
    """A figure in 256 colours has a third of the bytes."""
    picture, buffer = Image.open(io.BytesIO(png)).convert("RGB"), io.BytesIO()
    picture.quantize(256, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return min(png, buffer.getvalue(), key=len)


def page_figures(material: Material) -> Iterator[PageFigure]:
    """Draw all figures for which there are data."""
    if material.answer.intervals:
        yield from _intervals(material)
    if material.records:
        yield from sweep_figures([material])
        yield from _validation_curves(material)
        yield from _test_curves(material)
        for key in (key for key in material.records if key in material.searches):
            yield from _search(material, key)


def _figure(name: str, title: str, draw: Callable[[], Figure], caption: str, section: str = "") -> Iterator[PageFigure]:
    """Draw a figure; nothing if there are no data for it."""
    try:
        figure = draw()
    except FigureError:
        return
    else:
        yield PageFigure(name, title, files_of(figure), caption, section)


def _intervals(material: Material) -> Iterator[PageFigure]:
    found = material.answer
    rows = {material.titles[key]: (found.values[key].single, found.intervals[key]) for key in material.order}
    score = ", ".join(filter(None, (material.score_name, material.scale)))
    draw = partial(score_figures.interval_plot, rows, score, found.sample, found.scaling)
    return _figure(
        "intervals",
        f"{capitalized(material.score_name)} by method",
        draw,
        score_figures.caption_of_intervals(found.sample),
    )


def sweep_figures(materials: Sequence[Material]) -> Iterator[PageFigure]:
    """Draw the sweeps of an experiment, or those over the panels of its file."""
    for sweep in sweeps_of(materials):
        try:
            frame = sweep.frame()
        except FigureError:
            continue
        values = frame["values"].map(lambda values: " ".join(f"{value:.12g}" for value in values))
        csv = frame.assign(values=values).to_csv(index=False, lineterminator="\n", float_format="%.12g")
        name, metric = f"sweep_{file_name(sweep.parameter)}", HEADLINE_METRICS[sweep.metric]
        draw = partial(dependence_plot, frame, sweep.parameter, metric)
        for figure in _figure(name, f"{metric} and {sweep.parameter}", draw, sweep.note(frame)):
            yield replace(figure, files={**figure.files, "csv": csv})


def _validation_curves(material: Material) -> Iterator[PageFigure]:
    title = "Validation scores during the trainings of each method's first run"
    trainings = material.measured.trainings.items()
    known = {name: {one.iteration: one.map_at_r for one in result.curve} for name, result in trainings}
    firsts = {key: records[:1] for key, records in material.records.items()}
    draw = partial(score_figures.score_curves, _curves(material, firsts, known))
    return _figure("validation_curves", title, draw, score_figures.CAPTION_OF_VALIDATIONS)


def _test_curves(material: Material) -> Iterator[PageFigure]:
    metric = material.measured.plan.experiment.peeking_metric
    name, unit = f"test {HEADLINE_METRICS[metric]}", "run" if material.folds == 1 else "fold"
    # A run with one training is one line; of runs with several folds only the first is drawn.
    shown = {key: records[: None if unit == "run" else 1] for key, records in material.records.items()}
    tests = material.measured.test_curves.items()
    known = {name: {one.iteration: getattr(one.scores, metric) for one in curve.points} for name, curve in tests}
    lines = _curves(material, shown, known)
    title, caption = f"{capitalized(name)} during the trainings", score_figures.CAPTION_OF_TEST_SCORES
    draw = partial(score_figures.score_curves, lines, name, unit)
    return _figure("test_curves", title, draw, caption, "Test scores during the trainings")


def _curves(
    material: Material, shown: dict[str, list[RunRecord]], known: Mapping[str, Mapping[int, float | None]]
) -> dict[str, list[FoldCurve]]:
    """The curves of trainings by the method's title. Those of one score, such as an untrained trunk's, are left out."""
    found: dict[str, list[FoldCurve]] = {}
    for key, records in shown.items():
        for name in (name for record in records for name in record.fold_fingerprints):
            points = known.get(name, {}).items() if name in material.measured.trainings else ()
            scores = {at: score for at, score in points if score is not None and math.isfinite(score)}
            best = material.measured.trainings[name].best_iteration if scores else 0
            if len(scores) > 1 and best in scores:
                found.setdefault(material.titles[key], []).append(FoldCurve(scores, best))
    return found


def _search(material: Material, key: str) -> Iterator[PageFigure]:
    """Draw a method's search."""
    trials, title = material.searches[key], material.titles[key]
    if all(trial.score is None for trial in trials):
        return
    name, section = f"search_{file_name(key)}", "The search"
    draw = partial(score_figures.search_history, trials)
    yield from _figure(f"{name}_history", f"{title}: trials", draw, score_figures.caption_of_search(trials), section)
