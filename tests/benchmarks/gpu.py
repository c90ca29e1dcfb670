"""`make bench-gpu`: what this suite does on a GPU, without network, installation or git.

The benchmark has parts, and a part has pieces. Each part runs in a process of its own, for at most 8 minutes. The file
is written after every number, and a piece that is finished in it is not measured again: so the same command goes on
where an earlier one was stopped. A piece that dies, hangs or fails is named with its reason, and the others go on; the
next command tries it again. Without CUDA one line says so, and the exit status is 2. `--smoke` runs all parts on the
CPU with tiny sizes, to test this file. Nothing here decides a test.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from protocols.training.torch_state import torch_provenance, use_precision
from reproduce.execution.devices import prepare_process
from results.whole_files import write_whole
from tests.benchmarks import gpu_parts, gpu_side_by_side
from tests.benchmarks.gpu_parts import LeftOutError, Piece, Setup

OUT = Path("results/measured/bench_gpu.json")
PARTS: dict[str, Callable[[Setup], dict[str, Piece]]] = {
    "retrieval": gpu_parts.retrieval,
    "tests": gpu_parts.gpu_tests,
    "steps": gpu_parts.steps,
    "loop": gpu_parts.whole_loop,
    "crops": gpu_parts.crops,
    "side_by_side": gpu_side_by_side.side_by_side,
}
PART_SECONDS = 480
"""The longest time of a part in one command. What it leaves is for the next command."""
PIECE_SECONDS = 150
"""The longest time in which a piece writes nothing. It is then ended as one that hangs."""
TOO_LONG = f"longer than the {PART_SECONDS} seconds of a part"


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gpu", description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, help=f"default: {OUT}; finished pieces in it are not measured again")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all, in this order")
    parser.add_argument("--smoke", action="store_true", help="on the CPU with tiny sizes")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


class Record:
    """The file of all numbers: {part: {piece: numbers}}, and where they come from.

    A piece that has begun has `begun`; one that failed has `failed`, with the reason, beside its numbers so far.
    """

    def __init__(self, path: Path, *, smoke: bool) -> None:
        self.path = path
        self.content: dict[str, Any] = {"smoke": smoke, "origins": [], "parts": {}}
        if path.exists():
            self.content = json.loads(path.read_text())

    def pieces(self, part: str) -> dict[str, Any]:
        """The pieces of a part that have begun."""
        pieces: dict[str, Any] = self.content["parts"].setdefault(part, {})
        return pieces

    def origin(self, device: torch.device) -> int:
        """Where numbers come from that are measured now, as a position in `origins`."""
        origin = torch_provenance(device).model_dump(mode="json")
        del origin["finished_at"]
        if origin not in self.content["origins"]:
            self.content["origins"].append(origin)
        return int(self.content["origins"].index(origin))

    def forget_unfinished(self, part: str, *, failed: bool) -> None:
        """Leave out pieces that were interrupted, and, if wanted, those that failed."""
        pieces = self.pieces(part)
        for name in [name for name, found in pieces.items() if "begun" in found or (failed and "failed" in found)]:
            del pieces[name]

    def fail_begun(self, part: str, reason: str) -> None:
        """Say why the piece failed that had begun."""
        for found in self.pieces(part).values():
            if found.pop("begun", False):
                found["failed"] = reason

    def failed(self, part: str) -> list[str]:
        """Names of the pieces that failed."""
        return [name for name, found in self.pieces(part).items() if "failed" in found]

    def write(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, json.dumps(self.content, indent=1) + "\n")


def measure_pieces(part: str, setup: Setup, record: Record) -> None:
    """Measure the pieces of a part that the file lacks, in this process. The first failure ends it.

    Raises:
        SystemExit: A piece failed. A CUDA error stays with its process, so the rest gets another one.
    """
    prepare_process(str(setup.device))
    pieces = record.pieces(part)
    for name, piece in PARTS[part](setup).items():
        if name in pieces:
            continue
        use_precision("float32")
        numbers: dict[str, Any] = {"begun": True}
        pieces[name] = numbers
        record.write()
        started = time.perf_counter()

        def note(new: dict[str, Any], numbers: dict[str, Any] = numbers) -> None:
            numbers.update(new)
            record.write()

        try:
            piece(note)
        except LeftOutError as error:
            numbers["left_out"] = str(error)
        except Exception as error:
            numbers["failed"] = f"{type(error).__name__}: {error}".partition("\n")[0]
        del numbers["begun"]
        note({"seconds": round(time.perf_counter() - started, 1), "origin": record.origin(setup.device)})
        if "failed" in numbers:
            raise SystemExit(1)


def run_part(part: str, out: Path, *, smoke: bool) -> str:
    """Run one part, in a new process after each piece that fails; return what came of it, in a line."""
    record = Record(out, smoke=smoke)
    record.forget_unfinished(part, failed=True)
    record.write()
    command = [sys.executable, "-m", "tests.benchmarks.gpu", "--part", part, "--out", str(out)] + ["--smoke"] * smoke
    started, rest = time.perf_counter(), ""
    while True:
        before = record.failed(part)
        status, reason = watched(command, out, started + PART_SECONDS)
        record = Record(out, smoke=smoke)
        if reason == TOO_LONG:
            rest = "; the rest is left for the next command"
            record.forget_unfinished(part, failed=False)
        record.fail_begun(part, reason)
        record.write()
        failed = record.failed(part)
        if status == 0 or rest:
            break
        if failed == before:
            return f"{part}: it could not begin: {reason}"
    pieces = record.pieces(part)
    seconds = time.perf_counter() - started
    names = "".join(f"\n  failed: {name}: {pieces[name]['failed']}" for name in failed)
    return f"{part}: {len(pieces) - len(failed)} pieces done, {len(failed)} failed, {seconds:.0f} s{rest}{names}"


def watched(command: list[str], out: Path, until: float) -> tuple[int, str]:
    """Run a command until it ends, its time is over, or nothing was written to a file for too long.

    Returns:
        The exit status, and in a line why the command failed. A command that is ended takes its own processes along.
    """
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        reason, begun = "", time.time()
        while process.poll() is None and not reason:
            time.sleep(0.2)
            written = max(begun, out.stat().st_mtime if out.exists() else 0.0)
            if time.perf_counter() > until:
                reason = TOO_LONG
            elif time.time() - written > PIECE_SECONDS:
                reason = f"nothing was written for {PIECE_SECONDS} seconds"
        # What the command started ends with it, however it ended.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        errors.seek(0)
        last = errors.read().strip().rpartition("\n")[2]
    return status, reason or (f"exit status {status}" if status < 0 or not last else last)


def end_with_parent() -> None:
    """End this process, with those that it started, when its parent ends: it must not run beside the next command."""

    def wait() -> None:
        os.read(0, 1)  # The parent writes nothing, so this returns when it has ended.
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: list[str] | None = None) -> int:
    """Measure all parts and write the file.

    Returns:
        The exit status: 0, or 2 without CUDA.
    """
    options = parsed(arguments)
    if not options.smoke and not torch.cuda.is_available():
        print("bench-gpu: this machine has no CUDA, so nothing was measured")
        return 2
    if options.smoke and options.out is None:
        print("bench-gpu: --smoke needs --out, so that no record is replaced by numbers of a CPU")
        return 2
    out = options.out or OUT
    if options.part:
        end_with_parent()
        device = torch.device("cpu" if options.smoke else "cuda")
        measure_pieces(options.part, Setup(device, options.smoke), Record(out, smoke=options.smoke))
        return 0
    if Record(out, smoke=options.smoke).content["smoke"] != options.smoke:
        print(
            f"bench-gpu: {out} has numbers of {'a GPU' if options.smoke else '--smoke'}; name another file with --out"
        )
        return 2
    for part in options.parts:
        print(run_part(part, out, smoke=options.smoke), flush=True)
    print(f"written: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
