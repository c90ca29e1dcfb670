"""A name that looks like a known one is refused with what differs; one that no file can have is too long."""

import pytest

from reproduce.config.experiment_file import load_experiments
from reproduce.errors import InputError
from results.names import MOST_BYTES, MOST_CHARACTERS_OF_A_ROW, why_unknown
from tests.support.command_line import TINY

ALIKE = {
    ("cafe\u0301", "caf\u00e9"): "Unicode form (an accented letter as one sign or two)",
    ("a\\b.png", "a/b.png"): "\\ for /",
    ("a b", "a\u00a0b"): "blanks",
    (" a", "a"): "blanks",
    ("a\u200b", "a"): "blanks",
    ("Robin", "robin"): "upper and lower case",
    ("Cafe\u0301 ", "caf\u00e9"): "Unicode form (an accented letter as one sign or two) and blanks and upper and lower "
    "case",
}


@pytest.mark.parametrize(("names", "cause"), ALIKE.items())
def test_the_cause_is_named_in_signs_that_everybody_sees(names, cause):
    name, known = names
    said = why_unknown(name, ["other", known])
    assert said == f"; {name!a} and {known!a} differ only in {cause}"
    assert why_unknown(known, ["other", name]).endswith(f"differ only in {cause}")


def test_another_name_has_no_cause():
    assert why_unknown("robin", ["wren", "robins", "robin"]) == ""


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


def test_a_file_of_another_spelling_is_named(tmp_path):
    (tmp_path / "caf\u00e9.yaml").write_text(TINY)
    with pytest.raises(InputError, match=r"no such file; .* differ only in Unicode form"):
        load_experiments(str(tmp_path / "cafe\u0301.yaml"), {})
