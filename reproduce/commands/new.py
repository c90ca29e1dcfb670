"""`new method`: writes a method card and a loss to start from."""

from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from reproduce.errors import InputError
from reproduce.terminal import output_console, say

app = typer.Typer(name="new", help="Write files to start from, such as a method of your own.", no_args_is_help=True)

_CARD = Template("""\
key: "$name"  # the name of this file
title: "$title"  # the name in tables
source: unpublished  # the paper that the method comes from

loss:
  # A path is relative to this file. The loss can also be my_package.module:Class, or a class of
  # pytorch-metric-learning such as TripletMarginLoss.
  name: ./$name.py:$cls
  # Arguments of the class. num_classes and embedding_size are filled in if the class requires them.
  arguments:
    scale: 16.0

# Images per class in a batch; 0 draws images at random.
batch:
  samples_per_class: 4

# Learning rate of the loss's own parameters; without it they get that of the network.
loss_optimizer:
  lr: 0.01

# What the search varies; scales are linear, log, int, int_log and choice.
search:
  loss.scale:
    scale: log
    low: 4.0
    high: 64.0
""")

_LOSS = Template('''\
"""A loss to start from: softmax over the cosines between embeddings and one learned proxy per class."""

import torch
from torch import nn
from torch.nn import functional


class $cls(nn.Module):
    def __init__(self, num_classes: int, embedding_size: int, scale: float = 16.0) -> None:
        super().__init__()
        self.scale = scale
        self.proxies = nn.Parameter(torch.randn(num_classes, embedding_size))

    def forward(self, embeddings, labels, indices_tuple=None):
        """embeddings (n, d), labels (n,) as 0..C-1; indices_tuple is what a miner chose, or None."""
        cosines = functional.normalize(embeddings) @ functional.normalize(self.proxies).T
        return functional.cross_entropy(self.scale * cosines, labels)
''')


@app.command()
def method(
    name: Annotated[str, typer.Argument(help="Name of the method: letters, digits and underscores, such as my_loss.")],
    to: Annotated[Path, typer.Option("--to", help="Folder for the two files.")] = Path(),
) -> None:
    """Write a commented method card and a loss that trains. Existing files are never overwritten."""
    card, loss = write_method(name, to)
    say(output_console(), f"written: {card}, {loss}")
    say(output_console(), f"try it: python -m reproduce run quickstart --methods contrastive,{card} --compare {name}")


def write_method(name: str, to: Path) -> tuple[Path, Path]:
    """Write a card and a loss of about twenty lines. The name is the key of the method and, in CamelCase, the class."""
    from reproduce.config.method_card import card_names
    from results.atomic_files import write_atomically

    if not (name.isidentifier() and name.isascii()):
        raise InputError(f"{name}: use letters, digits and underscores for the name of a method, such as my_loss")
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
    write_atomically(loss, _LOSS.substitute(values))
    write_atomically(card, _CARD.substitute(values))
    return card, loss
