"""Findings about searches and trainings: what limited them, what failed in them, and how they differ from MLRC's.

A training is cut off if it ended at the largest number of epochs while its validation score still rose. More epochs
could raise its score, so a comparison of such trainings is also one of the methods' speed of learning. A setting at an
end of the range that was searched could be better in a wider range.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np

from results.answer.answers import Answer
from results.answer.limits import length_in_words
from results.answer.values import Finding
from results.numbers import ONE_DIGIT
from results.records.records import Event, RunRecord
from results.spec.ends import ProbedEnd
from results.spec.experiment_spec import Experiment
from results.spec.plan import Plan
from results.spec.search_settings import SamplerSettings
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted, every, few, joined, listed, verb

CARRIED_CHOICE = "Hyperparameters printed by a paper whose code selects on test classes carry that choice."


def carried_choice(plan: Plan) -> tuple[str, ...]:
    """Say that hyperparameters may carry a choice on test classes: most papers have no validation classes."""
    return (CARRIED_CHOICE,) if plan.experiment.protocol == "standard" and not plan.trials else ()


def search_findings(found: Answer, measured: MeasuredExperiment) -> Iterator[Finding]:
    """Say how far the searches can be trusted, and how they searched."""
    search = measured.plan.experiment.search
    yield from (Finding("note", text, "search") for text in carried_choice(measured.plan))
    if found.sample.about == "settings" or not measured.searched_methods:
        return
    if search.sampler.name != SamplerSettings().name:
        arguments = ", ".join(f"{name}={value}" for name, value in search.sampler.arguments.items())
        text = f"Optuna's {search.sampler.name}({arguments}) proposed the trials."
        detail = f"It began with {search.sampler.startup_trials} settings spread over the ranges."
        yield Finding("note", text, "search", detail)
    if search.racing:
        text = "The trials were raced: one that was clearly behind on the same folds got no more folds."
        yield Finding("note", text, "search", "MLRC trains every trial on all folds.")
    yield from _shorter_trials(measured)
    yield from equal_searches(measured)
    yield from _tuning(found)
    yield from _range_ends(found, measured)


def _shorter_trials(measured: MeasuredExperiment) -> Iterator[Finding]:
    """Say that settings were chosen in trainings that were shorter than those of the tested runs."""
    experiment = measured.plan.experiment
    if (experiment.reproduction_epochs or 0) > experiment.conditions.training.max_epochs:
        after = length_in_words(experiment.conditions.training)
        text = f"The settings were found in trainings of at most {after}; the tested runs go on."
        yield Finding("limit", text, "search", "Such settings learn fast; longer trials can find others.")


def _tuning(found: Answer) -> Iterator[Finding]:
    """Say where a setting found is below the default; the gains themselves are pairs of the answer."""
    if found.question.defaults and not found.gains:
        detail = "It takes two searches and two runs of the default of a method, or more."
        yield Finding("note", "What tuning gained is not known.", "search", detail)
    counts = {pair: sum(unit < pair.of_b.mean for unit in pair.of_a.units) for pair in found.gains}
    below = [f"{found.titles[pair.a]} {low} of {len(pair.of_a.units)}" for pair, low in counts.items() if low]
    if below:
        yield Finding("note", f"Searches whose setting is below the card's own: {joined(below)}.", "search")


def equal_searches(measured: MeasuredExperiment) -> Iterator[Finding]:
    """Name the methods of which more than half of the later searches' trials repeat a setting of an earlier search."""
    titles, equal = measured.plan.titles, measured.repeated.items()
    if named := [f"{titles[key]} {n} of {trials}" for key, (n, trials) in equal if 2 * n > trials]:
        text = f"Searches that repeat the settings of an earlier one, in trials: {joined(named)}."
        yield Finding("limit", text, "search", "Such searches differ by the seeds of their trainings alone.")


def _range_ends(found: Answer, measured: MeasuredExperiment) -> Iterator[Finding]:
    """Say which ends of ranges searches press, and which were probed; `holds` says where it matters."""
    titles = measured.plan.titles
    pressed = [f"{planned.title}: {planned.pressed}" for planned in found.question.methods.values() if planned.pressed]
    if pressed:
        yield Finding("note", f"Ends of ranges that searches press: {'; '.join(pressed)}.", "search")
    if probed := [probe_words(one, titles[one.method]) for one in measured.plan.probed]:
        text = f"Ends of ranges that were probed: {'; '.join(probed)}."
        yield Finding("note", text, "search", "Validation MAP@R of the probes, and of the tested runs.")


