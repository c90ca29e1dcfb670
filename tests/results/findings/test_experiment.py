"""Caveats of an experiment: each is found where it holds and nowhere else, with its numbers."""

from dataclasses import replace

import pytest

from results.answer.caveats import budget_finding
from results.answer.planning import Detectable
from results.answer.question import Question
from results.findings.experiment import answer_of
from results.findings.origin import origin_findings
from results.records.records import EVALUATION_VERSION, Event
from results.spec.data_choice import FEATURES
from results.spec.plan import ExperimentData
from results.spec.range import Range
from results.spec.trunk_spec import NO_TRUNK
from results.store.experiment_results import MeasuredExperiment
from tests.support.experiment_files import load_experiment
from tests.support.measured_experiment import measured, specs_of, with_trainings
from tests.support.page_material import A, B, material, replace_run, searched, values
from tests.support.published_world import MLRC, PAPER, experiment, runs_of
from tests.support.sample_records import changed_run, some_plan, some_provenance, some_result, some_run


def texts(world, level=None, where=None):
    return [one.text for one in answer_of(world).findings if level in (None, one.level) and where in (None, one.where)]


def with_settings(world, overrides):
    settings = load_experiment("quickstart", overrides)
    return replace(world, plan=world.plan.model_copy(update={"experiment": settings}))


def given(**runs):
    """Methods with given settings."""
    return material(values(**runs), reproductions=max(map(len, runs.values()))).measured


def test_missing_searches_and_runs_are_named_first():
    searches = searched(a=(30, 31, 32), b=(20,)).measured
    assert texts(searches)[0] == "Not finished: B has 1 of 3 searches."
    runs = material(values(a=A, b=B[:2]), titles={"a": "A", "b": "B", "never": "Never run"}).measured
    assert answer_of(runs).missing == {"b": "2 of 4 runs", "never": "0 of 4 runs"}
    assert texts(runs)[0] == "Not finished: B has 2 of 4 runs; Never run has 0 of 4 runs."
    assert answer_of(given(a=A, b=B)).missing == {}


def test_a_part_of_the_budget_counts_no_trials_where_nothing_is_searched():
    assert "A part of the protocol's budget: 4 of 10 reproductions." in texts(given(a=A, b=B), "limit")
    small = searched(a=(30, 31, 32), b=(20, 21, 22)).measured
    assert "A part of the protocol's budget: 20 of 50 trials in each search." in texts(small)
    assert not any("budget" in text for text in texts(given(a=A * 3, b=B * 3)))


def test_what_can_stay_unseen_is_that_of_the_budget():
    found = answer_of(searched(a=(30, 31, 32), b=(29, 31.5, 32), c=(20, 24, 28)).measured)
    finding = next(one for one in found.findings if "unseen" in one.text)
    assert (finding.level, finding.where) == ("limit", "comparison")
    seen = [100 * pair.smallest for pair in found.pairs]
    assert finding.text == f"Differences below {min(seen):.1f} to {max(seen):.1f} points can stay unseen."
    asked = Question(score="map_at_r", embeddings="concatenated")
    seen = Detectable(5, 3, 0.0159, 0.0751, 0.0556, 480, 0.005, "this experiment")
    assert budget_finding(seen, asked).sentences == (
        "Differences below 7.5 points can stay unseen. 3 searches of each of 5 methods show larger ones in "
        "concatenated MAP@R with a probability of 80 %. One search more of each would show 5.6 points. A difference of "
        "0.5 points takes 480 searches of each. This follows from a deviation of 1.59 points between searches in this "
        "experiment, for tests of all pairs."
    )
    runs = replace(seen, units=1, smallest=None, needed=None)
    assert budget_finding(runs, replace(asked, unit="run")).text == "1 run of each of 5 methods can show no difference."
    assert budget_finding(replace(seen, smallest=1.2), asked).text.endswith("can show no difference.")
    assert "takes more than 1,000 runs of each" in budget_finding(runs, replace(asked, unit="run")).detail
    single = replace(asked, compare="best", unit="single search")
    once = budget_finding(replace(seen, units=1, one_more=0.08), single)
    assert "One search more" not in once.detail  # Two searches of each see less than one with an assumed deviation.
    assert once.detail.endswith(
        "in this experiment, doubled for one search each, for tests of each method with the best."
    )
    named = budget_finding(seen, replace(found.question, compare="a"))
    assert named.detail.endswith(", for tests of each with A."), "the title, not the key"
    unknown = replace(seen, units=1, deviation=None, smallest=None, one_more=None, needed=None, source="")
    assert budget_finding(unknown, asked).sentences.endswith("3 searches of each would say.")


