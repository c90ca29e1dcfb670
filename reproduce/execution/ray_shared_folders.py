"""Checks that all nodes of a cluster see the folders that trainings read and write."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce.errors import InputError
from reproduce.execution.ray_capacity import Node

_ANSWER_SECONDS = 120
"""How long a node may take to start a process and import torch."""


def check_nodes(ray: Any, nodes: Sequence[Node], folders: Sequence[Path]) -> None:
    """Asks every node whether it sees the folders' content and can import this package; raises InputError.

    A file is put into each folder while the nodes are asked, since a node may have a folder of the same name on a disk
    of its own.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    marks = [mark(folder) for folder in folders]
    try:
        ask = ray.remote(num_cpus=0, max_retries=0)(_question())
        # All are asked before the first answer is waited for.
        answers = [
            ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                [str(path) for path in marks]
            )
            for node in nodes
        ]
        for node, answer in zip(nodes, answers, strict=True):
            _check(ray, node, answer)
    finally:
        for path in marks:
            path.unlink(missing_ok=True)


def mark(folder: Path) -> Path:
    """An empty file in `folder` with a name that no other file has."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.absolute() / f".seen-{uuid.uuid4().hex}"
    path.touch()
    return path


def _check(ray: Any, node: Node, answer: Any) -> None:
    name = f"--ray: node {node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
    try:
        unseen, trouble = ray.get(answer, timeout=_ANSWER_SECONDS)
    except ray.exceptions.RayError as error:
        raise InputError(f"{name} does not answer ({type(error).__name__})") from error
    if unseen:
        raise InputError(
            f"{name} does not see {Path(unseen[0]).parent}; the cache, the artifacts and the checkout must lie on a "
            "file system that all nodes share (--cache, --artifacts)"
        )
    if trouble:
        here = Path(__file__).resolve().parents[2]
        raise InputError(
            f"{name} cannot import this suite ({trouble}); it must see {here} and have the same packages installed"
        )


def _question() -> Any:
    """What runs on a node; defined here so that it travels by value, to nodes that cannot import this module."""

    def ask(marks: list[str]) -> tuple[list[str], str]:
        import importlib
        import os

        unseen = [path for path in marks if not os.path.exists(path)]
        try:
            importlib.import_module("reproduce.execution.carry_out")
        except Exception as error:
            return unseen, f"{type(error).__name__}: {error}".splitlines()[0]
        return unseen, ""

    return ask
