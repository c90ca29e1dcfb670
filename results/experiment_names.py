"""Experiments and published tables that were renamed, so that old names still work.

A store keeps an experiment under the name that it had when it was run. `Store` translates old names to current names.
Experiment files and tables are found by both names. The fingerprint of an experiment is still made of its first name.
"""

RENAMED = {"proxygml_table1": "proxy_gml_table1", "proxygml_table2": "proxy_gml_table2"}
"""Current names by old names."""

_FIRST_NAMES = {new: old for old, new in RENAMED.items()}


def current_name(name: str) -> str:
    """Return the current name of an experiment or a table.

    Args:
        name: NAME or NAME/PANEL, old or current.

    Returns:
        The name with the current NAME. A name that never changed is returned as it is.
    """
    return _replaced(name, RENAMED)


def first_name(name: str) -> str:
    """Return the first name of an experiment; its fingerprint is made of this name.

    Args:
        name: NAME or NAME/PANEL, old or current.

    Returns:
        The name with the first NAME. A name that never changed is returned as it is.
    """
    return _replaced(name, _FIRST_NAMES)


def _replaced(name: str, new_names: dict[str, str]) -> str:
    file, slash, panel = name.partition("/")
    return f"{new_names.get(file, file)}{slash}{panel}"
