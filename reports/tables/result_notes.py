"""What a reader must know about searches and trainings before comparing scores: notes of the table and of the page."""

from collections.abc import Mapping, Sequence
from typing import Literal

from reports.wording import joined, listed
from results.records.experiment_summary import ExperimentSummary
from results.spec.data_choice import OWN_DATA, DrawnSplit
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.search_settings import SamplerSettings
from results.statistics.cut_off import CutOff, cut_offs, range_ends
from results.statistics.planning import MOST_RUNS, RunBudget
from results.statistics.runner_up import RunnerUp, runners_up
from results.store.experiment_results import MeasuredExperiment

CARRIED_CHOICE = "Hyperparameters printed by a paper whose code selects on test classes carry that choice."


def carries_choice(protocol: str, trials: int) -> bool:
    """Return whether the hyperparameters come from papers that may have selected on test classes.

    Papers with tables of the protocol `standard` mostly have no validation classes. MLRC and CCP have them.
    """
    return protocol == "standard" and trials == 0


def origin_of_hyperparameters(protocol: str, trials: int) -> str:
    """Return one or two sentences on the origin of the hyperparameters; see `carries_choice` for the arguments."""
    if trials == 1:
        return "Hyperparameters: those of the only trial of each method."
    if trials:
        return f"Hyperparameters: best of {trials} trials per method by validation MAP@R."
    given = "Hyperparameters: from papers or from the experiment file, not searched."
    return f"{given} {CARRIED_CHOICE}" if carries_choice(protocol, trials) else given


def choice_notes(summary: ExperimentSummary) -> tuple[str, ...]:
    """Return a note on hyperparameters that carry a choice on test classes; none if nothing carries one."""
    return (CARRIED_CHOICE,) if carries_choice(summary.experiment.protocol, summary.trials) else ()


def budget_text(budget: RunBudget, score: PrimaryScore, unit: Literal["run", "search"] = "run") -> tuple[str, str]:
    """Write what a budget can see, and what that follows from.

    Returns:
        A sentence or two with the smallest detectable difference and the runs that a difference takes, and a sentence
        with the deviation behind them.
    """
    name = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}"
    wanted = f"{100 * budget.wanted:g} points"
    needed = f"more than {MOST_RUNS}" if budget.runs_needed is None else f"{budget.runs_needed}"
    units = "runs" if unit == "run" else "searches"
    if budget.smallest is None:
        sees = f"One {unit} of each of {budget.methods} methods can show no difference in {name}."
    else:
        sees = (
            f"{budget.runs} {units} of each of {budget.methods} methods can show differences of "
            f"{100 * budget.smallest:.1f} points or more in {name}, with a probability of 80 %."
        )
    source = "of this experiment's runs" if budget.from_own_runs else "of the runs in results/measured"
    deviation = f"{100 * budget.deviation:.2f} points"
    basis = f"From the {unit}-to-{unit} deviation {source}, {deviation}, taken as equal for all methods, "
    basis += "and corrected for all pairs."
    return f"{sees} A difference of {wanted} would take {needed} {units} of each.", basis


SETTINGS_FOUND = (
    "Only the reproductions vary: the intervals are about the settings found. Another search could find other "
    "settings, and the scores could then change by more than the intervals. `--searches` repeats the search."
)


def result_notes(measured: MeasuredExperiment) -> tuple[str, ...]:
    """Write the notes below the table of results."""
    return (
        *other_methods_notes(measured),
        *part_notes(measured),
        *split_notes(measured),
        *trained_part_notes(measured),
        *search_notes(measured),
        *trial_notes(measured),
        *look_notes(measured),
        *close_trials(measured),
        *range_end_notes(measured),
        *cut_off_notes(measured),
    )


def other_methods_notes(measured: MeasuredExperiment) -> list[str]:
    """Name the methods that the store has runs of, but that the last start of the experiment did not ask for."""
    if not measured.others:
        return []
    return [
        f"Not shown: {', '.join(measured.others)}. The store has their runs; the last start asked for other methods."
    ]


