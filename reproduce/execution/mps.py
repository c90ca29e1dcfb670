"""NVIDIA's Multi-Process Service (MPS), with which the kernels of several processes run on one GPU at the same time.

Without it, processes that share a GPU take turns: while kernels of one run, those of the others wait.
"""

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_LOG = logging.getLogger(__name__)
_CONTROL = "nvidia-cuda-mps-control"
_FOLDERS = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY")
_ANSWER_SECONDS, _QUIT_SECONDS = 120, 20

# The service also starts where GPUs cannot be used through it, so a process tries it.
_TRIAL = (
    sys.executable,
    "-c",
    "import torch; [torch.ones(2, device=f'cuda:{i}').sum().item() for i in range(torch.cuda.device_count())]",
)
# Its input ends when the block ends, or this process, in whatever way.
_END_WITH_INPUT = f'cat > /dev/null; echo quit -t {_QUIT_SECONDS} | {_CONTROL}; rm -rf -- "$1"'


@contextmanager
def multi_process_service() -> Iterator[bool]:
    """Let processes that are started within the block share GPUs through MPS, if it can be started here.

    A service that runs already is used and left as it is. One that is started here has its own folder for pipes and
    logs, and ends with the block, or with this process if that is killed. If there is none, one line says why and what
    to do. Not run on a GPU yet.

    Yields:
        Whether processes that are started now use MPS.
    """
    if shutil.which(_CONTROL) is None:
        _say_without(f"{_CONTROL} is not installed")
        yield False
        return
    if _failure((_CONTROL,), os.environ, "get_server_list") is None:
        yield True
        return
    folder = tempfile.mkdtemp(prefix="mps-")
    variables = dict.fromkeys(_FOLDERS, folder)
    # A service that is limited to some GPUs counts them anew. Its clients choose from all.
    environment = {**os.environ, **variables}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    before = {name: os.environ.get(name) for name in variables}
    keeper = None
    try:
        if (reason := _failure((_CONTROL, "-d"), environment)) is None:
            keeper = _keeper(folder, environment)
            reason = _failure(_TRIAL, {**os.environ, **variables})
        if reason is None:
            os.environ.update(variables)
        else:
            _say_without(reason)
            _end(keeper)
        yield reason is None
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})
        _end(keeper)
        shutil.rmtree(folder, ignore_errors=True)


def _say_without(reason: str) -> None:
    _LOG.warning(
        "trainings on one GPU take turns, since MPS does not run (%s); if you may, start it with `%s -d` before the "
        "run; no result depends on it",
        reason,
        _CONTROL,
    )


def _failure(command: Sequence[str], environment: Mapping[str, str], text: str = "") -> str | None:
    """Run a command with `text` as its input; return why it failed in one line, and None if it did not."""
    name = Path(command[0]).name
    # A file and not a pipe, since the service may keep it open.
    with tempfile.TemporaryFile() as output:
        try:
            done = subprocess.run(
                command,
                input=text.encode(),
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=_ANSWER_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{name}: {type(error).__name__}"
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines() or ["no message"]
    return None if done.returncode == 0 else f"{name}: {lines[-1]}"


def _keeper(folder: str, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start the process that ends the service when its input ends."""
    return subprocess.Popen(
        ("sh", "-c", _END_WITH_INPUT, "sh", folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        # Ctrl-C does not reach it.
        start_new_session=True,
    )


def _end(keeper: "subprocess.Popen[bytes] | None") -> None:
    if keeper is not None and keeper.stdin is not None:
        keeper.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            keeper.wait(2 * _QUIT_SECONDS)