def probe_words(one: ProbedEnd, title: str) -> str:
    """Write what a probe showed: `PFML, loss.alpha 1 (low): at 0.5 52.4 % against 56.9 %, so it is no limit`."""
    place = f"{title}, {one.target} {one.low if one.end == 'low' else one.high:g} ({one.end}): at {one.beyond:g}"
    if not one.made:
        return f"{place} the method refuses it"
    probes, runs = (f"{ONE_DIGIT.text(fmean(values))} %" for values in zip(*one.made, strict=True))
    refused = len(one.probes) - len(one.made)
    without = f" (refused in {refused} of {counted(len(one.probes), 'search')})" if refused else ""
    return f"{place} {probes} against {runs}{without}, so {'the range was widened' if one.opens else 'it is no limit'}"


def training_findings(measured: MeasuredExperiment) -> Iterator[Finding]:
    """Say which trainings were cut off or went wrong, and what was trained."""
    titles, counts = measured.plan.titles, measured.cut_offs
    cut, trained = (sum(numbers) for numbers in zip((0, 0), *counts.values(), strict=True))
    if cut:
        share, by_method = every(cut, "training"), ""
        if cut < trained:
            share, by_method = f"{cut} of {counted(trained, 'training')}", _shares(titles, counts)
        text = f"Cut off while the validation score still rose: {share} of the tested runs."
        yield Finding("warning", text, "training", by_method.strip())
    for key, title in titles.items():
        runs = measured.runs.get(key, [])
        events = [event for run in runs for event in run.events]
        yield from _flagged(title, events, sum(len(run.specs) for run in runs))
    yield from _of_what_was_trained(measured.plan.experiment)


def _shares(titles: Mapping[str, str], counts: Mapping[str, tuple[int, int]]) -> str:
    whole = [titles[method] for method, (cut, trained) in counts.items() if cut == trained]
    parts = [f"{titles[method]} {cut} of {trained}" for method, (cut, trained) in counts.items() if 0 < cut < trained]
    return f"{joined([*parts, *([f'all of {few(whole, most=8)}'] if whole else [])])}. "


_EVENTS = {
    "diverged": "diverged; the best checkpoint before that counts",
    "no gain": "did not beat the untrained network",
    "no pairs": "had batches without two images of a class, in which a loss on pairs has nothing to pull together",
    "skipped": "skipped all steps between two validations",
    "collapsed": "ended with equal embeddings of all test images, which score 0",
    "zeros": "ended with embeddings of zeros, which have no direction and count as wrong",
}
"""What a finding says of a number of trainings, by kind of event."""


def _flagged(title: str, events: Sequence[Event], trainings: int) -> Iterator[Finding]:
    for kind, words in _EVENTS.items():
        of_kind = [event for event in events if event.kind == kind]
        choosing = sum(event.choosing for event in of_kind)
        if own := len(of_kind) - choosing:
            yield Finding("warning", f"{title}: {own} of {counted(trainings, 'training')} {words}.", "training")
        if choosing:
            which = f"{counted(choosing, 'training')} that {verb(choosing, 'choose')} the epoch"
            yield Finding("warning", f"{title}: {which} {words}.", "training")


def _of_what_was_trained(experiment: Experiment) -> Iterator[Finding]:
    trunk, embedder = experiment.conditions.trunk, experiment.conditions.embedder
    alone = "Only embedder and loss were trained, without augmentation; MLRC trains the trunk on random crops."
    if trunk.frozen:
        yield Finding("warning", f"The trunk {trunk.name} is frozen.", "training", alone)
    elif trunk.is_input_features:
        yield Finding("warning", f"The data are rows of {trunk.width} features and no images.", "training", alone)
    if embedder.hidden:
        sizes = listed([str(size) for size in embedder.hidden])
        text = f"The embedder has hidden layers of {sizes} units; MLRC's is linear."
        yield Finding("note", text, "training")
    if embedder.is_computed:
        start = "the principal components" if embedder.init == "pca" else embedder.init
        text = f"The embedder starts at {start} of the training features; MLRC's starts at random."
        yield Finding("note", text, "training")
    elif embedder.init != "random":
        yield Finding("note", f"The embedder starts from {embedder.init}, MLRC's from torch's default.", "training")


def validation_scores(measured: MeasuredExperiment, runs: Sequence[RunRecord]) -> list[float]:
    """Return the validation MAP@R, mean over folds, of the runs whose trainings are all known and have one."""
    means = []
    for run in runs:
        results = [measured.trainings[name] for name in run.fold_fingerprints if name in measured.trainings]
        scores = [result.best_map_at_r for result in results if result.best_map_at_r is not None]
        if scores and len(scores) == len(run.fold_fingerprints):
            means.append(float(np.mean(scores)))
    return means
