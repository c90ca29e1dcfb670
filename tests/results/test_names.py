"""An unknown name is refused with the one that was meant; one that no file can have is too long."""

import pytest

from reproduce.config.experiment_file import load_experiments
from reproduce.errors import InputError
from results.names import MOST_BYTES, MOST_CHARACTERS_OF_A_ROW, why_unknown
from tests.support.command_line import TINY


def test_the_known_name_that_is_most_like_an_unknown_one_is_suggested():
    assert why_unknown("contrastve", ["triplet", "contrastive"]) == "; did you mean 'contrastive'?"
    assert why_unknown("Robin", ["wren", "robin"]) == "; did you mean 'robin'?"
    assert why_unknown("robin", ["wren", "kiwi"]) == why_unknown("robin", []) == ""


@pytest.mark.parametrize("stem", ["x" * (MOST_BYTES + 1), "\u00e9" * 65])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, stem):
    (tmp_path / f"{stem}.yaml").write_text(TINY)
    with pytest.raises(InputError, match="is too long"):
        load_experiments(str(tmp_path / f"{stem}.yaml"), {})


def test_a_panel_is_a_part_of_the_name(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(f"{TINY}panels:\n  {'x' * MOST_BYTES}: {{}}\n")
    with pytest.raises(InputError, match="is too long"):
        load_experiments(str(path), {})


def test_a_row_that_no_store_keeps_is_refused(tmp_path):
    path = tmp_path / "a.yaml"
    key = "x" * (MOST_CHARACTERS_OF_A_ROW + 1)
    path.write_text(f"{TINY}variants: [{{of: contrastive, key: {key}, title: T, set: {{}}}}]\n")
    with pytest.raises(InputError, match="is too long"):
        load_experiments(str(path), {})


def test_the_longest_names_are_taken(tmp_path):
    path = tmp_path / f"{'x' * MOST_BYTES}.yaml"
    key = "x" * MOST_CHARACTERS_OF_A_ROW
    path.write_text(f"{TINY}variants: [{{of: contrastive, key: {key}, title: T, set: {{}}}}]\n")
    assert list(load_experiments(str(path), {})) == [path.stem]
