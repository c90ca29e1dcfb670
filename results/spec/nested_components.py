"""Components that are arguments of other components, such as a wrapper's base loss.

Such an argument is a dictionary with one key: `{"component": {"kind": ..., "name": ..., "arguments": ...}}`.
"""

from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

KINDS = ("loss", "miner", "regularizer", "distance", "reducer")
"""The kinds of components that a method can have."""


def nested_components(arguments: Mapping[str, JsonValue]) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    """Find the components among arguments, and those among their arguments.

    Each comes with the name of its argument. A component without a name, of an unknown kind or with an unknown key is a
    ValueError.
    """
    for key, value in arguments.items():
        if not isinstance(value, dict) or set(value) != {"component"}:
            continue
        nested = value["component"]
        if not isinstance(nested, dict) or not isinstance(nested.get("name"), str):
            raise ValueError(f"the component in argument {key!r} needs the name of a class, as in {{name: LpDistance}}")
        if unknown := sorted(nested.keys() - {"kind", "name", "arguments"}):
            raise ValueError(f"the component in argument {key!r} takes kind, name and arguments, not {unknown[0]!r}")
        if nested.get("kind", "loss") not in KINDS:
            raise ValueError(f"the component in argument {key!r} has kind {nested['kind']!r}; use {', '.join(KINDS)}")
        inner = nested.get("arguments", {})
        if not isinstance(inner, dict):
            raise ValueError(f"the arguments of the component in argument {key!r} must be keys and values")
        yield key, nested
        yield from nested_components(inner)


def renamed_components(arguments: Mapping[str, JsonValue], rename: Callable[[str], str]) -> dict[str, JsonValue]:
    """Return a copy of arguments in which all components have new names."""
    renamed = dict(arguments)
    for key, value in arguments.items():
        if isinstance(value, dict) and set(value) == {"component"} and isinstance(nested := value["component"], dict):
            inner = nested.get("arguments", {})
            assert isinstance(inner, dict)
            names = {**nested, "name": rename(str(nested["name"]))}
            renamed[key] = {"component": {**names, "arguments": renamed_components(inner, rename)} if inner else names}
    return renamed
