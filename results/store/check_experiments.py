"""What the record of an experiment says twice, and what the runs and searches that it lists say too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from results.records.experiment_summary import ExperimentSummary
from results.records.records import RunRecord
from results.spec.data_choice import DrawnSplit
from results.spec.experiment_spec import Experiment
from results.spec.hyperparameters import HyperparameterError, method_at
from results.spec.search_settings import SearchedRange
from results.spec.seeds import search_seed
from results.spec.training_spec import FoldSpec
from results.spec.trunk_spec import EmbedderSpec
from results.store.check_runs import trainval
from results.store.check_searches import CheckedStudy
from results.store.findings import hash_of


def summary_faults(name: str, fingerprint: str, summary: ExperimentSummary) -> Iterator[str]:
    """Yield how the record of an experiment contradicts its fingerprint or itself."""
    experiment = summary.experiment
    data = summary.data
    if data is not None and hash_of(lambda: experiment.fingerprint(name, data.fingerprint)) != fingerprint:
        yield "its name, settings and data do not give its fingerprint"
    if tuple(summary.methods) != experiment.rows:
        yield "its methods are not the rows of its settings"
    if summary.runs.keys() != summary.methods.keys():
        yield "its planned runs are not of its methods"
    titles = {variant.key: variant.title for variant in experiment.variants}
    if any(summary.methods.get(key, title) != title for key, title in titles.items()):
        yield "the title of a variant is not that of its settings"
    searches = experiment.search.searches if summary.trials else 1
    for key, planned in summary.runs.items():
        # A method without anything that depends on a seed has one run.
        if planned not in (1, summary.reproductions * searches):
            yield f"{planned} runs of {key} are planned, and {summary.reproductions * searches} by its settings"
    if any(method not in summary.methods for method in summary.ranges):
        yield "it has ranges of a method that it does not have"


def twice_said(content: Mapping[str, Any]) -> str | None:
    """Return how the text of a summary, which cannot be read, contradicts the experiment in it; None if it does not."""
    experiment = content.get("experiment")
    if not isinstance(experiment, Mapping):
        return None
    says = {
        "title": experiment.get("title"),
        "reproductions": experiment.get("reproductions"),
        "trials": (experiment.get("search") or {}).get("trials"),
        "dataset": (experiment.get("dataset") or {}).get("name"),
    }
    twice = [key for key, value in says.items() if key in content and content[key] != value]
    return f"{', '.join(twice)} differ between the record and its settings" if twice else None


@dataclass(frozen=True)
class Listing:
    """The place of a run or of a search in an experiment."""

    method: str
    search: int
    run: int | None = None


def listed_run_faults(summary: ExperimentSummary, place: Listing, run: RunRecord, first: FoldSpec) -> Iterator[str]:
    """Yield how a run does not fit the place in which an experiment lists it.

    Args:
        summary: The experiment.
        place: The place.
        run: The run.
        first: Its first training.
    """
    if (run.method, run.search, run.run) != (place.method, place.search, place.run):
        yield f"it is {run.method}, {run.name}, and is listed as run {place.run} of {place.method}"
        return
    whole = summary.experiment
    if run.run >= whole.reproductions or run.search >= whole.search.searches:
        yield f"the experiment has no {run.name}"
    planned = summary.runs.get(place.method)
    if planned == 1 and first.method.loss is not None and whole.reproductions > 1:
        yield f"one run of {place.method} is planned, and it depends on its seed"
    if place.method not in summary.methods:
        return  # An earlier start had more methods; their settings may have been on its command line.
    row = whole.for_row(place.method)
    wanted = {
        "protocol": (run.protocol, row.protocol),
        "dataset": (run.dataset, row.dataset.name),
        "seed": (run.seed, row.seed),
        "metrics": (set(run.metrics_concatenated), set(row.metrics)),
        **{name: (getattr(first, name), value) for name, value in _training_settings(row, first).items()},
    }
    if differing := [name for name, (found, asked) in wanted.items() if found != asked]:
        yield f"{', '.join(differing)} differ from the experiment"
    if not _is_split_of(row, first.split):
        yield f"split {first.split} differs from the experiment"
    try:
        is_set = method_at(first.method, row.settings.get(place.method, {})) == first.method
    except HyperparameterError:
        is_set = False
    if not is_set:
        yield "its hyperparameters are not those that the experiment sets"
    folds = 1 if first.split == "conventional" and row.protocol == "mlrc" else row.folds
    models, choosing = len(run.fold_fingerprints), len(run.chosen_by)
    if (models != folds) if row.protocol == "mlrc" else (choosing not in (0, folds)):
        yield f"it has {models} models and {choosing} trainings that chose an epoch, of {folds} folds"
    if summary.data is not None and place.method not in whole.conditions:
        data = summary.data
        if run.data_fingerprint != data.fingerprint:
            yield "data_fingerprint differs from the experiment"
        seen = sum(last - first_class + 1 for first_class, last in trainval(first))
        if run.test_classes != data.classes - seen or run.test_images >= data.samples:
            yield f"{run.test_images} test images of {run.test_classes} classes are not what the data leave for a test"


def _training_settings(row: Experiment, spec: FoldSpec) -> dict[str, Any]:
    """Return the fields of a training that a row of an experiment decides (`protocols.problem`)."""
    return {
        "images": row.images,
        "trunk": row.trunk,
        "embedding_size": row.embedding_size if spec.method.has_embedding_size else None,
        "training": row.training,
        "embedder_bias": row.embedder_bias or spec.method.needs_bias,
        "normalization": row.normalization,
        "embedder": EmbedderSpec() if spec.method.loss is None else row.embedder,
    }


def _is_split_of(row: Experiment, split: str) -> bool:
    """Tell whether a row's trainings can have the split of this name; with a split of the user's own, MLRC's rule
    goes by another name."""
    default = "mlrc" if row.protocol == "mlrc" else "conventional"
    if isinstance(row.split, DrawnSplit):
        return split == f"{default}_drawn_{row.split.seed}"
    wanted = row.split or default
    return split == wanted or (wanted, split) == ("mlrc", "mlrc_conventional")


def listed_study_faults(summary: ExperimentSummary, place: Listing, study: CheckedStudy) -> Iterator[str]:
    """Yield how a search does not fit the place in which an experiment lists it."""
    whole = summary.experiment
    if study.method.name != place.method:
        yield f"it searches {study.method.name}, and is listed for {place.method}"
        return
    if place.search >= whole.search.searches:
        yield f"the experiment has no search {place.search}"
    if place.method not in summary.methods:
        return
    row = whole.for_row(place.method)
    wanted = {
        "dataset": row.dataset.name,
        "images": row.images,
        "trunk": row.trunk,
        "training": row.training,
    }
    differing = [name for name, value in wanted.items() if study.shared[name] != value]
    if study.identity["seed"] != search_seed(row.seed, place.search):
        differing.append("seed")
    if study.identity.get("sampler") != row.search.sampler.model_dump(mode="json"):
        differing.append("sampler")
    if ("racing" in study.identity) != row.search.racing:
        differing.append("racing")
    same_data = summary.data is None or place.method in whole.conditions
    if not same_data and summary.data and study.shared["data_fingerprint"] != summary.data.fingerprint:
        differing.append("data_fingerprint")
    if summary.ranges.get(place.method, {}) != _ranges(study):
        differing.append("ranges")
    if differing:
        yield f"{', '.join(differing)} differ from the experiment"


def _ranges(study: CheckedStudy) -> dict[str, SearchedRange]:
    return {
        target: SearchedRange(scale=range_["scale"], low=range_["low"], high=range_["high"])
        for target, range_ in study.space.items()
        if range_.get("low") is not None and range_.get("high") is not None
    }
