"""Names a process so that other processes, also on other machines, can tell whether it still runs."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessIdentity:
    """A process of some machine.

    Attributes:
        machine: The host's name, its boot and its process namespace: containers can share a host's name.
        pid: Number of the process.
        started: When the process started, in the system's ticks; empty where the system does not tell. Numbers of ended
            processes are given to new ones.
    """

    machine: str
    pid: int
    started: str

    @property
    def host(self) -> str:
        """Name of the machine in messages."""
        return self.machine.partition(" ")[0]

    def has_ended(self) -> bool:
        """Tell whether the process is known to have ended. Nothing is known about other machines."""
        if self.machine != _this_machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # It runs and belongs to another user.
        return _start_of(self.pid) != self.started


def this_process() -> ProcessIdentity:
    """Return the identity of this process."""
    return ProcessIdentity(_this_machine(), os.getpid(), _start_of(os.getpid()))


def _this_machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{platform.node()} {boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _start_of(pid: int) -> str:
    """The start of a process; "ended" if it only waits for its parent to notice its end."""
    try:
        # The name before these fields may hold anything, brackets too.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[0] in "ZX" else fields[19]
