"""The command line `reproduce`: registers the commands and prints errors as one line."""

import errno
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from reproduce import interrupts
from reproduce.commands import data, export, features, new, store
from reproduce.commands.audit import audit
from reproduce.commands.evaluate import evaluate
from reproduce.commands.lists import coverage, datasets, experiments, methods, status
from reproduce.commands.plan import plan
from reproduce.commands.report import report
from reproduce.commands.run import run
from reproduce.commands.table import board, claims, table
from reproduce.errors import InputError, WorkFailedError
from results.store import StoreError
from results.wording import first_line

app = typer.Typer(
    name="reproduce",
    help="Deep metric learning under the protocol of A Metric Learning Reality Check: fair comparisons, tables with "
    "confidence intervals. Start with `reproduce run quickstart`. Results are stored, so you can stop any command and "
    "repeat it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_COMMANDS = (run, plan, status, table, report, coverage, claims, audit, board, methods, datasets, experiments)
for command in (*_COMMANDS, export.fit, evaluate):
    app.command()(command)
for group in (data, features, export, new, store):
    app.add_typer(group.app)

_INTERRUPTED = 130
"""Exit code that typer returns after Ctrl-C."""

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
"""What a terminal may take for a command, such as in a name that is wrong."""

_UNWRITABLE = "; if it cannot be written, name another folder with --cache FOLDER, --artifacts or --store"
_REMEDIES = {errno.ENOSPC: "; free some space", errno.EACCES: _UNWRITABLE, errno.EROFS: _UNWRITABLE}

# Depending on its release, typer contains a copy of click or uses the installed package.
_USAGE_ERROR: type[typer.BadParameter] = typer.BadParameter.__bases__[0]


def _command(context: Any) -> str:
    """The command that was called, as a user writes it, whatever started it."""
    if context is None or context.parent is None:
        return "reproduce"
    return f"{_command(context.parent)} {context.info_name}"


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Print errors that the user can fix as one line and exit with code 2. After Ctrl-C say that nothing is lost."""
    console = Console(stderr=True, soft_wrap=True, emoji=False)  # `./losses.py:A:` is no emoji.

    def say(line: str) -> None:
        console.print(_CONTROL.sub("?", line), highlight=False, markup=False)

    try:
        yield
    except (InputError, StoreError, WorkFailedError) as error:
        say(f"error: {error}")
        sys.exit(2)
    except _USAGE_ERROR as error:
        # An empty message means that typer has already printed the help.
        if message := error.format_message():
            say(f"error: {message.rstrip('.').replace('Value error, ', '')}; see `{_command(error.ctx)} --help`")
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read the output has read enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        remedy = _REMEDIES.get(error.errno or 0, "")
        kept = "" if error.errno == errno.ENOENT else "; everything finished is kept"
        say(f"error: {file}{error.strerror or error}{remedy}{kept}")
        sys.exit(2)
    except (MemoryError, RuntimeError, ImportError) as error:
        if not _is_short_of_memory(error):
            raise
        say(
            f"error: not enough memory ({first_line(error) or type(error).__name__}); raise the limit (`ulimit -v`, a "
            "job's memory) or take fewer --workers; everything finished is kept"
        )
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        say(interrupts.STOPPED)
        sys.exit(interrupts.exit_code())


def _is_short_of_memory(error: Exception) -> bool:
    """Return whether memory or threads ran out, in the words of Python, of the system's loader and of torch."""
    words = ("failed to map segment", "cannot allocate memory", "can't allocate memory", "can't start new thread")
    return isinstance(error, MemoryError) or any(one in str(error).lower() for one in words)


def _prepare_streams() -> None:
    """Let a stream that has no sign for a character get its escape, `\\xe9`, and one that is closed lose its text.

    Whoever chose another way, as with PYTHONIOENCODING=ascii:replace, keeps it. A width of no column counts as unknown.
    """
    if os.environ.get("COLUMNS", "").strip("0 ") == "":
        os.environ.pop("COLUMNS", None)
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and (
            stream.errors == "strict" or (stream.errors == "surrogateescape" and stream.encoding.lower() != "utf-8")
        ):
            stream.reconfigure(errors="backslashreplace")


def with_home(arguments: list[str]) -> list[str]:
    """Replace a leading `~` of paths, as in `--store=~/s.sqlite` or `+~/card.yaml`, which the shell leaves as it is."""
    home = os.path.expanduser("~")
    return [re.sub(r"(^|[=,+[ ])~(?=/|$)", lambda match: match[1] + home, argument) for argument in arguments]


def main() -> None:
    """Run the command of `sys.argv` and exit with its code."""
    _prepare_streams()
    with _one_line_errors():
        code = app(with_home(sys.argv[1:]), standalone_mode=False)
        sys.stdout.flush()
        # An exception of the signal can be lost in code that cannot raise one; its note cannot.
        interrupts.stop_if_requested()
        if code == _INTERRUPTED:
            raise interrupts.StopRequest
    sys.exit(code or 0)
