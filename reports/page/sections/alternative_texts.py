"""Alternative texts of figures: what is to be seen in them, for readers who cannot see them."""

from collections.abc import Mapping, Sequence

import numpy as np

from reports.figures.beside_print import PublishedRowValues
from reports.figures.curves import MethodCurves
from reports.figures.dependence import DependencePanel
from reports.figures.intervals import MethodRuns
from reports.figures.similarity import SimilarityPanel
from reports.figures.spectrum import Spectrum
from reports.figures.trials import Parameter, TrialPoint, finished
from reports.wording import listed, percent
from results.statistics.intervals import student_t_interval

_BEST_TRIALS = 5


def of_intervals(methods: Sequence[MethodRuns]) -> str:
    """Describe means with intervals, the highest first, and published values."""
    ordered = sorted(methods, key=lambda method: -student_t_interval(method.values).mean)
    means = [f"{method.name} {percent(student_t_interval(method.values))}" for method in ordered]
    published = [f"{method.name} {100 * method.published:.2f} %" for method in ordered if method.published is not None]
    beside = f" Published: {'; '.join(published)}." if published else ""
    return f"Means with 95 % intervals over runs, the highest first: {'; '.join(means)}.{beside}"


def of_published_rows(rows: Sequence[PublishedRowValues], score: str) -> str:
    """Describe each published value beside our mean and prediction interval."""
    texts = []
    for row in rows:
        ends = ""
        if row.prediction is not None and row.prediction.half_width is not None:
            ends = f", predicted {row.prediction.low:.2f} to {row.prediction.high:.2f}"
        texts.append(f"{row.name} {row.published:.2f}, ours {row.ours.mean:.2f}{ends}")
    return f"Published values of {score}: {'; '.join(texts)}."


def of_ranks(ranks: Mapping[str, float], blocks: str, groups: Sequence[Sequence[str]]) -> str:
    """Describe mean ranks, the best first, and the groups that bars join."""
    values = "; ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    bars = "; ".join(listed(group) for group in groups)
    return f"Mean ranks over {blocks}: {values}. " + (f"Bars join: {bars}." if bars else "No bar joins any methods.")


def of_curves(curves: Sequence[MethodCurves], metric: str, unit: str = "fold") -> str:
    """Describe the start, the highest point and the end of each method's mean curve."""
    texts = []
    for method in curves:
        iterations, table = method.common
        if not iterations:
            texts.append(f"{method.name}: the {unit}s have no iteration in common")
            continue
        mean = 100 * table.mean(axis=0)
        best = int(mean.argmax())
        texts.append(
            f"{method.name}: {mean[0]:.1f} % after {iterations[0]} iterations, highest {mean[best]:.1f} % after "
            f"{iterations[best]}, {mean[-1]:.1f} % at the end after {iterations[-1]}"
        )
    return f"{metric} against iterations, mean over {unit}s. {'; '.join(texts)}."


def of_dependence(panels: Sequence[DependencePanel], score: str) -> str:
    """Describe the mean of each curve at each value of the setting."""
    texts = []
    for panel in panels:
        for curve in panel.series:
            shown = sorted((value, np.mean(runs)) for value, runs in curve.runs.items() if runs)
            means = [f"{value:g}: {100 * mean:.2f} %" for value, mean in shown]
            texts.append(f"{curve.name} on {panel.title}: {', '.join(means)}")
    return f"Mean {score} by {panels[0].parameter}. {'; '.join(texts)}."


def of_search(trials: Sequence[TrialPoint]) -> str:
    """Describe the values of a search: range, median, and when the best was reached."""
    done = finished(trials)
    values = 100 * np.array([value for _, value in done])
    best = int(values.argmax())
    failed = len(trials) - len(done)
    return (
        f"Validation MAP@R of {len(done)} trials, from {values.min():.2f} % to {values.max():.2f} %, median "
        f"{np.median(values):.2f} %. The best trial is number {done[best][0].number + 1}; the first trial has "
        f"{values[0]:.2f} %." + (f" {failed} trial{'s' if failed > 1 else ''} failed." if failed else "")
    )