def test_a_method_below_the_untrained_trunk_is_named_and_features_are_no_trunk():
    world = given(untrained=A, b=B)
    assert "B has no higher mean than the untrained trunk." in texts(world, "warning")
    settings = {"dataset": {"name": FEATURES}, "trunk": {"name": NO_TRUNK, "weights": NO_TRUNK}}
    features = some_plan(settings, methods=world.plan.titles)
    on_features = replace(world, plan=features)
    assert "B has no higher mean than the features as given." in texts(on_features)


def test_a_look_before_more_was_asked_for_is_a_warning():
    looked = replace(measured(), plan=measured().plan.model_copy(update={"interim_looks": ("2 searches", "3 runs")}))
    assert "Searches or runs were added after results were known (2 searches and 3 runs)." in texts(looked, "warning")


def test_a_part_of_the_data_and_equal_runs_are_named():
    found = texts(MeasuredExperiment.kept("cub200_small_subset"))
    assert "A part of the dataset: 100 classes of cub200." in found
    assert "Untrained trunk: one run, because every further run would be equal." in found
    data = ExperimentData(fingerprint="d", samples=9, classes=8, left_out=("1 image", "2 classes"), equal_files="2 x")
    world = replace(measured(), plan=measured().plan.model_copy(update={"data": data}))
    assert texts(world, where="data") == ["Left out of the data: 1 image; 2 classes.", "The data have 2 x."]


def test_drawn_and_own_splits_are_named():
    assert texts(with_settings(measured(), {}), where="data") == []
    (drawn,) = texts(with_settings(measured(), {"split": {"seed": 3}}), where="data")
    assert drawn == "The test classes are a random half of the classes (seed 3)."
    halves = with_settings(with_trainings(), {"dataset.name": "folder"})
    assert texts(halves, where="data") == []
    own = {
        name: result.model_copy(update={"spec": result.spec.model_copy(update={"split": "mlrc_conventional"})})
        for name, result in halves.trainings.items()
    }
    (text,) = texts(replace(halves, trainings=own), where="data")
    assert "those of the user's split file" in text


def test_a_single_search_says_what_is_not_known_or_names_the_record():
    unknown, known = (
        next(one for one in answer_of(world).findings if one.text == "One search of each method.")
        for world in (measured(), MeasuredExperiment.kept("mlrc_frozen_cub200_subset"))
    )
    assert unknown.detail.startswith("How far searches of this kind vary is not known")
    assert "about 0.9 points (results/measured/search_variance_birds_subset.json.xz: a part of cub200" in known.detail
    assert "One search of each method." not in texts(measured(hyperparameters={}))
    assert "One search of each method." not in texts(given(a=A, b=B))


def test_failed_searches_and_runs_are_named_and_cannot_be_read_as_crashes():
    found = texts(searched(a=(29.26, 28.01, 8.13), b=(40, 39, 38)).measured, "limit", "search")
    assert found == ["A: 1 of 3 searches found no good setting (8.1; the others 28.0 to 29.3)."]
    of_runs = texts(given(a=[0.9, 0.9, 0.1, 0.9], b=B), "limit", "search")
    assert of_runs == ["A: 1 of 4 runs lies far below the others (5.0; the others 25.0)."]


def test_hyperparameters_of_papers_carry_their_papers_choice():
    carried = texts(material(values(a=A), settings=PAPER).measured, "note", "search")
    assert carried[0].startswith("Hyperparameters printed by a paper whose code selects on test classes")
    assert texts(given(a=A, b=B), where="search") == []