def part_notes(measured: MeasuredExperiment) -> list[str]:
    """Say that only a part of the published dataset was used."""
    if not measured.summary.experiment.dataset.subset:
        return []
    return [f"Only a part of the dataset was used: {part_of_the_data(measured)}. Scores on the whole of it differ."]


def part_of_the_data(measured: MeasuredExperiment) -> str:
    """Name the dataset and the number of its classes that were used: `100 classes of cub200`."""
    data, dataset = measured.summary.data, measured.summary.dataset
    return dataset if data is None else f"{data.classes} classes of {dataset}"


def trained_part_notes(measured: MeasuredExperiment) -> list[str]:
    """Say that the trunk was frozen or that there was none, and how the embedder differs from MLRC's."""
    experiment, notes = measured.summary.experiment, []
    if experiment.trunk.frozen:
        notes.append(
            f"The trunk {experiment.trunk.name} is frozen: its features were computed once, and only embedder and loss "
            "were trained. There is no fine-tuning and no augmentation, so these scores do not compare with those of "
            "MLRC, which trains the trunk on random crops."
        )
    elif experiment.trunk.is_input_features:
        notes.append(
            f"The data are rows of {experiment.trunk.width} features and no images. Only embedder and loss were "
            "trained, without fine-tuning and without augmentation, so these scores do not compare with those of MLRC."
        )
    if experiment.embedder.hidden:
        sizes = listed([str(size) for size in experiment.embedder.hidden])
        notes.append(f"The embedder has hidden layers of {sizes} units. MLRC's embedder is linear.")
    if experiment.embedder.init == "pca":
        notes.append(
            "The embedder of every method with a loss starts at the principal components of the training images' "
            "features. MLRC's embedder starts at random."
        )
    return notes


def split_notes(measured: MeasuredExperiment) -> list[str]:
    """Say that the test classes were drawn at random, or are those of the user's split file."""
    experiment = measured.summary.experiment
    if isinstance(experiment.split, DrawnSplit):
        return [
            f"The test classes are a half of the classes, drawn at random with the seed {experiment.split.seed}. In "
            "MLRC they are the second half in the order of the classes."
        ]
    given = experiment.split is None and experiment.dataset.name in OWN_DATA
    if given and any(spec.split == "mlrc_conventional" for spec, _ in measured.trainings.values()):
        return ["Training and test classes are those of the user's split file, not the halves of MLRC."]
    return []


def search_notes(measured: MeasuredExperiment) -> list[str]:
    """Say that the search was not repeated, or how intervals contain its variation."""
    searched = [record for record in measured.records if record.hyperparameters]
    if measured.summary.trials == 0 or not searched:
        return []
    count = len({record.search for record in searched})
    if count == 1:
        return [SETTINGS_FOUND]
    return [
        f"Every method was searched {count} times from other seeds. Intervals and tests use the mean of each search's "
        "runs, so they contain the variation of the search. Methods without hyperparameters have runs only."
    ]


def trial_notes(measured: MeasuredExperiment) -> list[str]:
    """Say that another sampler than the default proposed the trials, and that they were raced."""
    search, notes = measured.summary.experiment.search, list[str]()
    if measured.summary.trials == 0 or not any(record.hyperparameters for record in measured.records):
        return notes
    if search.sampler.name != SamplerSettings().name:
        arguments = ", ".join(f"{name}={value}" for name, value in search.sampler.arguments.items())
        notes.append(
            f"After {search.sampler.startup_trials} settings spread over the ranges, Optuna's "
            f"{search.sampler.name}({arguments}) proposed the trials; by default a Gaussian process does."
        )
    if search.racing:
        notes.append(
            "The trials of the searches were raced: a trial that was clearly behind the best trial on the same folds "
            "got no more folds. It cannot be the best trial, and the search was told its expected score. MLRC trains "
            "every trial on all folds."
        )
    return notes


