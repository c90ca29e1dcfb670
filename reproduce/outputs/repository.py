"""The address of the suite's public repository, for permanent links to its code."""

import re
import subprocess
from pathlib import Path

import yaml

_ROOT = Path(__file__).resolve().parents[2]
_PUBLIC = re.compile(r"https://(?:www\.)?(?:github\.com|gitlab\.com|codeberg\.org)/[\w./-]+")
"""Addresses whose commits have pages at ADDRESS/commit/COMMIT. None of them has a name or a password in it."""


def repository_address(checkout: Path = _ROOT) -> str:
    """Return the address of the repository.

    Args:
        checkout: The folder with `CITATION.cff`.

    Returns:
        `repository-code` of `CITATION.cff`; if it is not set, the address from which the checkout was cloned. Empty if
        neither is a public address on GitHub, GitLab or Codeberg.
    """
    address = _cited(checkout) or _cloned_from(checkout)
    address = address.strip().removesuffix("/").removesuffix(".git")
    return address if _PUBLIC.fullmatch(address) else ""


def _cited(checkout: Path) -> str:
    file = checkout / "CITATION.cff"
    content = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return str(content.get("repository-code", ""))


def _cloned_from(checkout: Path) -> str:
    if not (checkout / ".git").exists():
        return ""
    command = ["git", "-C", str(checkout), "config", "--get", "remote.origin.url"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
