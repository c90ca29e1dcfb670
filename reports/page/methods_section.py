"""The paragraph about an experiment for the methods section of a paper: what was run, without what came out."""

from collections.abc import Iterator

from results.records.records import RunRecord
from results.spec.data_choice import samples_word
from results.spec.experiment_spec import Experiment
from results.spec.trunk_spec import NO_TRUNK
from results.store.experiment_results import MeasuredExperiment
from results.wording import counted


def methods_section(measured: MeasuredExperiment) -> str:
    """Say which methods were run on which data, with which network, searches and trainings; needs runs."""
    summary, runs = measured.summary, measured.records
    experiment = summary.experiment
    methods = len({run.method for run in runs})
    protocol = (
        "the protocol of A Metric Learning Reality Check (Musgrave et al., 2020)"
        if experiment.protocol == "mlrc"
        else f"the suite's protocol '{experiment.protocol}'"
    )
    sentences = (
        f"We tested {counted(methods, 'method')} on {summary.dataset} with {protocol}, using {_code(runs)}.",
        *_network(experiment),
        *_search(measured),
        *_trainings(measured),
        f"Scores are measured on {runs[0].test_images:,} {samples_word(summary.dataset)} of "
        f"{counted(runs[0].test_classes, 'test class')}.",
    )
    return " ".join(sentences)


def _code(runs: tuple[RunRecord, ...]) -> str:
    commits = sorted({run.provenance.commit for run in runs} - {"unknown"})
    at = {0: "", 1: f" at commit {commits[0]}" if commits else ""}.get(len(commits), f" at {len(commits)} commits")
    dirty = " with uncommitted changes" if any(run.provenance.tree_dirty for run in runs) else ""
    return f"metric-learning-reproductions{at}{dirty}"


def _network(experiment: Experiment) -> Iterator[str]:
    trunk, size = experiment.conditions.trunk, experiment.conditions.embedding_size
    embedder = f"An embedder of {size} dimensions was trained on"
    if trunk.name == NO_TRUNK:
        yield f"{embedder} given features of {trunk.width} dimensions."
    elif trunk.frozen:
        yield f"{embedder} the features of {trunk.name} ({trunk.weights} weights), which stayed as it is."
    else:
        start = "a random start" if trunk.weights == "random" else f"{trunk.weights} weights"
        yield f"The network is {trunk.name}, trained from {start}, with embeddings of {size} dimensions."


def _search(measured: MeasuredExperiment) -> Iterator[str]:
    search, trained = measured.summary.experiment.search, measured.summary.reproductions
    again = "once more with a new seed" if trained == 1 else f"{trained} times with new seeds"
    if not search.trials:
        yield f"Hyperparameters were not searched; there are {counted(trained, 'run')} of each method."
        return
    often = f"{search.searches} times from other seeds, each time " if search.searches > 1 else ""
    yield (
        f"Hyperparameters were searched {often}with {counted(search.trials, 'trial')} of each method on validation "
        f"classes, and each setting found was trained {again}."
    )
    if search.racing:
        yield "A trial that was clearly behind the best one on the same folds got no more folds."


def _trainings(measured: MeasuredExperiment) -> Iterator[str]:
    models = max(len(run.fold_fingerprints) for run in measured.records)
    epochs = measured.summary.experiment.conditions.training.max_epochs
    yield f"A run has {counted(models, 'model')}, each trained for at most {epochs:,} epochs."
    trained = [run for run in measured.records if run.iterations]
    if cut := sum(measured.cut_off_trainings(run) or 0 for run in trained):
        total = sum(len(run.fold_fingerprints) for run in trained)
        share = f"All {total}" if cut == total else f"{cut} of {total}"
        yield f"{share} trainings were cut off there while their validation score still rose."
