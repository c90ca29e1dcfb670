"""A key that is given twice is refused; YAML's own reader takes the last value without a word."""

import pytest
import yaml

from reproduce.config.unique_keys import UniqueKeyLoader
from reproduce.config.yaml_files import read_mapping
from reproduce.errors import InputError


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "'a'"),
        ("outer:\n  a: 1\n  a: 1\n", 3, "'a'"),
        ("list:\n- {a: 1, a: 2}\n", 2, "'a'"),
        ("1: x\n0x1: y\n", 2, "1"),
    ],
)
def test_a_repeated_key_is_named_with_its_line(tmp_path, text, line, key):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"file.yaml, line {line}: .*key {key} is given twice; keep one of them"):
        read_mapping(path)


@pytest.mark.parametrize(
    "text",
    ["a: 1\nb: {a: 1}\n", "base: &base {a: 1, b: 2}\nmore:\n  <<: *base\n  a: 3\n", "one: &one {x: 1}\ntwo: *one\n"],
)
def test_other_files_are_read_as_by_yaml(text):
    assert yaml.load(text, UniqueKeyLoader) == yaml.safe_load(text)
