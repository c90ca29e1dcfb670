"""`python -m tests.house`: the size of the house, room by room. It decides nothing.

A line of code is a line with a token that is neither a comment nor a part of a docstring.
"""

import ast
import io
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("losses", "protocols", "results", "reports", "reproduce")

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def lines_of_code(text: str) -> int:
    """Count the lines of a module that hold code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                assert first.end_lineno is not None
                lines.difference_update(range(first.lineno, first.end_lineno + 1))
    return len(lines)


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of all modules that are imported anywhere in a file, inside functions too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                found.add(node.module.split(".")[0])
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name | ast.Attribute)
            and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) in ("import_module", "__import__")
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found.add(str(node.args[0].value).split(".")[0])
    return found


def sizes() -> dict[str, dict[str, int]]:
    """Files, lines and lines of code of each room, of the product and of the tests."""
    found = {room: _size(ROOT / room) for room in ROOMS}
    product = {key: sum(size[key] for size in found.values()) for key in ("files", "lines", "code")}
    return {**found, "product": product, "tests": _size(ROOT / "tests")}


def _size(folder: Path) -> dict[str, int]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]
    return {
        "files": len(texts),
        "lines": sum(len(text.splitlines()) for text in texts),
        "code": sum(map(lines_of_code, texts)),
    }


def main() -> None:
    print(f"{'':10}{'files':>8}{'lines':>9}{'code':>9}")
    for room, size in sizes().items():
        print(f"{room:10}{size['files']:>8,}{size['lines']:>9,}{size['code']:>9,}")


if __name__ == "__main__":
    main()
