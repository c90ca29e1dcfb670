"""What a reader must know about searches and trainings before comparing scores: notes of the table and of the page."""

from collections.abc import Mapping, Sequence

from reports.wording import capitalized, counted, end_of_range, failed_searches, joined, listed, plural, searches_differ
from results.records.experiment_summary import ExperimentSummary
from results.spec.data_choice import OWN_DATA, DrawnSplit
from results.spec.experiment_spec import PrimaryScore
from results.spec.mlrc_constants import HEADLINE_METRICS
from results.spec.search_settings import SamplerSettings
from results.statistics.comparison_result import ComparisonResult
from results.statistics.cut_off import CutOff, cut_offs, range_ends
from results.statistics.planning import MOST_UNITS, Detectable
from results.statistics.primary_comparison import unit_of
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
        return f"Hyperparameters: best of {trials} trials per search by validation MAP@R."
    given = "Hyperparameters: from papers or from the experiment file, not searched."
    return f"{given} {CARRIED_CHOICE}" if carries_choice(protocol, trials) else given


def choice_notes(summary: ExperimentSummary) -> tuple[str, ...]:
    """Return a note on hyperparameters that carry a choice on test classes; none if nothing carries one."""
    return (CARRIED_CHOICE,) if carries_choice(summary.experiment.protocol, summary.trials) else ()


SEARCH_NOT_KNOWN = (
    "How far two searches of this size differ is not known here, so the table compares the settings that were found, "
    "not the methods. 3 searches of each would say."
)


def budget_text(budget: Detectable, score: PrimaryScore) -> tuple[str, str]:
    """Write what a budget can see, and what that follows from.

    Returns:
        Sentences with the smallest difference that it shows, what one search (or run) more would show, and how many a
        difference of the margin takes; and sentences with the deviation behind them.
    """
    name = f"{score.embeddings} {HEADLINE_METRICS[score.metric]}"
    unit = "run" if budget.unit == "run" else "search"
    given = f"{counted(budget.units, unit)} of each of {budget.methods} methods"
    if budget.deviation is None:
        say = "They will say themselves." if budget.units > 1 else "3 searches of each would say."
        return (
            f"What {given} can show in {name} is not known, since no kept record says how far two searches of this "
            "size differ.",
            say,
        )
    if budget.smallest is None:
        sees = f"{given} can show no difference in {name}."
    else:
        smallest = f"{100 * budget.smallest:.1f} points or more in {name}"
        sees = f"{given} can show differences of {smallest}, with a probability of 80 %."
    if budget.one_more is not None:
        sees += f" One {unit} more of each would show {100 * budget.one_more:.1f} points."
    needed = f"more than {MOST_UNITS:,} {plural(unit)}" if budget.needed is None else counted(budget.needed, unit)
    sees += f" A difference of {100 * budget.wanted:g} points takes {needed} of each."
    asked = {"all": "all pairs", "best": "each method with the best"}.get(score.compare, f"each with {score.compare}")
    doubled = " For one search each it is doubled." if budget.unit == "single search" else ""
    return sees, (
        f"The deviation between {plural(unit)} is {100 * budget.deviation:.2f} points in {budget.source}, taken as "
        f"equal for all methods.{doubled} Corrected for {asked}."
    )


def result_notes(measured: MeasuredExperiment, comparison: ComparisonResult | None) -> tuple[str, ...]:
    """Write the notes below the table of results, whose methods are compared in `comparison`."""
    return (
        *other_methods_notes(measured),
        *part_notes(measured),
        *split_notes(measured),
        *trained_part_notes(measured),
        *search_notes(measured, comparison),
        *trial_notes(measured),
        *look_notes(measured),
        *close_trials(measured),
        *range_end_notes(measured),
        *cut_off_notes(measured),
    )


def other_methods_notes(measured: MeasuredExperiment) -> list[str]:
    """Name the methods that the store has runs of under the same settings, but that are not of this experiment."""
    if not measured.others:
        return []
    return [
        f"Not shown: {', '.join(measured.others)}. The store has their runs under the same settings; this experiment "
        "was started without them."
    ]


def part_notes(measured: MeasuredExperiment) -> list[str]:
    """Say that only a part of the published dataset was used, what was left out, and which images are equal."""
    data, notes = measured.summary.data, []
    if measured.summary.experiment.dataset.subset:
        part = part_of_the_data(measured)
        notes.append(f"Only a part of the dataset was used: {part}. Scores on the whole of it differ.")
    if data is not None and data.left_out:
        notes.append(f"Left out of the data: {'; '.join(data.left_out)}.")
    if data is not None and data.equal_files:
        notes.append(f"The data have {data.equal_files}.")
    return notes


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
    elif experiment.embedder.init != "random":
        notes.append(f"The embedder starts from {experiment.embedder.init}, MLRC's from torch's default.")
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