def look_notes(measured: MeasuredExperiment) -> list[str]:
    """Say that methods could be stopped early, and that runs were added after a look at the results."""
    summary, notes = measured.summary, []
    if summary.experiment.first_reproductions is not None:
        notes.append(
            f"Methods that were clearly behind the leader after {summary.experiment.first_reproductions} runs or later "
            f"got no more of the {summary.reproductions} runs. The boundary was computed beforehand. The probability "
            "of a wrong stop or a wrong claim is at most 5 % in all."
        )
    if summary.seen_after:
        counts = " and ".join(str(count) for count in summary.seen_after)
        notes.append(
            f"The number of runs was raised to {summary.reproductions} when the results of {counts} runs were known. "
            "Runs that are added after a look make wrong claims more likely than the tests say."
        )
    return notes


def close_trials(measured: MeasuredExperiment, titles: Mapping[str, str] | None = None) -> list[str]:
    """Name the searches whose second-best trial lies within the noise of the best."""
    names = titles or measured.summary.methods
    close = [pair for pair in runners_up(measured) if pair.within_noise]
    if not close:
        return []
    several = len({search for _, search in measured.searches}) > 1
    cases = [_close_pair(names[pair.method], pair, several) for pair in close]
    return [
        "The two best trials of these searches lie within the noise of their scores, so trained again another setting "
        f"could win: {'; '.join(cases)}."
    ]


def range_end_notes(measured: MeasuredExperiment, titles: Mapping[str, str] | None = None) -> list[str]:
    """Name the hyperparameters whose best value lies at an end of the range that was searched."""
    names = titles or measured.summary.methods
    by_method: dict[str, list[str]] = {}
    for one in range_ends(measured):
        count = f" in {one.found} of {one.searches} searches" if one.searches > 1 else ""
        by_method.setdefault(names[one.method], []).append(f"{one.target} {one.value:g} ({one.end}{count})")
    if not by_method:
        return []
    cases = [f"{title}: {', '.join(ends)}" for title, ends in by_method.items()]
    return [
        "Settings found at the lowest or highest value that was searched, so a wider range could hold a better one: "
        f"{'; '.join(cases)}."
    ]


def cut_off_notes(measured: MeasuredExperiment, titles: Mapping[str, str] | None = None) -> list[str]:
    """Name the methods whose trainings were cut off, with their numbers."""
    names, counts = titles or measured.summary.methods, cut_offs(measured)
    if not counts:
        return []
    trained = sum(count.trainings for count in counts)
    cut = sum(count.cut_off for count in counts)
    which = f"all {cut} trainings of {_listed(names, counts)}" if cut == trained else "; ".join(_shares(names, counts))
    return [
        f"Cut off by the largest number of epochs with the last checkpoint the best: {which}. More epochs could raise "
        "these scores, so the table compares the speed of learning as well."
    ]


def _shares(names: Mapping[str, str], counts: Sequence[CutOff]) -> list[str]:
    by_share: dict[str, list[str]] = {}
    for count in counts:
        share = f"{'' if count.counted else 'at least '}{count.cut_off} of {count.trainings} trainings"
        by_share.setdefault(share, []).append(names[count.method])
    return [f"{share} of {'each of ' if len(titles) > 1 else ''}{listed(titles)}" for share, titles in by_share.items()]


def _close_pair(title: str, pair: RunnerUp, several: bool) -> str:
    search = f", search {pair.search}" if several else ""
    return (
        f"{title}{search}, validation MAP@R {100 * pair.best:.2f} and {100 * pair.second:.2f} with a run-to-run "
        f"deviation of {100 * pair.noise:.2f} (another order in about {100 * pair.chance_of_another_order:.0f} % of "
        "repetitions)"
    )


def _listed(titles: Mapping[str, str], counts: Sequence[CutOff]) -> str:
    return joined([titles[count.method] for count in counts])
