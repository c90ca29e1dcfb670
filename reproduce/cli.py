"""The command line `reproduce`: registers the commands and prints errors as one line."""

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from reproduce import interrupts
from reproduce.commands.board import board
from reproduce.commands.claims import claims
from reproduce.commands.coverage import coverage
from reproduce.commands.data import app as data_app
from reproduce.commands.datasets import datasets
from reproduce.commands.experiments import experiments
from reproduce.commands.export import app as export_app
from reproduce.commands.export import fit
from reproduce.commands.figure import figure
from reproduce.commands.methods import methods
from reproduce.commands.new import app as new_app
from reproduce.commands.plan import plan
from reproduce.commands.report import report
from reproduce.commands.run import run
from reproduce.commands.status import status
from reproduce.commands.store import app as store_app
from reproduce.commands.table import table
from reproduce.commands.verify import verify
from reproduce.errors import InputError
from results.store.errors import StoreError

app = typer.Typer(
    name="reproduce",
    help="Deep metric learning under the protocol of A Metric Learning Reality Check: fair comparisons, tables with "
    "confidence intervals. Start with `reproduce run quickstart`. Results are stored, so you can stop any command and "
    "repeat it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(run)
app.command()(plan)
app.command()(status)
app.command()(table)
app.command()(report)
app.command()(figure)
app.command()(coverage)
app.command()(claims)
app.command()(board)
app.command()(methods)
app.command()(datasets)
app.command()(experiments)
app.command()(verify)
app.command()(fit)
app.add_typer(data_app)
app.add_typer(export_app)
app.add_typer(new_app)
app.add_typer(store_app)

_INTERRUPTED = 130
"""Exit code that typer returns after Ctrl-C."""

# Depending on its release, typer contains a copy of click or uses the installed package.
_USAGE_ERROR: type[typer.BadParameter] = typer.BadParameter.__bases__[0]


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Print errors that the user can fix as one line and exit with code 2. After Ctrl-C say that nothing is lost."""
    from reproduce.errors import WorkFailedError

    console = Console(stderr=True, soft_wrap=True, emoji=False)  # `./losses.py:A:` is no emoji.

    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False)

    try:
        yield
    except (InputError, StoreError, WorkFailedError) as error:
        say(f"error: {error}")
        sys.exit(2)
    except _USAGE_ERROR as error:
        # An empty message means that typer has already printed the help.
        if message := error.format_message():
            say(f"error: {message.rstrip('.')}; see `reproduce --help`")
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read the output has read enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        say(f"error: {file}{error.strerror or error}; everything finished is kept")
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort) as stop:
        # typer takes the end of any file for Ctrl-D at a prompt.
        if isinstance(stop.__cause__, EOFError):
            say(f"error: a file ends too early ({stop.__cause__}); everything finished is kept")
            sys.exit(2)
        say(interrupts.STOPPED)
        sys.exit(interrupts.exit_code())


def _prepare_streams() -> None:
    """Let a stream that has no sign for a character get its escape, `\\xe9`, and one that is closed lose its text.

    Whoever chose another way, as with PYTHONIOENCODING=ascii:replace, keeps it.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and (
            stream.errors == "strict" or (stream.errors == "surrogateescape" and stream.encoding.lower() != "utf-8")
        ):
            stream.reconfigure(errors="backslashreplace")


def with_home(arguments: list[str]) -> list[str]:
    """Replace a leading `~` of paths, as in `--store=~/store.sqlite`, which the shell leaves as it is."""
    home = os.path.expanduser("~")
    return [re.sub(r"(^|=)~(?=/|$)", lambda match: match[1] + home, argument) for argument in arguments]


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
