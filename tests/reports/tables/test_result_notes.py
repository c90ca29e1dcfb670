"""Notes on the search and on cut-off trainings, below the table and on the page."""

from dataclasses import replace

from reports.page.material import Material
from reports.page.sections.warnings import warnings_of
from reports.tables.result_notes import (
    SEARCH_NOT_KNOWN,
    close_trials,
    cut_off_notes,
    look_notes,
    part_notes,
    range_end_notes,
    result_notes,
    search_notes,
    split_notes,
    trial_notes,
)
from reports.tables.result_table import table_of
from results.records.experiment_summary import ExperimentData
from results.records.trials import SearchTrials
from results.spec.search_settings import SamplerSettings, SearchedRange
from results.statistics.primary_comparison import primary_comparison
from results.store.experiment_results import MeasuredExperiment
from tests.support.experiment_files import load_experiment
from tests.support.measured_experiment import TITLES, measured, with_trainings
from tests.support.page_material import material, said
from tests.support.sample_page import measured as kept
from tests.support.sample_records import some_run, some_summary

CLOSE = {("contrastive", 0): SearchTrials((0.16, 0.155)), ("triplet", 0): SearchTrials((0.3, 0.1))}


def repeated(searches=2, means=(0.5, 0.6, 0.55)):
    """Runs of repeated searches, whose settings differ by more than runs do."""
    records = [
        some_run("triplet", run, means[search] + 0.01 * run, search=search, fingerprint=f"{search}-{run}")
        for search in range(searches)
        for run in range(3)
    ]
    settings = {"search": {"trials": 2, "searches": searches}}
    return MeasuredExperiment(some_summary(settings, title="T", methods={"triplet": "Triplet"}), tuple(records))


def notes_on_searches(world):
    return search_notes(world, primary_comparison(world))


def test_one_search_says_what_is_not_known_or_names_the_record():
    assert notes_on_searches(measured()) == [SEARCH_NOT_KNOWN]
    assert SEARCH_NOT_KNOWN in table_of(measured()).notes
    assert notes_on_searches(measured(hyperparameters={})) == []
    without_search = replace(measured(), summary=some_summary(methods=TITLES, trials=0))
    assert notes_on_searches(without_search) == []
    (note,) = notes_on_searches(kept("mlrc_frozen_cub200_subset"))
    assert "the intervals are about the settings found. Searches of this size have differed by about 0.9 points" in note
    assert "(results/measured/search_variance_birds_subset.json: a part of cub200, frozen" in note
    assert note.endswith("The tests of methods assume twice as much.")


def test_repeated_searches_are_named_with_those_that_failed():
    (note,) = notes_on_searches(repeated())
    assert note.startswith("Methods with hyperparameters are searched 2 times from other seeds; ")
    # Means of concatenated MAP@R: 15.25, 3.75 and 16.5.
    _, failed = notes_on_searches(repeated(3, (0.5, 0.04, 0.55)))
    assert failed == (
        "One of Triplet's 3 searches reached 3.8, less than half of its best, 16.5. "
        "Failed searches count like the others."
    )
    assert failed in table_of(repeated(3, (0.5, 0.04, 0.55))).notes


def test_what_is_left_out_of_the_data_is_said_below_the_table_and_on_the_page():
    assert part_notes(measured()) == []
    data = ExperimentData(
        fingerprint="d",
        samples=9,
        classes=8,
        left_out=("1 image(s) that cannot be decoded (a/1.png)", "2 class(es) with fewer than 3 images (b, c)"),
        equal_files="1 group(s) of images that are equal but of several classes (d/0.png = e/0.png), 1 of them in",
    )
    world = replace(measured(), summary=measured().summary.model_copy(update={"data": data}))
    left_out, equal = part_notes(world)
    assert left_out == f"Left out of the data: {'; '.join(data.left_out)}."
    assert left_out.endswith("(a/1.png); 2 class(es) with fewer than 3 images (b, c).")
    assert equal.startswith("The data have 1 group(s) of images that are equal")
    assert {left_out, equal} <= set(table_of(world).notes)
    assert {left_out, equal} <= {verdict.sentence for verdict in warnings_of(Material("some", world), unfinished=False)}


def test_a_look_before_more_was_asked_for_is_said():
    looked = replace(measured(), summary=measured().summary.model_copy(update={"seen_after": ("2 searches", "3 runs")}))
    (note,) = look_notes(looked)
    assert note.startswith("The number of runs or searches was raised after results were known (2 searches and 3 runs)")
    assert note in table_of(looked).notes
    assert look_notes(measured()) == []


def test_raced_searches_are_named_below_the_table_and_on_the_page():
    plain = measured()
    assert trial_notes(plain) == []
    settings = load_experiment("quickstart", {"search.racing": True})
    raced = replace(plain, summary=plain.summary.model_copy(update={"experiment": settings}))
    (note,) = trial_notes(raced)
    assert "a trial that was clearly behind the best trial on the same folds got no more folds" in note
    assert note in table_of(raced).notes
    assert note in [verdict.sentence for verdict in warnings_of(Material("some", raced), unfinished=False)]
    unsearched = load_experiment("quickstart", {"search.racing": True, "search.trials": 0})
    assert trial_notes(replace(plain, summary=plain.summary.model_copy(update={"experiment": unsearched}))) == []


