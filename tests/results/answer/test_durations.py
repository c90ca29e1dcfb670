"""How long trainings are expected to take: the kept table, and which record speaks for what."""

import io

import pandas as pd
import pytest

from results.answer import durations
from results.answer.durations import FILE, UNKNOWN_DATA, Expected, expected_folds, expected_steps, kept_rate
from results.store.experiment_results import MeasuredExperiment
from tests.support.experiment_files import load_experiment


@pytest.mark.slow
def test_the_table_has_what_the_records_have():
    pytest.importorskip("torch", reason="stores are unpacked by code that needs torch")
    from benchmarks.training_durations import kept_durations

    written = kept_durations().to_csv(index=False, lineterminator="\n", float_format="%.6g")
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(written)), pd.read_csv(FILE), rtol=1e-5)


def conditions_of(experiment, overrides=None):
    return load_experiment(experiment, overrides or {}).conditions


def test_a_training_that_cannot_stop_early_has_all_its_steps():
    """The first validation that is more than `patience` epochs behind is the last one of the quickstart."""
    assert expected_steps(conditions_of("quickstart"), 50, "triplet", "search", "glyphs") == Expected(200)


def test_the_steps_are_those_of_the_nearest_record():
    conditions = conditions_of("reality_check/birds")
    found = expected_steps(conditions, 50, "arcface", "reproductions", "cub200")
    assert found.record == "results/measured/reality_check_birds_subset.json.xz"
    runs = MeasuredExperiment.kept("reality_check_birds_subset").runs["arcface"]
    assert found.value == pytest.approx(sum(run.iterations for run in runs) / len(runs) / 4)
    # Another patience: a record that early stopping ended speaks, within what this patience allows.
    longer = conditions.training.model_copy(update={"patience": 30})
    other = expected_steps(conditions.model_copy(update={"training": longer}), 50, "arcface", "reproductions", "cub200")
    assert other.record
    assert 32 * 50 <= other.value <= 2000


def test_a_longer_network_is_expected_to_stop_as_those_that_were_trained_to_their_end():
    """Early stopping alone ended the tested runs of losses on glyphs, of fourteen and of eight."""
    conditions = conditions_of("reality_check/glyphs")
    longer = conditions.training.model_copy(update={"max_epochs": 500})
    conditions = conditions.model_copy(update={"training": longer})
    found = expected_steps(conditions, 40, "arcface", "search", "glyphs")
    assert "ends_probed" in found.record, "the latest of two records with such runs"
    expected = steps_in("reality_check_glyphs_ends_probed")["arcface"]
    assert (found.ends, found.value) == (None, pytest.approx(expected, abs=0.01))
    # A loss that no such record has is expected to take the mean of those that the latest has.
    other = expected_steps(conditions, 40, "roadmap", "search", "glyphs")
    made = [steps for steps in steps_in("reality_check_2026_glyphs_to_the_end").values() if steps]
    assert sorted(other.of_methods) == pytest.approx(sorted(made), abs=0.01)
    assert other.value == pytest.approx(sum(made) / 8)
    # Scaled by the first epoch at which patience ends a training, the fourth of 40 steps there and of 80 here.
    twice = expected_steps(conditions, 80, "arcface", "search", "glyphs")
    assert twice.value == pytest.approx(2 * found.value)


def steps_in(record):
    """Mean steps of a training by method."""
    runs = MeasuredExperiment.kept(record).runs
    return {key: sum(run.iterations for run in own) / len(own) / 4 for key, own in runs.items()}


def test_features_say_nothing_of_a_network_and_other_data_say_a_range():
    conditions = conditions_of("mlrc_cub200")
    found = expected_steps(conditions, 100, "proxy_anchor", "search", "cub200")
    record = "reality_check_2026_glyphs_to_the_end"
    assert (found.record, found.data) == (f"results/measured/{record}.json.xz", "glyphs")
    assert found.is_of_other_data
    # Patience ends its trainings after epoch 10 of 100 steps at the earliest, those of the record after 160 steps.
    assert found.value == pytest.approx(steps_in(record)["proxy_anchor"] / 160 * 1000, rel=1e-5)
    fewest, most = found.ends
    assert 1000 <= fewest < found.value / 4
    assert most == pytest.approx(19_765, abs=1), "the longest of all kept records, scaled"


def test_a_network_on_the_same_data_speaks_before_one_with_the_same_schedule(monkeypatch):
    kept = durations._kept()
    schedule = {"epoch_steps": 100, "max_epochs": 1000, "validate_every": 2, "patience": 9}
    quickstart = kept[(kept["record"] == "results/measured/quickstart.json.xz") & (kept["method"] == "triplet")]
    birds = quickstart.assign(record="birds", data="cub200", trunk="resnet50", steps=1000.0)
    glyphs = quickstart.assign(record="more glyphs", trunk="bn_inception", steps=2000.0, **schedule)
    monkeypatch.setattr(durations, "_kept", lambda: pd.concat([kept, birds, glyphs]))
    conditions = conditions_of("mlrc_cub200")
    found = expected_steps(conditions, 100, "triplet", "search", "cub200")
    assert (found.record, found.is_of_other_data, found.ends) == ("birds", False, None)
    assert found.value == pytest.approx(1000 / 200 * 1000)
    assert expected_steps(conditions, 100, "triplet", "search", "cars196").record == "more glyphs"


def test_the_images_of_a_folder_are_those_of_no_record():
    found = expected_steps(conditions_of("reality_check/birds"), 50, "arcface", "search", UNKNOWN_DATA)
    assert found.is_of_other_data
    assert found.ends is not None


def test_racing_leaves_what_it_left_in_the_kept_searches():
    assert expected_folds("proxy_anchor", "glyphs").value == pytest.approx(112 / 144)
    assert 0.5 < expected_folds("my_loss", "glyphs").value < 0.8
    assert not expected_folds("proxy_anchor", "glyphs").is_of_other_data
    assert expected_folds("proxy_anchor", "cub200").is_of_other_data


@pytest.mark.parametrize("change", [{"images.crop": 28}, {"training.batch_size": 64}, {"trunk.name": "bn_inception"}])
def test_a_speed_is_not_carried_to_another_network_size_or_batch(change):
    assert kept_rate(conditions_of("quickstart"), 50, "triplet") is not None
    assert kept_rate(conditions_of("quickstart", change), 50, "triplet") is None


def test_trainings_on_one_gpu_share_its_steps():
    conditions = conditions_of("mlrc_cub200")
    alone, four, eight = (kept_rate(conditions, 100, "triplet", sharing) for sharing in (1, 4, 8))
    assert 1 / alone.step == pytest.approx(74.8, rel=1e-3)
    assert 4 / four.step == pytest.approx(115.7, rel=1e-3)
    assert eight.step == pytest.approx(2 * four.step)
