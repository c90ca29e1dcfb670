"""The comparison of an experiment's methods on its primary score: the only test behind its marks and sentences."""

from collections.abc import Collection, Mapping, Sequence

from results.records.records import RunRecord
from results.spec.experiment_spec import Experiment, PrimaryScore
from results.statistics.method_comparison import ALPHA, ComparisonResult, compare_methods, final_alpha
from results.statistics.run_values import run_values
from results.store.experiment_results import MeasuredExperiment


def mixed_trainings(runs: Sequence[RunRecord]) -> str | None:
    """Say that runs of one table were trained by different versions of the training.

    None if all runs have the same version.
    """
    by_version: dict[int, set[str]] = {}
    for run in runs:
        by_version.setdefault(run.training_version, set()).add(run.method)
    if len(by_version) < 2:
        return None
    named = "; ".join(f"version {version}: {', '.join(sorted(by_version[version]))}" for version in sorted(by_version))
    return f"The runs were trained by different versions of the training ({named}). Run the experiment again."


def primary_score(measured: MeasuredExperiment) -> PrimaryScore:
    """Return the experiment's primary score.

    It is the score that the experiment names, else MAP@R: of the concatenated embeddings, or of the only one.
    """
    experiment = measured.summary.experiment
    return experiment.primary or default_score(measured.records)


def planned_score(experiment: Experiment) -> PrimaryScore:
    """Return the primary score of an experiment that may have no runs yet."""
    # A run of protocol `standard` tests one model.
    one_model = experiment.folds == 1 or experiment.protocol == "standard"
    return experiment.primary or PrimaryScore(embeddings="separated" if one_model else "concatenated")


def default_score(records: Sequence[RunRecord]) -> PrimaryScore:
    """Return the primary score of runs whose experiment names none."""
    single = max((len(record.fold_fingerprints) for record in records), default=0) == 1
    return PrimaryScore(embeddings="separated" if single else "concatenated")


def primary_comparison(measured: MeasuredExperiment) -> ComparisonResult | None:
    """Compare an experiment's methods on its primary score, without rows that are left out of the comparison."""
    summary = measured.summary
    score, alpha = primary_score(measured), level_of(measured)
    return comparison_on(score, measured.records, summary.compared, alpha, summary.constant)


def level_of(measured: MeasuredExperiment) -> float:
    """Return the level of the comparison. It is lower if methods may be stopped early, which costs a part of it."""
    experiment = measured.summary.experiment
    return ALPHA if experiment.first_reproductions is None else final_alpha()


def comparison_on(
    score: PrimaryScore,
    records: Sequence[RunRecord],
    methods: Mapping[str, str],
    alpha: float = ALPHA,
    constant: Collection[str] = (),
) -> ComparisonResult | None:
    """Compare methods on a score.

    Methods without runs are left out; None without any run.
    """
    values = run_values([record for record in records if record.method in methods], score.metric, score.embeddings)
    if not values:
        return None
    compared = {key: values[key] for key in methods if key in values}
    return compare_methods(compared, score.test, alpha, score.margin / 100, constant)
