import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from results.records import processor as module
from results.records.processor import of_intel, processor

XEON = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 167
model name\t: Intel(R) Xeon(R) Processor
flags\t\t: fpu avx512f

processor\t: 1
vendor_id\t: GenuineIntel
model name\t: another
"""
RASPBERRY = "processor\t: 0\nBogoMIPS\t: 108.00\nCPU implementer\t: 0x41\n\n"


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str | None], None]]:
    """Sets what the system says of its processors."""
    monkeypatch.setattr(module, "_DESCRIPTION", tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "processor", lambda: "")

    def set_text(text: str | None) -> None:
        module._described.cache_clear()
        if text is not None:
            (tmp_path / "cpuinfo").write_text(text)

    yield set_text
    module._described.cache_clear()


def test_the_first_core_is_named_with_family_and_model(described: Callable[[str | None], None]) -> None:
    described(XEON)
    assert processor() == "Intel(R) Xeon(R) Processor, family 6, model 167"
    assert of_intel()


def test_a_processor_of_another_maker_is_not_intels(described: Callable[[str | None], None]) -> None:
    described(XEON.replace("GenuineIntel", "AuthenticAMD"))
    assert not of_intel()


@pytest.mark.parametrize("text", [RASPBERRY, "", None])
def test_what_the_system_does_not_tell_is_empty(described: Callable[[str | None], None], text: str | None) -> None:
    described(text)
    assert processor() == ""
    assert not of_intel()


def test_without_a_name_python_may_know_one(
    described: Callable[[str | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    described(None)
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert processor() == "arm"
