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
from contextlib import contextmanager

_LOG = logging.getLogger(__name__)
_CONTROL = "nvidia-cuda-mps-control"
_ANSWER_SECONDS = 120

# The service also starts where GPUs cannot be used through it, so a process tries it.
_TRIAL = (
    sys.executable,
    "-c",
    "import torch; [torch.ones(2, device=f'cuda:{i}').sum().item() for i in range(torch.cuda.device_count())]",
)
# Its input ends when the block ends, or this process, in whatever way.
_END_WITH_INPUT = f'cat > /dev/null; echo quit -t 20 | {_CONTROL}; rm -rf -- "$1"'


@contextmanager
def multi_process_service() -> Iterator[bool]:
    """Let processes that are started within the block share GPUs through MPS, if it can be started here.

    A service that runs already is used and left as it is. One that is started here has its own folder for pipes and
    logs, and ends with the block, or with this process if that is killed. If there is none, one line says why and what
    to do.

    Yields:
        Whether processes that are started now use MPS.
    """
    if shutil.which(_CONTROL) is not None and _failure((_CONTROL,), os.environ, "get_server_list") is None:
        yield True
        return
    folder = tempfile.mkdtemp(prefix="mps-")
    variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    # A service that is limited to some GPUs counts them anew. Its clients choose from all.
    everything = {**os.environ, **variables}
    everything.pop("CUDA_VISIBLE_DEVICES", None)
    reason = _failure((_CONTROL, "-d"), everything) or _failure(_TRIAL, {**os.environ, **variables})
    keeper = subprocess.Popen(
        ("/bin/sh", "-c", _END_WITH_INPUT, "sh", folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=everything,
        start_new_session=True,  # Ctrl-C does not reach it.
    )
    before = {name: os.environ[name] for name in variables if name in os.environ}
    try:
        if reason is None:
            os.environ.update(variables)
        else:
            _LOG.warning(
                "trainings on one GPU take turns, since MPS does not run (%s); if you may, start it with `%s -d` "
                "before the run; no result depends on it",
                reason,
                _CONTROL,
            )
            keeper.communicate()
        yield reason is None
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(before)
        keeper.communicate()


def _failure(command: Sequence[str], environment: Mapping[str, str], text: str = "") -> str | None:
    """Run a command with `text` as its input; return why it failed in one line, and None if it did not."""
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
        except FileNotFoundError:
            return f"{command[0]} is not installed"
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[0]}: {type(error).__name__}"
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines() or ["no message"]
    return None if done.returncode == 0 else f"{command[0]}: {lines[-1]}"
