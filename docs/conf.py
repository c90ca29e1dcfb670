"""How Sphinx builds these pages; `make docs` calls it. Nothing is read from the network."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = PROJECT["name"]
author = "the authors of metric-learning-reproductions"
project_copyright = f"2026, {author}"
version = release = PROJECT["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Metric-learning reproductions"
html_show_sourcelink = False
html_copy_source = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# Single backticks in docstrings mark code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_inherit_docstrings = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False

# A public type of this suite in a signature must have an entry here; others have none.
nitpick_ignore_regex = [("py:.*", r"(?!(losses|results|protocols|reports|reproduce)\.).*"), ("py:.*", r".*\._\w+")]

# A type variable has no entry, nor has an alias of a type with constraints; Sphinx cannot write numpy's text type.
nitpick_ignore = [
    ("py:class", "results.store.database.AnyRecord"),
    ("py:class", "results.spec.search_settings.Annotated"),
    ("py:class", "results.records.artifacts.Contents"),
]
