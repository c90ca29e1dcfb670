"""`new`: writes files to start from."""

from pathlib import Path
from typing import Annotated

import typer

from reproduce.commands.terminal import output_console, say

app = typer.Typer(name="new", help="Write files to start from, such as a method of your own.", no_args_is_help=True)


@app.callback()
def _new() -> None:
    """Make `new` a group of commands, also while it has only one."""


@app.command()
def method(
    name: Annotated[str, typer.Argument(help="Name of the method: letters, digits and underscores, such as my_loss.")],
    to: Annotated[Path, typer.Option("--to", help="Folder for the two files.")] = Path(),
) -> None:
    """Write a commented method card and a loss that trains. Existing files are never overwritten."""
    from reproduce.outputs.new_method import write_method

    card, loss = write_method(name, to)
    console = output_console()
    say(console, f"written: {card}, {loss}")
    say(console, f"try it: python -m reproduce run quickstart --methods contrastive,{card} --compare {name}")