def test_settings_at_the_end_of_a_range_are_named_where_searches_are_few():
    def world(settings, names=("loss.margin",)):
        runs = [
            some_run(
                "triplet", 0, 0.5, search=search, fingerprint=str(search), hyperparameters=dict.fromkeys(names, one)
            )
            for search, one in enumerate(settings)
        ]
        ranges = {"triplet": dict.fromkeys(names, Range(scale="log", low=0.1, high=10.0))}
        repeated = {"search": {"trials": 2, "searches": len(settings)}}
        plan = some_plan(repeated, methods={"triplet": "T"}, ranges=ranges)
        return [text for text in texts(MeasuredExperiment(plan, tuple(runs)), "note") if "range" in text]

    assert world([0.1, 0.1]) == ["Ends of ranges that searches press: T: loss.margin 0.1 (low)."]
    assert world([0.1, 0.5]) == [], "one of two searches may be there by chance"
    assert world([0.1]) == ["Ends of ranges that searches press: T: loss.margin 0.1 (low)."]
    assert world([0.5, 0.5]) == []


def test_cut_off_trainings_are_counted_and_named_by_method():
    world = with_trainings()
    spec = specs_of(world, "triplet")[0]
    stopped = {**world.trainings, spec.fingerprint: some_result(spec, best_iteration=100)}
    found = next(one for one in answer_of(replace(world, trainings=stopped)).findings if "Cut off" in one.text)
    assert found.text == "Cut off while the validation score still rose: 35 of 36 trainings of the tested runs."
    assert (found.level, found.detail) == ("warning", "Triplet 11 of 12, all of Contrastive | A_B and CosFace.")
    assert "Cut off while the validation score still rose: all 36 trainings of the tested runs." in texts(
        world, "warning", "training"
    )
    assert not any("Cut off" in text for text in texts(measured()))


def test_events_are_counted_by_method_not_listed_by_fold():
    happened = (("no gain", 0), ("diverged", 2), ("no gain", 3), ("skipped", 3), ("collapsed", 3))
    events = tuple(Event(kind=kind, fold=fold) for kind, fold in happened)
    runs = values(a=A, b=B)
    runs["a"][0] = replace_run(runs["a"][0], events=events)
    runs["b"][0] = replace_run(runs["b"][0], events=(Event(kind="diverged", fold=1, choosing=True),))
    assert texts(material(runs).measured, "warning", "training") == [
        "A: 1 of 16 trainings diverged; the best checkpoint before that counts.",
        "A: 2 of 16 trainings did not beat the untrained network.",
        "A: 1 of 16 trainings skipped all steps between two validations.",
        "A: 1 of 16 trainings ended with equal embeddings of all test images, which score 0.",
        "B: 1 training that chooses the epoch diverged; the best checkpoint before that counts.",
    ]


OTHERS = {
    "device": ({"device": "NVIDIA H100"}, "different devices (NVIDIA H100 and cpu)"),
    "threads": ({"threads": 16}, "different numbers of threads (1 and 16)"),
    "system": ({"host_system": "Darwin arm64"}, "different systems (Darwin arm64 and Linux x86_64)"),
    "torch": ({"versions": {"torch": "2.12.1"}}, "different versions of torch (2.12.1 and 2.13.0)"),
    "pillow": ({"versions": {"torch": "2.13.0", "pillow": "9"}}, "different versions of pillow (9 and 13)"),
    "library": (
        {"versions": {"torch": "2.13.0", "pytorch-metric-learning": "3.0.4"}},
        "different versions of pytorch-metric-learning (2.9.0 and 3.0.4)",
    ),
    "code": ({"commit": "1" * 40}, "2 commits of the code (0000000 and 1111111)"),
    "dirty": ({"tree_dirty": True}, "uncommitted changes"),
    "unknown": ({"commit": "unknown", "tree_dirty": True}, "commit of some runs is unknown"),
}
HERE = {"versions": {"torch": "2.13.0", "pillow": "13", "pytorch-metric-learning": "2.9.0"}}


