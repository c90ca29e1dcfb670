"""`methods`, `datasets` and `experiments`: what there is to choose from."""

import sys
from typing import Annotated

import typer

from reproduce.commands.output import output_console


def methods(
    name: Annotated[str | None, typer.Argument(help="One method, to see its card.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a card, for editors.")] = False,
) -> None:
    """List the methods, or show one with its loss, search space and source."""
    from reproduce.cards import card_names, card_schema, load_card
    from reproduce.terminal import show_card, show_cards

    if schema:
        sys.stdout.write(card_schema())
    elif name is None:
        show_cards([load_card(each) for each in card_names()], output_console())
    else:
        show_card(load_card(name), output_console())


def datasets() -> None:
    """List the datasets and what each needs."""
    from protocols.datasets.registry import DATASETS
    from reproduce.terminal import show_datasets

    show_datasets(DATASETS, output_console())


def experiments() -> None:
    """List the experiments that come with the suite."""
    from reproduce.experiment import experiment_names, load_experiments
    from reproduce.terminal import show_experiments

    show_experiments({name: load_experiments(name, {}) for name in experiment_names()}, output_console())
