"""What the README and the pages in docs/ say: their code blocks, commands, files to save, links and paths."""

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(r"^(?:<!-- needs: (\S+) -->\n)?```(\S+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_SAVED_BLOCK = re.compile(r"^<!-- file: (\S+) -->\n```(?:yaml|python)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
_REPOSITORY_PATH = re.compile(r"`((?:losses|results|protocols|reports|reproduce|tests|docs)/[\w./*-]*)`")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def languages(page: Path) -> set[str]:
    """Languages of all code blocks, directives of MyST included."""
    return {language for _, language, _ in _BLOCK.findall(text_of(page))}


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of a language, without those that need a package that is not installed."""
    found = _BLOCK.findall(text_of(page))
    return [block for package, name, block in found if name == language and (not package or find_spec(package))]


def commands(page: Path) -> list[str]:
    """Every command in one line, also one that a backslash continues."""
    joined = [re.sub(r" \\\n +", " ", block) for block in blocks(page, "bash")]
    return [line for block in joined for line in block.splitlines() if line.strip()]


def all_commands() -> list[str]:
    """Every command once, in the order in which a reader meets it."""
    return list(dict.fromkeys(command for page in PAGES for command in commands(page)))


def files_to_save(page: Path) -> dict[str, str]:
    """YAML and Python blocks by the file name that the comment above them gives."""
    return dict(_SAVED_BLOCK.findall(text_of(page)))


def local_links(page: Path) -> list[Path]:
    """Files of this repository that the page links to or shows as pictures."""
    targets = _LINK.findall(text_of(page))
    return [page.parent / target for target in targets if "://" not in target]


def repository_paths(page: Path) -> list[str]:
    """Paths of this repository that the page names as code; they may hold wildcards."""
    return _REPOSITORY_PATH.findall(text_of(page))


def between(page: Path, begin: str, end: str) -> str:
    """What stands between two comments."""
    return text_of(page).split(f"<!-- {begin} -->")[1].split(f"<!-- {end} -->")[0].strip()
