"""Names of classes and functions from users' files and modules."""

from pathlib import Path

import pytest

from results.spec.training_spec import Component, MethodSpec, SourceName, relative_name, sources_of

DIGEST = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("./my_losses.py:Mine", SourceName("./my_losses.py", "Mine")),
        ("my_package.module:Mine", SourceName("my_package.module", "Mine")),
        (f"my_losses.py:Mine (sha256 {DIGEST})", SourceName("my_losses.py", "Mine", DIGEST)),
        ("C:\\code\\my_losses.py:Mine", SourceName("C:\\code\\my_losses.py", "Mine")),
    ],
)
def test_names_are_read_and_written(text: str, name: SourceName) -> None:
    assert SourceName.parse(text) == name
    assert str(name) == text


@pytest.mark.parametrize("plain", ["ContrastiveLoss", "recall@2", "", "a:", ":A", "a:b c", "x.py:1a"])
def test_plain_names_are_none_of_them(plain: str) -> None:
    assert SourceName.parse(plain) is None


def test_paths_are_taken_relative_to_a_folder() -> None:
    assert relative_name("../my.py:A", Path("cards")) == "cards/../my.py:A"
    assert relative_name("/code/my.py:A", Path("cards")) == "/code/my.py:A"
    assert relative_name("~/my.py:A", Path("cards")) == f"{Path.home()}/my.py:A"
    assert relative_name("package.module:A", Path("cards")) == "package.module:A"
    assert relative_name("ContrastiveLoss", Path("cards")) == "ContrastiveLoss"


def test_the_sources_of_a_method_include_nested_components() -> None:
    inner, other = f"my.py:Inner (sha256 {DIGEST})", f"my.py:Miner (sha256 {DIGEST})"
    arguments = {"base_loss": {"component": {"name": "XBMLoss", "arguments": {"base": {"component": {"name": inner}}}}}}
    method = MethodSpec(name="m", loss=Component(name="XBMLoss", arguments=arguments), miner=Component(name=other))
    assert sources_of(method) == (inner, other)
    assert sources_of(MethodSpec(name="untrained", loss=None)) == ()
