"""The sentence for tables whose runs were trained by different versions of the suite's training."""

from collections.abc import Sequence

from results.records import RunRecord


def mixed_trainings(runs: Sequence[RunRecord]) -> str | None:
    """Say that runs of one table were trained by different versions of the training.

    Args:
        runs: The runs of the table.

    Returns:
        The sentence; None if all runs have the same version.
    """
    by_version: dict[int, set[str]] = {}
    for run in runs:
        by_version.setdefault(run.training_version, set()).add(run.method)
    if len(by_version) < 2:
        return None
    named = "; ".join(f"version {version}: {', '.join(sorted(by_version[version]))}" for version in sorted(by_version))
    return f"The runs were trained by different versions of the training ({named}). Run the experiment again."
