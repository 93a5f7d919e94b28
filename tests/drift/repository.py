"""The repository as the drift tests read it."""

import ast
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("exporter", "redaction", "otel", "config")


@cache
def pyproject() -> dict[str, Any]:
    """Returns the build settings."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def text(name: str) -> str:
    """Returns the content of a text file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def files() -> tuple[Path, ...]:
    """Returns every file that is in the repository or would be with the next commit."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return tuple(path for path in (ROOT / name for name in names) if path.is_file())


@cache
def modules() -> tuple[tuple[Path, ast.Module], ...]:
    """Returns every module of the shipped packages with its syntax tree."""
    shipped = (path for path in files() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in PACKAGES)
    return tuple((path, ast.parse(path.read_bytes())) for path in shipped)
