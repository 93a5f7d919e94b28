"""Counts the lines of code of the product: `python -m tests.drift.code_lines [DIRECTORY]`.

A line counts when a token of code stands on it: blank lines, comments and docstrings do not count, and neither do
templates, tables and styles, which are no Python.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

PACKAGES: Final = ("exporter", "redaction", "otel", "config")
_NO_CODE: Final = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """Return how many lines of a module hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def count(root: Path) -> Counter[str]:
    """Return the lines of code below `root`, by package."""
    lines: Counter[str] = Counter()
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            lines[str(path.parent.relative_to(root))] += code_lines(path.read_text(encoding="utf-8"))
    return lines


if __name__ == "__main__":
    counted = count(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    for name, number in sorted(counted.items()):
        print(f"{number:7,}  {name}")
    print(f"{counted.total():7,}  in all")
