"""The processor of this machine, as Linux describes it in `/proc/cpuinfo`."""

import platform
from functools import cache
from pathlib import Path

_DESCRIPTION = Path("/proc/cpuinfo")


def processor() -> str:
    """Return the processor's name with the numbers of its family and model; empty if the system tells nothing.

    Processors of one name can have other instructions and round differently: `AMD EPYC` is the name of many in virtual
    machines. Family and model are those of the design.
    """
    described = _described()
    name = described.get("model name") or platform.processor()
    numbers = [
        f"{word} {described[key]}" for word, key in (("family", "cpu family"), ("model", "model")) if key in described
    ]
    return ", ".join([name, *numbers] if name else numbers)


def of_intel() -> bool:
    """Return whether Intel made the processor, as far as the system tells."""
    return _described().get("vendor_id") == "GenuineIntel"


@cache
def _described() -> dict[str, str]:
    """The description of the first core."""
    try:
        first = _DESCRIPTION.read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}