def of_parallel_coordinates(trials: Sequence[TrialPoint], parameters: Sequence[Parameter]) -> str:
    """Describe where the best trials lie on each axis, within the range of all trials."""
    done = [trial for trial, _ in sorted(finished(trials), key=lambda pair: -pair[1])]
    best = done[:_BEST_TRIALS]
    ranges = [
        f"{parameter.name} {_range(parameter, best)} (all trials {_range(parameter, done)})" for parameter in parameters
    ]
    count = f"{len(done)} lines, one per trial, over {len(parameters)} hyperparameters"
    return f"{count}. The best {len(best)} trials: {'; '.join(ranges)}."


def of_contour(trials: Sequence[TrialPoint], x: Parameter, y: Parameter) -> str:
    """Describe where the best trial lies, and in which range the trials and their values lie."""
    done = finished(trials)
    best, value = max(done, key=lambda pair: pair[1])
    lowest = min(value for _, value in done)
    points = [trial for trial, _ in done]
    return (
        f"Validation MAP@R of {len(done)} trials from {100 * lowest:.2f} % to {100 * value:.2f} %, over {x.name} "
        f"{_range(x, points)} and {y.name} {_range(y, points)}. The best trial has {x.name} "
        f"{best.parameters[x.name]:.3g} and {y.name} {best.parameters[y.name]:.3g}."
    )


def of_map(places: np.ndarray, labels: np.ndarray) -> str:
    """Describe how well the classes are apart in a map of test images."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    right = float(np.mean(labels[distances.argmin(axis=1)] == labels))
    return (
        f"t-SNE of {len(places)} embeddings of {len(np.unique(labels))} test classes. For {100 * right:.0f} % of the "
        "points the nearest point is of the same class."
    )


def of_proxy_map(places: np.ndarray, labels: np.ndarray, stars: np.ndarray, star_labels: np.ndarray) -> str:
    """Describe how many images lie nearest to a proxy of their class."""
    distances = np.linalg.norm(places[:, None] - stars[None], axis=2)
    right = float(np.mean(star_labels[distances.argmin(axis=1)] == labels))
    return (
        f"t-SNE of {len(places)} training images of {len(np.unique(labels))} classes with {len(stars)} proxies. For "
        f"{100 * right:.0f} % of the images the nearest proxy is of the same class."
    )


def of_similarities(panels: Sequence[SimilarityPanel]) -> str:
    """Describe the mean cosine of images with proxies of their class and of other classes."""
    texts = []
    for panel in panels:
        same = np.sort(panel.labels)[:, None] == np.sort(panel.proxy_labels)[None]
        cosines = panel.similarities
        within = f"{cosines[same].mean():.2f}" if same.any() else "none"
        between = f"{cosines[~same].mean():.2f}" if not same.all() else "none"
        texts.append(f"{panel.title} {within} within a class, {between} between classes")
    return f"Heat maps of the cosine between images and proxies. Means: {'; '.join(texts)}."


def of_spectra(spectra: Sequence[Spectrum]) -> str:
    """Describe the largest singular value and how many values make half of the sum."""
    texts = []
    for spectrum in spectra:
        half = int(np.searchsorted(np.cumsum(spectrum.shares), 0.5)) + 1
        texts.append(
            f"{spectrum.name}: the largest is {100 * spectrum.shares[0]:.1f} % of the sum, the largest {half} of "
            f"{len(spectrum.values)} make half of it"
        )
    return f"Falling curves of the singular values' shares. {'; '.join(texts)}."


def _range(parameter: Parameter, trials: Sequence[TrialPoint]) -> str:
    values = [trial.parameters[parameter.name] for trial in trials]
    return f"{min(values):.3g} to {max(values):.3g}"
