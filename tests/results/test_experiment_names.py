"""Experiments whose names changed: both names mean the same, and fingerprints stay."""

import pytest

from reproduce.config.experiment_file import experiment_names, load_experiments
from results.experiment_names import RENAMED, current_name, first_name
from results.published.tables import published_tables
from results.values import fingerprint_of


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_old_and_new_names_mean_the_same_with_and_without_a_panel(old, new):
    assert current_name(old) == current_name(new) == new
    assert first_name(new) == first_name(old) == old
    assert current_name(f"{old}/panel") == f"{new}/panel"
    assert first_name(f"{new}/panel") == f"{old}/panel"


def test_other_names_are_left_alone():
    for name in ("quickstart", "proxy_gml_table1_glyphs", "mine/proxygml_table1"):
        assert current_name(name) == first_name(name) == name


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_files_and_published_tables_have_the_new_name_and_are_loaded_by_both(old, new):
    assert new in experiment_names()
    assert new in published_tables()
    assert old not in (*experiment_names(), *published_tables())
    assert load_experiments(old, {}) == load_experiments(new, {})


def test_a_new_name_leaves_an_experiments_fingerprint_as_it_was():
    """Stores name an experiment's row by it, so that a run that goes on finds its row."""
    (experiment,) = load_experiments("proxy_gml_table1", {}).values()
    settings = experiment.without_folder()
    left_out = ("title", "methods", "variants", "peeking_metric")
    hashed = {key: value for key, value in settings.items() if key not in left_out}
    assert experiment.fingerprint("proxy_gml_table1", "d") == fingerprint_of(["proxygml_table1", "d", hashed])
    assert experiment.fingerprint("mine", "d") == fingerprint_of(["mine", "d", hashed])