def search_notes(measured: MeasuredExperiment, comparison: ComparisonResult | None) -> list[str]:
    """Say how far one search can be trusted, or what repeated ones are for, and which of them failed."""
    experiment = measured.summary.experiment
    unit = unit_of(experiment)
    if unit == "run" or not measured.searched_methods:
        return []
    if unit == "single search":
        if comparison is None or comparison.assumed is None:
            return [SEARCH_NOT_KNOWN]
        return [
            "Every method was searched once, so the intervals are about the settings found. "
            f"{capitalized(searches_differ(comparison.assumed))}. The tests of methods assume twice as much."
        ]
    notes = [
        f"Methods with hyperparameters are searched {experiment.search.searches} times from other seeds; others have "
        "as many runs. Intervals and tests take the mean of a search's runs as one value, so they contain the "
        "variation of the search. In simulations of this suite, 95 to 97 % of the intervals over 3 searches contain "
        "the true mean."
    ]
    values = {} if comparison is None else comparison.values
    failed = [failed_searches(measured.summary.methods[key], own) for key, own in values.items() if own.failed]
    return [*notes, *(f"{capitalized(said)}. Failed searches count like the others." for said in failed)]


def single_searches(
    comparison: ComparisonResult | None, titles: Mapping[str, str], score: PrimaryScore
) -> tuple[str, ...]:
    """List the means of every method's complete searches in the primary score, if searches are repeated."""
    if comparison is None or comparison.unit != "search":
        return ()
    means = [
        f"{titles[key]} {', '.join(f'{100 * unit:.2f}' for unit in values.units)}"
        for key, values in comparison.values.items()
        if values.units and values.searched
    ]
    if not means:
        return ()
    return (f"Single searches, {score.embeddings} {HEADLINE_METRICS[score.metric]}: {'; '.join(means)}.",)


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
    """Say that searches or runs were added after a look at the results."""
    seen = [str(count) for count in measured.summary.seen_after]
    if not seen:
        return []
    return [
        f"The number of runs or searches was raised after results were known ({listed(seen)}). Adding after a look "
        "makes wrong claims more likely than the tests say."
    ]


def close_trials(measured: MeasuredExperiment, titles: Mapping[str, str] | None = None) -> list[str]:
    """Name the searches whose second-best trial lies within the noise of the best; count them if searches repeat."""
    names, compared = titles or measured.summary.methods, runners_up(measured)
    close = [pair for pair in compared if pair.within_noise]
    if not close:
        return []
    if any(pair.search for pair in compared):
        return [
            f"In {len(close)} of {counted(len(compared), 'search')} the two best trials lie within the noise of their "
            "scores, so trained again another setting could win. The intervals over searches contain this."
        ]
    cases = [_close_pair(names[pair.method], pair) for pair in close]
    return [
        "The two best trials of these searches lie within the noise of their scores, so trained again another setting "
        f"could win: {'; '.join(cases)}."
    ]


def range_end_notes(measured: MeasuredExperiment, titles: Mapping[str, str] | None = None) -> list[str]:
    """Name the hyperparameters whose best value lies at an end of the range in most searches, and count the others."""
    names = titles or measured.summary.methods
    ends = range_ends(measured)
    in_most: dict[str, list[str]] = {}
    for one in ends:
        if 2 * one.found > one.searches:
            in_most.setdefault(names[one.method], []).append(end_of_range(one))
    if not ends:
        return []
    cases = [f"{title}: {', '.join(own)}" for title, own in in_most.items()]
    few = len(ends) - sum(map(len, in_most.values()))
    if few:
        cases.append(f"{few} {'more ' if cases else ''}in no more than half of the searches of their method")
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


def _close_pair(title: str, pair: RunnerUp) -> str:
    return (
        f"{title}, validation MAP@R {100 * pair.best:.2f} and {100 * pair.second:.2f} with a run-to-run "
        f"deviation of {100 * pair.noise:.2f} (another order in about {100 * pair.chance_of_another_order:.0f} % of "
        "repetitions)"
    )


def _listed(titles: Mapping[str, str], counts: Sequence[CutOff]) -> str:
    return joined([titles[count.method] for count in counts])
