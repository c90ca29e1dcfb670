"""The memory of this process, as Linux counts it."""

from pathlib import Path
from typing import Literal


def process_memory(key: Literal["VmRSS", "VmHWM"]) -> float:
    """Memory of this process in MiB, now (`VmRSS`) or at most so far (`VmHWM`).

    `resource.getrusage` does not tell: a new process begins with the peak of the one that has started it.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024
