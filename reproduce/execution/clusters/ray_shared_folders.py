"""Checks that all nodes of a Ray cluster see the folders that trainings read and write, and have the same code."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduce.errors import InputError
from reproduce.execution.clusters.ray import Node
from reproduce.execution.executor import cannot_import, code_version, difference, mark, other_code, unseen_folder

_ANSWER_SECONDS = 120
"""Seconds that a node may take to start a process and import torch."""


def check_nodes(ray: Any, nodes: Sequence[Node], folders: Sequence[Path]) -> None:
    """Check that every node sees the content of the folders and can import this suite, in the same version.

    Args:
        ray: The imported package, connected to a cluster.
        nodes: The nodes to check.
        folders: Folders that all nodes must share; they are made if they do not exist.

    Raises:
        InputError: A node does not answer, does not see a folder, cannot import the suite, or has other code.
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


def _read_answer(ray: Any, node: Node, answer: Any) -> None:
    """Wait for the answer of a node; raise InputError if the node cannot be used."""
    name = f"--ray: node {node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
    try:
        unseen, import_error, version = ray.get(answer, timeout=_ANSWER_SECONDS)
    except ray.exceptions.RayError as error:
        raise InputError(f"{name} does not answer ({type(error).__name__})") from error
    if unseen:
        raise InputError(f"{name} {unseen_folder(unseen[0])}")
    if import_error:
        raise InputError(f"{name} {cannot_import(import_error)}")
    if other := difference(code_version(), version):
        raise InputError(f"{name} {other_code(other)}")


def _node_check() -> Any:
    """Return the function that runs on a node.

    The function is defined here so that Ray sends its code, also to nodes that cannot import this module.
    """

    def check(marks: list[str]) -> tuple[list[str], str, Any]:
        import importlib
        import os

        unseen = [path for path in marks if not os.path.exists(path)]
        try:
            importlib.import_module("reproduce.execution.tasks")
            version = importlib.import_module("reproduce.execution.executor").code_version()
        except Exception as error:
            return unseen, f"{type(error).__name__}: {error}".splitlines()[0], None
        return unseen, "", version

    return check
