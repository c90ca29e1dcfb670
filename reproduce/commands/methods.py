"""`methods`: lists the method cards, or shows one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from reproduce.commands.terminal import output_console

if TYPE_CHECKING:
    from reproduce.config.method_card import MethodCard


def methods(
    name: Annotated[str | None, typer.Argument(help="Name of a method whose card is shown.")] = None,
) -> None:
    """List the methods, or show the card of one: its loss, search space and source."""
    from reproduce.config.checked_card import load_card
    from reproduce.config.method_card import card_names

    if name is None:
        show_cards([load_card(key) for key in card_names()], output_console())
    else:
        show_card(load_card(name), output_console())


def show_cards(cards: Sequence[MethodCard], console: Console) -> None:
    """Print the methods, one per line."""
    table = Table(title="methods")
    table.add_column("method", no_wrap=True)
    for name in ("title", "loss", "images per class", "searched"):
        table.add_column(name)
    for card in cards:
        loss = "-" if card.loss is None else card.loss.name
        searched = ", ".join(target.removeprefix("loss.") for target in card.search) or "-"
        table.add_row(card.key, card.title, loss, str(card.batch.samples_per_class), searched)
    console.print(table)
    console.print("`reproduce methods NAME` shows the whole card of one.")


def show_card(card: MethodCard, console: Console) -> None:
    """Print a card as YAML, in the form of its file. Settings with their default value are left out."""
    import yaml

    from reproduce.config.checked_card import users_sources

    content = card.model_dump(mode="json", exclude_defaults=True)
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    console.print(text, highlight=False, end="", soft_wrap=True)
    # A comment, so that the output can be saved as a card.
    for name in users_sources(card):
        console.print(f"# {name}", highlight=False, markup=False, soft_wrap=True)
