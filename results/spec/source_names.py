"""Names of classes and functions from a user's file or module: `my_losses.py:CosineSoftmax (sha256 0123456789abcdef)`.

Cards and experiment files name them without the hash. The hash of the source is added before anything is trained, so
that it is part of the fingerprints, and old results are never taken for results of a changed source.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from results.spec.training_spec import FoldSpec, MethodSpec, nested_components

_NAME = re.compile(r"(?P<source>.+):(?P<attribute>[^\W\d]\w*)(?: \(sha256 (?P<digest>[0-9a-f]{16})\))?")


@dataclass(frozen=True)
class SourceName:
    """The name of a class or function from a user's file or module.

    Attributes:
        source: Path of a `.py` file, or a module such as `my_package.module`.
        digest: First 16 digits of the SHA-256 of its source; None in cards and experiment files.
    """

    source: str
    attribute: str
    digest: str | None = None

    @classmethod
    def parse(cls, name: str) -> "SourceName | None":
        """Read a name; return None for a plain name, such as that of a class of pytorch-metric-learning."""
        match = _NAME.fullmatch(name)
        return cls(**match.groupdict()) if match else None

    def __str__(self) -> str:
        return f"{self.source}:{self.attribute}" + ("" if self.digest is None else f" (sha256 {self.digest})")

    @property
    def in_file(self) -> bool:
        """Whether the source is a file; a module otherwise."""
        return self.source.endswith(".py")


def relative_name(name: str, folder: Path) -> str:
    """Return a name with its path taken relative to a folder; plain names and modules stay as they are."""
    parsed = SourceName.parse(name)
    if parsed is None or not parsed.in_file:
        return name
    return str(replace(parsed, source=str(folder / Path(parsed.source).expanduser())))


def sources_of(method: MethodSpec) -> tuple[str, ...]:
    """Return the names of a method's classes that come from a user's file or module, with their hashes."""
    names = [
        name
        for component in (method.loss, method.miner, method.embedding_regularizer)
        if component is not None
        for name in (component.name, *(str(nested["name"]) for _, nested in nested_components(component.arguments)))
    ]
    return tuple(dict.fromkeys(name for name in names if SourceName.parse(name)))


def sources_of_training(spec: FoldSpec) -> tuple[str, ...]:
    """Return the names of a training's classes and trunk that come from a user's file or module, with their hashes."""
    trunk = SourceName.parse(spec.conditions.trunk.name)
    # Only names with a hash: those of libraries, such as `timm:resnet18`, have none.
    return (*sources_of(spec.method), *([spec.conditions.trunk.name] if trunk is not None and trunk.digest else []))
