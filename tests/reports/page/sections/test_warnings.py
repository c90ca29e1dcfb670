"""What the reader of a page must know first."""

from dataclasses import replace

import pytest

from reports.page.material import Material
from reports.page.sections.warnings import warnings_of
from results.spec.trunk_spec import NO_TRUNK
from results.store.experiment_results import MeasuredExperiment
from tests.support.page_material import A, B, material, replace_run, said, searched, values
from tests.support.sample_records import some_provenance


@pytest.mark.parametrize(("runs", "weak"), [(2, True), (3, True), (4, False)])
def test_few_runs_are_called_weak(runs, weak):
    found = said(warnings_of(material(values(a=A[:runs], b=B[:runs]), reproductions=runs), unfinished=False))
    assert any("This is weak evidence" in sentence for sentence in found) == weak


def test_a_smaller_budget_and_flags_and_code_are_said_first():
    flagged = [replace_run(run, flags=("fold 2: training diverged (loss)",)) for run in values(a=A)["a"]]
    dirty = some_provenance().model_copy(update={"tree_dirty": True, "device": "cuda"})
    other = [replace_run(run, provenance=dirty) for run in values(b=B)["b"]]
    found = said(warnings_of(material({"a": flagged, "b": other}), unfinished=True))
    assert "not finished" in found[0]
    assert any("4 of 10 reproductions" in sentence and "trials" not in sentence for sentence in found)
    assert any("A: training diverged (loss) (4 runs)" in sentence and "run 3, fold 2" in sentence for sentence in found)
    assert any("uncommitted changes" in sentence for sentence in found)
    assert any("different devices (cpu and cuda)" in sentence for sentence in found)
    clean = material(values(a=A * 3, b=B * 3), reproductions=12)
    assert warnings_of(clean, unfinished=False) == ()


def test_different_processors_are_named_where_they_trained():
    def said_of(first: dict[str, str], second: dict[str, str]) -> bool:
        all_runs = values(a=A, b=B)
        origins = {"a": some_provenance().model_copy(update=first), "b": some_provenance().model_copy(update=second)}
        own = {key: [replace_run(run, provenance=origins[key]) for run in runs] for key, runs in all_runs.items()}
        found = said(warnings_of(material(own), unfinished=False))
        return any("different processors (one and two)" in sentence for sentence in found)

    assert said_of({"processor": "two"}, {"processor": "one"})
    assert not said_of({"processor": "one"}, {"processor": "one"})
    assert not said_of({"processor": "one"}, {})
    assert not said_of({"processor": "one", "device": "cuda"}, {"processor": "two", "device": "cuda"})


def test_trainings_of_different_versions_are_named():
    newer = [run.model_copy(update={"training_version": 2}) for run in values(b=B)["b"]]
    found = said(warnings_of(material({"a": values(a=A)["a"], "b": newer}), unfinished=False))
    assert any("different versions of the training (version 1: a; version 2: b)" in sentence for sentence in found)


def test_a_method_below_the_untrained_trunk_is_named():
    found = said(warnings_of(material(values(untrained=A, b=B)), unfinished=False))
    assert any("B has no higher mean than the untrained trunk" in sentence for sentence in found)


def test_few_searches_are_called_weak_and_runs_of_settings_say_nothing_of_searches():
    found = said(warnings_of(searched(reproductions=5, a=(30, 31, 32), b=(20, 21, 22)), unfinished=False))
    assert any("as few as 3 searches per method" in sentence for sentence in found)
    single = said(warnings_of(material(values(a=A[:3], b=B[:3]), trials=50, reproductions=3), unfinished=False))
    assert any("3 runs of the setting found" in sentence for sentence in single)
    assert not any("tests use" in sentence for sentence in single)


def test_a_failed_search_is_named():
    found = said(warnings_of(searched(a=(29.26, 28.01, 8.13), b=(40, 39, 38)), unfinished=False))
    failed = [sentence.strip() for sentence in found if "less than half" in sentence]
    assert failed == ["One of A's 3 searches reached 8.1, less than half of its best, 29.3."]
    runs = said(warnings_of(material(values(a=[0.9, 0.9, 0.1, 0.9], b=B)), unfinished=False))
    assert not any("less than half" in sentence for sentence in runs)


def test_missing_searches_are_named():
    (first, *_) = said(warnings_of(searched(a=(30, 31, 32), b=(20,)), unfinished=True))
    assert first.startswith("The experiment is not finished (B: 1 of 3 searches). Nothing is claimed about methods")


def test_a_part_of_the_data_and_methods_whose_runs_are_all_equal_are_named():
    experiment = MeasuredExperiment.kept("cub200_small_subset")
    sentences = [verdict.sentence for verdict in warnings_of(Material("cub200_small", experiment), unfinished=False)]
    assert "Only a part of the dataset was used: 100 classes of cub200. Scores on the whole of it differ." in sentences
    assert "Untrained trunk: one run, because every further run would be equal." in sentences
    assert not any("a single run" in sentence for sentence in sentences)


def test_features_as_given_are_no_untrained_trunk():
    page = material(values(untrained=A, b=B))
    trunk = page.measured.summary.experiment.trunk.model_copy(update={"name": NO_TRUNK})
    experiment = page.measured.summary.experiment.model_copy(update={"trunk": trunk})
    summary = page.measured.summary.model_copy(update={"experiment": experiment})
    found = said(warnings_of(replace(page, measured=replace(page.measured, summary=summary)), unfinished=False))
    assert any("no higher mean than the features as given" in sentence for sentence in found)
