"""Leases: which process works on a study, a training or a test, so that runs on one store do nothing twice.

A lease is a row with the name of the work and its owner. The owner counts its row up every ten seconds. If a process on
the same machine has ended, others take its leases at once. If the owner is on another machine, they take them after its
count has stood still for `LEASE_SECONDS`. They measure this time with their own clock, so clocks may differ.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from results.store.database import Database, insert_unless_present
from results.store.patience import LockWait, StoreError, patient
from results.store.schema import LEASES


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


LEASE_SECONDS = 60.0
"""How long the lease of a process on another machine lives without a sign of life from its owner."""

_BEAT_SECONDS = 10.0


class _HeldElsewhereError(Exception):
    """Ends a transaction, since one of the leases has another owner."""

    def __init__(self, holder: ProcessIdentity) -> None:
        super().__init__()
        self.holder = holder


class Leases:
    """The leases of one run. Use it as a context manager: at its end all leases are given back.

    Args:
        database: The store's database.
    """

    def __init__(self, database: Database) -> None:
        self._database, self._owner, self._process = database, uuid.uuid4().hex, this_process()
        self._last_signs: dict[str, tuple[str, int, float]] = {}
        self._closed = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="leases", daemon=True)

    def __enter__(self) -> Leases:
        self._remove_leftovers()
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        self._heart.join()
        # If the database fails now, the leases end by themselves.
        with suppress(StoreError), self._database.writing() as connection:
            connection.execute(sa.delete(LEASES).where(LEASES.c.owner == self._owner))

    @property
    def lock_wait(self) -> LockWait:
        """What to do about a SQLite file that stays locked."""
        return self._database.lock_wait

    @patient
    def take(self, *names: str) -> ProcessIdentity | None:
        """Take leases, all of them or none.

        Args:
            names: Names of the leases.

        Returns:
            None if the leases are taken; otherwise the process that has one of them.
        """
        try:
            with self._database.writing() as connection:
                # In one order for all processes, so that two never wait for each other.
                for name in sorted(names):
                    self._take(connection, name)
        except _HeldElsewhereError as error:
            return error.holder
        return None

    @patient
    def has(self, *names: str) -> bool:
        """Tell whether leases that were taken have not been lost, for instance while this machine was asleep."""
        query = sa.select(sa.func.count()).where(LEASES.c.name.in_(names) & (LEASES.c.owner == self._owner))
        with self._database.reading() as connection:
            return connection.execute(query).scalar_one() == len(set(names))

    @patient
    def give_back(self, *names: str) -> None:
        """Give leases back. Leases of other owners are left alone."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(LEASES).where(LEASES.c.name.in_(names) & (LEASES.c.owner == self._owner)))

    def _take(self, connection: sa.Connection, name: str) -> None:
        mine = {
            "owner": self._owner,
            "machine": self._process.machine,
            "pid": self._process.pid,
            "started": self._process.started,
            "beats": 0,
        }
        if insert_unless_present(connection, LEASES, {"name": name, **mine}):
            return
        stored = connection.execute(sa.select(LEASES).where(LEASES.c.name == name)).one_or_none()
        if stored is None:  # Given back in this moment; the next try takes it.
            raise _HeldElsewhereError(self._process)
        if stored.owner == self._owner:
            return
        unchanged = (LEASES.c.name == name) & (LEASES.c.owner == stored.owner) & (LEASES.c.beats == stored.beats)
        if (
            not self._is_over(stored)
            or not connection.execute(sa.update(LEASES).where(unchanged).values(mine)).rowcount
        ):
            raise _HeldElsewhereError(_holder(stored))

    def _is_over(self, stored: sa.Row[Any]) -> bool:
        """Tell whether the owner has ended, or has given no sign of life for too long."""
        if _holder(stored).has_ended():
            return True
        owner, beats, since = self._last_signs.get(stored.name, ("", 0, 0.0))
        if (owner, beats) != (stored.owner, stored.beats):
            self._last_signs[stored.name] = (stored.owner, stored.beats, time.monotonic())
            return False
        return time.monotonic() - since > LEASE_SECONDS

    @patient
    def _remove_leftovers(self) -> None:
        """Remove the leases of ended processes of this machine."""
        with self._database.writing() as connection:
            for stored in connection.execute(sa.select(LEASES)).all():
                if _holder(stored).has_ended():
                    connection.execute(sa.delete(LEASES).where(LEASES.c.owner == stored.owner))

    def _beat(self) -> None:
        while not self._closed.wait(_BEAT_SECONDS):
            # An error may pass; if it does not, the run itself notices.
            with suppress(StoreError), self._database.writing() as connection:
                connection.execute(
                    sa.update(LEASES).where(LEASES.c.owner == self._owner).values(beats=LEASES.c.beats + 1)
                )


def _holder(stored: sa.Row[Any]) -> ProcessIdentity:
    return ProcessIdentity(stored.machine, stored.pid, stored.started)
