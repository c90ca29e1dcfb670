"""How the settings of a stored experiment differ from the suite's file of its name: by options or by another file.

Read without torch, since a table that is drawn from a store needs none.
"""

from reproduce.config.experiment_file import load_experiments
from reproduce.config.strict_yaml import EXPERIMENTS, names_in
from results.records.experiment_summary import ExperimentSummary
from results.spec.experiment_spec import FREE_SETTINGS, Experiment, is_among


def deviations(name: str, summary: ExperimentSummary) -> tuple[str, ...]:
    """Say in phrases how an experiment was run differently from the suite's file of its name.

    Only what decides a number counts: further or fewer methods, the number of reproductions and of searches, the seed
    and a subset of the dataset are no deviations. Neither are more trials of a search, nor none, which takes the
    published optimum.
    """
    in_file = suite_experiment(name)
    if isinstance(in_file, str):
        return (in_file,)
    different = summary.experiment.differences(in_file)
    if summary.trials == 0 < in_file.search.trials or summary.trials > in_file.search.trials > 0:
        different.pop("search.trials", None)
    changed = [variant for variant in summary.experiment.variants if variant not in in_file.variants]
    return (
        *(
            f"{key} {stored} where the suite's file has {theirs}"
            for key, (stored, theirs) in different.items()
            if not is_among(key, FREE_SETTINGS)
        ),
        *(f"variant {variant.key} is not that of the suite's file" for variant in changed),
    )


def suite_experiment(name: str) -> Experiment | str:
    """Return the experiment in the suite's own file, given NAME or NAME/PANEL; a phrase says why there is none."""
    file, _, panel = name.partition("/")
    if file not in names_in(EXPERIMENTS):
        return "the suite has no experiment file of this name"
    experiments = load_experiments(file, {})
    experiment = experiments.get(f"{file}/{panel}" if panel else file)
    if experiment is not None:
        return experiment
    return f"the suite's file has no panel {panel!r}" if panel else "the suite's file has panels"
