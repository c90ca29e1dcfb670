"""Where commands write to."""

import sys

from rich.console import Console


def output_console() -> Console:
    """Standard output: a table needs its columns, and a pipe or a log has no width of its own."""
    return Console() if sys.stdout.isatty() else Console(width=140)
