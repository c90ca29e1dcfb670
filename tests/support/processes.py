"""Processes of this machine, looked up in /proc or by `ps`, and waiting for them."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HAS_PROC = Path("/proc/self/stat").exists()


def parents() -> dict[int, int]:
    """Return the parent of every process on this machine."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name before it may hold anything, brackets too.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(stat.parent.name)] = int(fields[1])
    return found


def descendants(ancestor: int) -> set[int]:
    family, above = {ancestor}, parents()
    while more := {process for process, parent in above.items() if parent in family} - family:
        family |= more
    return family - {ancestor}


def title(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def titled(words: str, ancestor: int | None = None) -> list[int]:
    """Return the descendants of a process (of this one if None) whose command contains the words."""
    return [process for process in descendants(ancestor or os.getpid()) if words in title(process)]


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)
    return answer


def group_members(group: int) -> list[int]:
    """Return the running processes of a process group, without zombies."""
    rows = _listed("pid=,pgid=,stat=")
    return [int(pid) for pid, pgid, state in rows if int(pgid) == group and not state.startswith("Z")]


def worker_processes(parent: int) -> list[int]:
    """Return the worker processes of a run. The process that they are forked from is not one of them."""
    rows = _listed("pid=,ppid=,stat=,args=")
    servers = {int(pid) for pid, ppid, _, args in rows if int(ppid) == parent and "forkserver" in args}
    return [int(pid) for pid, ppid, *_ in rows if int(ppid) in servers]


def _listed(columns: str) -> list[list[str]]:
    # Without -ww the lines are cut where COLUMNS says, before the part of the command that tells a worker.
    listed = subprocess.run(["ps", "-ww", "-eo", columns], capture_output=True, text=True, check=True).stdout
    return [line.split(maxsplit=3) for line in listed.splitlines()]