def test_another_sampler_is_said_with_its_arguments():
    sampler = SamplerSettings(name="TPESampler", startup_trials=3, arguments={"multivariate": True})
    search = measured().summary.experiment.search.model_copy(update={"sampler": sampler})
    experiment = measured().summary.experiment.model_copy(update={"search": search})
    summary = measured().summary.model_copy(update={"experiment": experiment})
    (note,) = trial_notes(replace(measured(), summary=summary))
    assert note.startswith("After 3 settings spread over the ranges, Optuna's TPESampler(multivariate=True) proposed")


def with_settings(overrides, **changes):
    plain = measured(**changes)
    settings = load_experiment("quickstart", overrides)
    return replace(plain, summary=plain.summary.model_copy(update={"experiment": settings}))


def test_a_drawn_split_is_named_below_the_table():
    assert split_notes(with_settings({})) == []
    (note,) = split_notes(with_settings({"split": {"seed": 3}}))
    assert "drawn at random with the seed 3" in note
    assert note in table_of(with_settings({"split": {"seed": 3}})).notes


def test_a_users_split_is_named_below_the_table():
    with_halves = replace(with_trainings(), summary=with_settings({"dataset.name": "folder"}).summary)
    assert split_notes(with_halves) == []
    trainings = {
        name: (spec.model_copy(update={"split": "mlrc_conventional"}), result)
        for name, (spec, result) in with_halves.trainings.items()
    }
    (note,) = split_notes(replace(with_halves, trainings=trainings))
    assert "those of the user's split file" in note


def test_close_trials_are_named_with_their_scores():
    (note,) = close_trials(replace(with_trainings(), searches=CLOSE))
    assert "Contrastive | A_B, validation MAP@R 16.00 and 15.50 with a run-to-run deviation of 0.63" in note
    assert "Triplet" not in note
    assert close_trials(with_trainings()) == []


def test_close_trials_of_repeated_searches_are_counted():
    world = with_trainings()
    again = tuple(run.model_copy(update={"search": 1}) for run in world.records)
    searches = {**CLOSE, ("contrastive", 1): SearchTrials((0.3, 0.1))}
    (note,) = close_trials(replace(world, records=(*world.records, *again), searches=searches))
    assert note.startswith("In 1 of 3 searches the two best trials lie within the noise of their scores")


def at_the_ends(searches=1):
    """Triplet's margin is 0.1 in every search, the lowest value that was searched."""
    world = repeated(searches)
    ranges = {"triplet": {"loss.margin": SearchedRange(scale="log", low=0.1, high=10.0)}}
    return replace(world, summary=world.summary.model_copy(update={"ranges": ranges}))


def test_settings_at_the_end_of_a_range_are_named():
    (note,) = range_end_notes(at_the_ends())
    assert note.endswith("so a wider range could hold a better one: Triplet: loss.margin 0.1 (lowest).")
    (of_searches,) = range_end_notes(at_the_ends(2), {"triplet": "T"})
    assert of_searches.endswith("T: loss.margin 0.1 (lowest in 2 of 2 searches).")
    assert range_end_notes(repeated()) == []
    assert note in table_of(at_the_ends()).notes


def test_settings_at_the_end_in_few_searches_are_counted() -> None:
    world = at_the_ends(2)
    inside = [run.model_copy(update={"hyperparameters": {"loss.margin": 0.5}}) for run in world.records if run.search]
    (note,) = range_end_notes(replace(world, records=(*[run for run in world.records if not run.search], *inside)))
    assert note.endswith("a better one: 1 in no more than half of the searches of their method.")


def test_cut_off_trainings_are_counted_by_method():
    (of_each,) = cut_off_notes(kept())
    others = "Multi-Similarity, Normalized Softmax and Proxy-Anchor"
    assert f": 8 of 12 trainings of Contrastive; 12 of 12 trainings of each of {others}. " in of_each
    (all_of_them,) = cut_off_notes(replace(kept(), cut_off={}))
    assert "all 36 trainings of Multi-Similarity, Normalized Softmax, Proxy-Anchor" in all_of_them
    world = with_trainings()
    spec, result = world.trainings["triplet-0-0"]
    stopped = {**world.trainings, "triplet-0-0": (spec, result.model_copy(update={"best_iteration": 100}))}
    (note,) = cut_off_notes(replace(world, trainings=stopped))
    assert ": 12 of 12 trainings of each of Contrastive | A_B and CosFace; 11 of 12 trainings of Triplet. " in note
    assert cut_off_notes(measured()) == []


def test_the_page_warns_with_the_notes_of_the_table():
    page = material({"triplet": [some_run()]}, titles=TITLES)
    ranges = {"triplet": {"loss.neg_margin": SearchedRange(scale="linear", low=0.5, high=1.0)}}
    summary = page.measured.summary.model_copy(update={"ranges": ranges})
    world = replace(with_trainings(), searches=CLOSE, summary=summary)
    assert len(range_end_notes(world)) == 1
    warned = " ".join(said(warnings_of(replace(page, measured=world), unfinished=False)))
    for note in result_notes(world, primary_comparison(world))[1:]:
        assert note in warned


def test_trainings_of_different_versions_are_named_below_the_table():
    runs = [some_run("triplet", run, 0.5, training_version=1 + run // 2) for run in range(3)]
    mixed = MeasuredExperiment(some_summary(title="T", methods={"triplet": "Triplet"}), tuple(runs))
    assert any("different versions of the training" in note for note in table_of(mixed).notes)
    alike = MeasuredExperiment(mixed.summary, tuple(run.model_copy(update={"training_version": 2}) for run in runs))
    assert not any("versions of the training" in note for note in table_of(alike).notes)