def made(**changes):
    return some_provenance().model_copy(update={**HERE, **changes})


def two_machines(changes):
    runs = values(a=A, b=B)
    own = {"a": made(), "b": made(**changes)}
    moved = {key: [replace_run(run, provenance=own[key]) for run in each] for key, each in runs.items()}
    return material(moved).measured


def origins(*experiments):
    return [one.text for one in origin_findings(*experiments)]


@pytest.mark.parametrize(("changes", "words"), OTHERS.values(), ids=OTHERS)
def test_runs_that_were_made_differently_get_one_warning(changes, words):
    (text,) = texts(two_machines(changes), "warning", "origin")
    assert words in text


def test_threads_and_processors_of_a_gpu_run_do_not_count():
    (text,) = origins(two_machines({"device": "cuda", "threads": 8, "processor": "other", "host_system": "other"}))
    assert "devices" in text


@pytest.mark.parametrize("what", ["training", "evaluation"])
def test_runs_of_different_versions_are_named(what):
    older, newer = (
        [changed_run(run, **{f"{what}_version": number}) for run in values(**{method: numbers})[method]]
        for method, numbers, number in (("a", A, 1), ("b", B, 2))
    )
    (text,) = origins(material({"a": older, "b": newer}).measured)
    assert f"different versions of the {what} (version 1: a; version 2: b)" in text


def test_runs_of_an_older_evaluation_are_named_and_not_compared():
    older = [changed_run(run, evaluation_version=EVALUATION_VERSION - 1) for run in values(a=A)["a"]]
    (text,) = origins(material({"a": older}).measured)
    assert f"this release has version {EVALUATION_VERSION}, and the same command tests them again" in text
    mixed = material({"a": older, **values(b=B, c=B)}).measured
    verdicts = {(pair.a, pair.b): pair.untested for pair in answer_of(mixed).pairs}
    assert verdicts == {("a", "b"): "older evaluation", ("a", "c"): "older evaluation", ("b", "c"): None}
    assert any("A has runs of an older evaluation" in one for one in texts(mixed, "limit", "comparison"))


def test_trainings_are_compared_among_themselves():
    world = with_trainings()
    on_gpu = made(device="cuda", versions={})

    def trained_on_gpu(fingerprints):
        moved = {
            key: result.model_copy(update={"provenance": on_gpu}) if key in fingerprints else result
            for key, result in world.trainings.items()
        }
        return replace(world, trainings=moved)

    assert origins(world) == []
    assert origins(trained_on_gpu(set(world.trainings))) == [], "all trained on one device, all tested on another"
    (text,) = origins(trained_on_gpu({next(iter(world.trainings))}))
    assert "different devices (cpu and cuda)" in text


def in_precisions(*precisions, on):
    """An experiment for each precision; runs on a GPU have its settings of rounding."""
    kinds = {"float32": "tf32", "ieee": "ieee", "amp": "bf16"}
    return [
        experiment(
            precision,
            {**MLRC, "training": {**MLRC.get("training", {}), "precision": precision}},
            [
                replace_run(run, provenance=made(device=on, math={} if on == "cpu" else {"products": kinds[precision]}))
                for run in runs_of("triplet", [0.56, 0.57])
            ],
        ).measured
        for precision in precisions
    ]


def test_precision_is_told_once_and_other_settings_of_rounding_where_it_is_equal():
    (text,) = origins(*in_precisions("float32", "ieee", on="NVIDIA H100"))
    assert "different precision (float32 and float32 without TF32)" in text
    alike = in_precisions("float32", "float32", on="NVIDIA H100")
    assert origins(*alike) == []
    forced = tuple(
        replace_run(run, provenance=made(device="NVIDIA H100", math={"products": "ieee"})) for run in alike[1].records
    )
    (text,) = origins(alike[0], replace(alike[1], records=forced))
    assert "different settings of products (ieee and tf32)" in text
    assert origins(*in_precisions("float32", "ieee", on="cpu")) == []
