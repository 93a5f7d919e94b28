"""The input: every recorded session of the repository and of directories that are named, each with bytes of its own."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

TREE: Final = Path(__file__).resolve().parents[2]
"""The tree that this package is in, which holds the captures of the repository."""
_OWN: Final = ("tests/fixtures/sessions", "tests/fixtures/parity", "exporter/demo")
_NAMES: Final = ("events*.jsonl", "before.jsonl", "after.jsonl", "session.jsonl")


@dataclass(frozen=True, slots=True)
class Capture:
    """A session's log. `name` says where it is from, `id` is the session that it is shown to the program as."""

    name: str
    id: str
    content: bytes
    workspace: bytes | None

    def lines(self) -> list[bytes]:
        """The lines that hold something."""
        return [line for line in self.content.split(b"\n") if line.strip()]


def find_captures(others: Iterable[Path] = ()) -> list[Capture]:
    """Return every capture, in a fixed order; of those with the same bytes only the first."""
    found: dict[str, Capture] = {}
    for name, path in [*_own(), *_of(others)]:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if content.strip() and digest not in found:
            beside = [one for one in (path.with_name(f"workspace{path.stem.removeprefix('events')}.yaml"),
                                      path.with_name("workspace.yaml")) if one.is_file()]  # fmt: skip
            workspace = beside[0].read_bytes() if beside else None
            found[digest] = Capture(name, str(uuid5(NAMESPACE_URL, f"golden:{name}")), content, workspace)
    return list(found.values())


def _own() -> Iterator[tuple[str, Path]]:
    for place in _OWN:
        yield from _below(TREE / place, place.removeprefix("tests/fixtures/"))


def _of(others: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    for number, other in enumerate(others, 1):
        yield from _below(other, f"given{number}")


def _below(root: Path, label: str) -> Iterator[tuple[str, Path]]:
    paths = {path for name in _NAMES for path in root.rglob(name)}
    for path in sorted(paths):
        if not (path.name.startswith("events") and path.parent.name == "tolerance"):
            yield f"{label}/{path.relative_to(root).as_posix()}", path
