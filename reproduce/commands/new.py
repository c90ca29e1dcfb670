"""`new method`: writes a method card and a loss to start from."""

import keyword
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated, Literal

import typer
from rich.prompt import Prompt

from reproduce.errors import InputError
from reproduce.terminal import say

app = typer.Typer(name="new", help="Write files to start from, such as a method of your own.", no_args_is_help=True)

KINDS = {
    "proxy": "the loss learns vectors of the classes, whose rate is searched; 1 image of a class in a batch",
    "pairs": "the loss compares images with each other and learns nothing itself; 4 images of a class in a batch",
}

_TAKEN = {"all", "best", "none", "null", "true", "false", "na", "nan"}
"""What `--compare` takes beside methods, what YAML reads as no text, and what tables read as a missing value."""


@app.command()
def method(
    name: Annotated[str, typer.Argument(help="Name of the method: letters, digits and underscores, such as my_loss.")],
    kind: Annotated[
        Literal["proxy", "pairs"] | None, typer.Option("--kind", help="Kind of the loss; asked for when left out.")
    ] = None,
    to: Annotated[Path, typer.Option("--to", help="Folder for the two files.")] = Path(),
) -> None:
    """Write a commented method card and a loss that trains. Existing files are never overwritten.

    Batches and searched rates are those that the suite gives its own losses of the kind, so that a comparison is fair.
    """
    card, loss = write_method(name, to, kind or _asked())
    say(f"written: {card}, {loss}")
    say(f"try it: python -m reproduce run quickstart --methods contrastive,{card} --compare {name}")


def _asked() -> str:
    if not sys.stdin.isatty():
        ways = "; or ".join(f"--kind {kind}: {what}" for kind, what in KINDS.items())
        raise InputError(f"which kind of loss? Give {ways}")
    for kind, what in KINDS.items():
        say(f"{kind}: {what}")
    return Prompt.ask("kind", choices=[*KINDS])


def write_method(name: str, to: Path, kind: str) -> tuple[Path, Path]:
    """Write a card and a loss of about twenty lines. The name is the key of the method and, in CamelCase, the class."""
    from reproduce.config.method_card import card_names
    from results.atomic_files import write_atomically

    if not (name.isidentifier() and name.isascii()):
        raise InputError(f"{name}: use letters, digits and underscores for the name of a method, such as my_loss")
    if keyword.iskeyword(name) or name.lower() in _TAKEN:
        raise InputError(f"{name}: has another meaning in Python, YAML, tables or options; choose another name")
    if name in card_names():
        raise InputError(f"{name}: there is a method of this name already; choose another name")
    card, loss = to / f"{name}.yaml", to / f"{name}.py"
    if not to.is_dir():
        raise InputError(f"{to}: no such folder; make it first")
    for path in (card, loss):
        if path.exists():
            raise InputError(f"{path}: exists already and is not overwritten; choose another name, or --to a folder")
    if find_spec(name) is not None:
        raise InputError(f"{name}: {name}.py would hide the Python module of this name; choose another name")
    words = [word for word in name.split("_") if word]
    cls = "".join(word[:1].upper() + word[1:] for word in words)
    cls = cls if cls.isidentifier() else f"Loss{cls}"
    values = {"name": name, "title": " ".join(words).capitalize() or name, "cls": cls}
    for path, suffix in ((loss, "txt"), (card, "yaml")):
        template = resources.files("reproduce").joinpath("templates", f"{kind}.{suffix}").read_text(encoding="utf-8")
        write_atomically(path, Template(template).substitute(values))
    return card, loss
