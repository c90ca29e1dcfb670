"""Names of experiments and published tables that changed, so that old names are still understood.

Stores keep an experiment under the name that it was run by. `Store` reads old names as today's names, the experiment
files and tables are found by both, and the fingerprint of an experiment is still made of its first name.
"""

RENAMED = {"proxygml_table1": "proxy_gml_table1", "proxygml_table2": "proxy_gml_table2"}
"""Today's name by the old one."""

_FIRST_NAMES = {new: old for old, new in RENAMED.items()}


def current_name(name: str) -> str:
    """Today's name of an experiment or a table.

    Args:
        name: NAME or NAME/PANEL, old or new.

    Returns:
        The same with today's NAME; names that never changed are returned as they are.
    """
    return _replaced(name, RENAMED)


def first_name(name: str) -> str:
    """The first name that an experiment had, which its fingerprint is made of.

    Args:
        name: NAME or NAME/PANEL, old or new.

    Returns:
        The same with the first NAME; names that never changed are returned as they are.
    """
    return _replaced(name, _FIRST_NAMES)


def _replaced(name: str, by: dict[str, str]) -> str:
    file, slash, panel = name.partition("/")
    return f"{by.get(file, file)}{slash}{panel}"
