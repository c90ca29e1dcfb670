"""`make bench-gpu`: what this suite does on a GPU, in at most 9 minutes and without network.

Each part runs in a process of its own with a time limit, and the file is written after each part. So a part that fails
or takes too long costs only itself. Without CUDA one line says so, and the exit status is 2. `--smoke` runs all parts
on the CPU with tiny sizes, to test this file. Nothing here decides a test.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from protocols.training.torch_state import device_name
from results.records.provenance import provenance
from results.whole_files import write_whole
from tests.benchmarks import gpu_parts

OUT = Path("results/measured/bench_gpu.json")
LIMITS = {"tests": 110, "retrieval": 40, "steps": 140, "folds": 120, "augmentation": 50, "run": 70}
"""Seconds that each part may take; 530 in all."""


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gpu", description=__doc__.split("\n\n")[0])
    parser.add_argument("--images", type=Path, help="folder of CUB-200-2011, or of a part of it, for a short run")
    parser.add_argument("--out", type=Path, help=f"default: {OUT}")
    parser.add_argument("--parts", nargs="+", choices=LIMITS, default=list(LIMITS), help="default: all")
    parser.add_argument("--smoke", action="store_true", help="on the CPU with tiny sizes")
    parser.add_argument("--part", choices=LIMITS, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def measured(part: str, options: argparse.Namespace) -> Any:
    """One part, measured in a process of its own.

    Returns:
        What the part wrote; {"failed": reason} if it failed or took too long, with what it had written by then.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "part.json"
        command = [sys.executable, "-m", "tests.benchmarks.gpu", "--part", part, "--out", str(out)]
        command += ["--smoke"] * options.smoke + (["--images", str(options.images)] if options.images else [])
        started = time.perf_counter()
        reason = _failure(command, LIMITS[part])
        result: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        if reason is not None:
            result["failed"] = reason
        result["seconds"] = round(time.perf_counter() - started, 1)
    return result


def _failure(command: list[str], limit: float) -> str | None:
    """Run a command; return why it failed, or None. After the limit it is ended, with the processes that it started."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"took longer than {limit:g} seconds"
        errors.seek(0)
        return (errors.read().strip().rpartition("\n")[2] or f"exit status {status}") if status else None


def main(arguments: list[str] | None = None) -> int:
    """Measure all parts and write the file.

    Returns:
        The exit status: 0, or 2 without CUDA.
    """
    options = parsed(arguments)
    if not options.smoke and not torch.cuda.is_available():
        print("bench-gpu: this machine has no CUDA, so nothing was measured")
        return 2
    device = torch.device("cpu" if options.smoke else "cuda")
    if options.part:
        gpu_parts.PARTS[options.part](gpu_parts.Setup(device, options.smoke, options.images, options.out))
        return 0
    if options.smoke and options.out is None:
        print("bench-gpu: --smoke needs --out, so that no record is replaced by numbers of a CPU")
        return 2
    out = options.out or OUT
    content: dict[str, Any] = {}
    for part in options.parts:
        content[part] = measured(part, options)
        origin = provenance(device_name(device), torch.get_num_threads()).model_dump(mode="json")
        write_whole(out, json.dumps({"smoke": options.smoke, **content, "provenance": origin}, indent=1) + "\n")
        print(f"{part}: {content[part].get('failed', 'done')}, {content[part]['seconds']} s", flush=True)
    print(f"written: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
