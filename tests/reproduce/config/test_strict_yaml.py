"""Reading YAML files: every error is one line with file, key and remedy."""

import os
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from reproduce.config.strict_yaml import named_file, names_in, read_mapping, read_yaml, validated, yaml_of
from reproduce.errors import InputError
from tests.support.command_line import one_line


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: int = Field(ge=1)
    share: float = 1.0


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str
    inner: Inner = Inner(count=1)
    values: tuple[JsonValue, ...] = Field(default=(), min_length=1)
    names: tuple[str, ...] = Field(default=("a",), min_length=1)
    either: Literal["one", "two"] | Inner = "one"
    folder: Path = Path()


def refuses(path: Path, said: str) -> None:
    with one_line(str(path), said):
        validated(Outer, read_mapping(path), str(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("title: a\nspeed: 3\n", "unknown key 'speed'; remove it or correct its spelling"),
        ("title: a\ninner: {count: 2, cuont: 3}\n", "unknown key 'inner.cuont'; did you mean count?"),
        ("title: a\ninner: count\n", "key 'inner': needs keys and values, as in {key: value}, found 'count'"),
        ("title: a\nvalues: 3\n", "key 'values': needs a list, as in [first, second], found 3"),
        ("title: a\nvalues: []\n", "key 'values': needs at least 1 entry, found []"),
        ("title: a\nshare: 2\n", "unknown key 'share'; remove it or correct its spelling"),
        ("title: a\nmethod: 2\n", "unknown key 'method'; remove it or correct its spelling"),
        ("title: a\nnames: [3]\n", "bad.yaml: key 'names.0': input should be a valid string, found 3"),
        (
            "title: a\neither: three\n",
            "key 'either': input should be 'one' or 'two', found 'three'; key 'either': needs",
        ),
        ("title: a\nfolder: [b]\n", "key 'folder': needs a path, found ['b']"),
        ("title: a\ninner:\n", "key 'inner': needs keys and values, as in {key: value}, found nothing; fill it in, or"),
        ("inner: {count: 2}\n", "key 'title' is missing"),
        ("title: a\ninner: {count: 0}\n", "key 'inner.count': input should be greater than or equal to 1, found 0"),
        ("title: a\ninner: {count: many}\n", "key 'inner.count'"),
        ("speed: 1\n", "key 'title' is missing; unknown key 'speed'"),
        ("title: [a\ninner: 3\n", ": line 2: not valid YAML"),
        ("title: a\ninner:\n\tcount: 2\n", "that cannot start any token); indent with blanks, not with tabs"),
        ("title: @a\n", "that cannot start any token); put a value that begins so in quotes"),
        ("title: a: b\n", "(mapping values are not allowed here); put a value with a colon in quotes"),
        ("title: a\ntitle: b\n", 'line 2: not valid YAML (found duplicate key "title" with value'),
        ("title: a\ninner: {count: 1, count: 2}\n", 'found duplicate key "count"'),
        ("title: a\ninner: {count: 2, share: .nan}\n", "key 'inner.share': must be a finite number, found nan"),
        ("title: a\nvalues: [{x: .inf}]\n", "key 'values': must be a finite number, found ({'x': inf},)"),
        ("title: a\ninner: {count: " + "x" * 500 + "}\n", "xxx..."),
        ("title: a\ninner: !own 3\n", "line 2: not valid YAML (could not determine a constructor"),
        ("- a\n- b\n", "expected keys and values, as in `title: Mine`, found a list"),
        ("", "expected keys and values, as in `title: Mine`, found nothing"),
        ("just text", "expected keys and values, as in `title: Mine`, found only 'just text'"),
    ],
)
def test_a_bad_file_gives_one_line_with_file_and_key(tmp_path, content, said):
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    refuses(path, said)


def test_a_key_at_the_wrong_place_comes_with_its_own(tmp_path):
    with one_line("unknown key 'inner.title'; did you mean title?"):
        validated(Outer, {"title": "a", "inner": {"count": 1, "title": "b"}}, "x.yaml")


def test_what_is_no_text_gives_one_line(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"\xff\xfe\xfd title: \xe9")
    refuses(path, "not text in UTF-8")
    refuses(tmp_path, "cannot be read")
    os.mkfifo(tmp_path / "pipe.yaml")
    refuses(tmp_path / "pipe.yaml", "cannot be read (not a file)")


def test_names_are_found_in_the_folder_or_as_paths(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.yaml").write_text("x: 1")
    (tmp_path / "notes.txt").write_text("")
    assert names_in(tmp_path) == ["a", "b"]
    assert named_file("a", tmp_path, "thing") == tmp_path / "a.yaml"
    own = tmp_path / "own" / "c.yml"
    own.parent.mkdir()
    own.write_text("x: 1")
    assert named_file(str(own), tmp_path, "thing") == own


def test_an_unknown_name_comes_with_the_nearest(tmp_path):
    (tmp_path / "triplet.yaml").write_text("x: 1")
    for name, meant in (("z", ""), ("tripelt", r"did you mean triplet\? ")):
        with pytest.raises(
            InputError, match=rf"^unknown thing '{name}'; {meant}`reproduce things` lists all; or give the"
        ):
            named_file(name, tmp_path, "thing")
    with pytest.raises(InputError, match=r"nowhere/z\.yaml: no such file"):
        named_file("nowhere/z.yaml", tmp_path, "thing")


def test_scalars_are_those_of_yaml_1_2():
    assert read_yaml("[1e-3, -2E+4, 1.5, 3, 1e3x, on, no]") == [1e-3, -2e4, 1.5, 3, "1e3x", "on", "no"]
    content = {"b": 1e-6, "a": ["no", "1e-3", None], "ü": {}}
    assert read_yaml(yaml_of(content)) == content
    assert yaml_of(content).startswith("b: 1"), "in the order of the content"


def test_aliases_and_merges_of_panels_still_work(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text("title: Ümlaut\ninner: &one {<<: {count: 3}, count: 2}\n", encoding="utf-8")
    assert validated(Outer, read_mapping(path), str(path)) == Outer(title="Ümlaut", inner=Inner(count=2))
    nested = read_yaml("a: {b: &b {<<: {count: 3}, count: 2}}\nc: {<<: *b, share: 1}")
    assert nested["c"] == {"count": 2, "share": 1}
