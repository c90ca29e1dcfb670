"""Checks that all nodes of a cluster see the folders that trainings read and write."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce.errors import InputError
from reproduce.execution.ray_capacity import Node

_ANSWER_SECONDS = 120
"""Seconds that a node may take to start a process and import torch."""


def check_nodes(ray: Any, nodes: Sequence[Node], folders: Sequence[Path]) -> None:
    """Check that every node sees the content of the folders and can import this suite.

    A node may have a folder of the same name on a local disk. For this reason a file is put into each folder, and the
    nodes look for this file.

    Args:
        ray: The imported package, connected to a cluster.
        nodes: The nodes to check.
        folders: Folders that all nodes must share; they are made if they do not exist.

    Raises:
        InputError: A node does not answer, does not see a folder, or cannot import the suite.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    marks = [mark(folder) for folder in folders]
    try:
        check = ray.remote(num_cpus=0, max_retries=0)(_node_check())
        # All checks start before the first answer is awaited.
        answers = [
            check.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                [str(path) for path in marks]
            )
            for node in nodes
        ]
        for node, answer in zip(nodes, answers, strict=True):
            _read_answer(ray, node, answer)
    finally:
        for path in marks:
            path.unlink(missing_ok=True)


def mark(folder: Path) -> Path:
    """Make an empty file with a unique name in `folder` and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder.absolute() / f".seen-{uuid.uuid4().hex}"
    path.touch()
    return path


def _read_answer(ray: Any, node: Node, answer: Any) -> None:
    """Wait for the answer of a node; raise InputError if the node cannot be used."""
    name = f"--ray: node {node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
    try:
        unseen, import_error = ray.get(answer, timeout=_ANSWER_SECONDS)
    except ray.exceptions.RayError as error:
        raise InputError(f"{name} does not answer ({type(error).__name__})") from error
    if unseen:
        raise InputError(
            f"{name} does not see {Path(unseen[0]).parent}; the cache, the artifacts and the checkout must lie on a "
            "file system that all nodes share (--cache, --artifacts)"
        )
    if import_error:
        checkout = Path(__file__).resolve().parents[2]
        raise InputError(
            f"{name} cannot import this suite ({import_error}); it must see {checkout} and have the same packages "
            "installed"
        )


def _node_check() -> Any:
    """Return the function that runs on a node.

    The function is defined here so that Ray sends its code, also to nodes that cannot import this module.
    """

    def check(marks: list[str]) -> tuple[list[str], str]:
        import importlib
        import os

        unseen = [path for path in marks if not os.path.exists(path)]
        try:
            importlib.import_module("reproduce.execution.carry_out")
        except Exception as error:
            return unseen, f"{type(error).__name__}: {error}".splitlines()[0]
        return unseen, ""

    return check
