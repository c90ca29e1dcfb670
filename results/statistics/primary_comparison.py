"""The comparison of an experiment's methods on its primary score: the only test behind its marks and sentences."""

from collections.abc import Sequence

from results.records.records import RunRecord
from results.spec.experiment_spec import Experiment, PrimaryScore
from results.statistics.method_comparison import ALPHA, ComparisonResult, compare_methods, final_alpha
from results.statistics.run_values import EmbeddingKind, run_values
from results.store.experiment_results import MeasuredExperiment


def mixed_trainings(runs: Sequence[RunRecord]) -> str | None:
    """Say that runs of one table were trained by different versions of the training; None if they were not."""
    by_version: dict[int, set[str]] = {}
    for run in runs:
        by_version.setdefault(run.training_version, set()).add(run.method)
    if len(by_version) < 2:
        return None
    named = "; ".join(f"version {version}: {', '.join(sorted(by_version[version]))}" for version in sorted(by_version))
    return f"The runs were trained by different versions of the training ({named}). Run the experiment again."


def primary_score(measured: MeasuredExperiment) -> PrimaryScore:
    """Return the score that an experiment names, else MAP@R of the concatenated embeddings, or of the only one."""
    one_model = max((len(record.fold_fingerprints) for record in measured.records), default=0) == 1
    embeddings: EmbeddingKind = "separated" if one_model else "concatenated"
    return measured.summary.experiment.primary or PrimaryScore(embeddings=embeddings)


def planned_score(experiment: Experiment) -> PrimaryScore:
    """Return the primary score of an experiment that may have no runs yet."""
    # A run of protocol `standard` tests one model.
    one_model = experiment.folds == 1 or experiment.protocol == "standard"
    return experiment.primary or PrimaryScore(embeddings="separated" if one_model else "concatenated")


def primary_comparison(measured: MeasuredExperiment) -> ComparisonResult | None:
    """Compare an experiment's methods on its primary score.

    Rows that are left out of the comparison and methods without runs are not in it; None without any run. The level is
    lower if methods may be stopped early, which costs a part of it.
    """
    summary, score = measured.summary, primary_score(measured)
    titles = summary.compared
    records = [record for record in measured.records if record.method in titles]
    values = run_values(records, score.metric, score.embeddings)
    if not values:
        return None
    compared = {key: values[key] for key in titles if key in values}
    alpha = ALPHA if summary.experiment.first_reproductions is None else final_alpha()
    return compare_methods(compared, score.test, alpha, score.margin / 100, summary.constant)
