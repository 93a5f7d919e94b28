"""The input: every recorded session of the repository and of directories that are named, each with bytes of its own."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import NAMESPACE_URL, uuid5

TREE: Final = Path(__file__).resolve().parents[2]
"""The tree that this package is in, which holds the captures of the repository."""
_FIXTURES: Final = ("sessions", "parity")
_NAMES: Final = ("events*.jsonl", "before.jsonl", "after.jsonl")


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
    """Return every capture, in a fixed order; of those with the same bytes only the first. Made-up ones come last."""
    found: dict[str, Capture] = {}
    for name, path in [*_own(), *_of(others)]:
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if content.strip() and digest not in found:
            beside = [one for one in (path.with_name(f"workspace{path.stem.removeprefix('events')}.yaml"),
                                      path.with_name("workspace.yaml")) if one.is_file()]  # fmt: skip
            workspace = beside[0].read_bytes() if beside else None
            found[digest] = Capture(name, str(uuid5(NAMESPACE_URL, f"golden:{name}")), content, workspace)
    return [*found.values(), *_made()]


def _made() -> Iterator[Capture]:
    """Sessions with what no capture has: more events than a page shows, markup, large and odd texts, secrets."""
    demo = [json.loads(line) for line in _demo().read_bytes().splitlines()]
    lines, before = [], None
    for turn in range(1000 // len(demo) + 1):
        for event in demo:
            parent = before if event["parentId"] is None else f"{event['parentId']}-{turn}"
            lines.append({**event, "id": f"{event['id']}-{turn}", "parentId": parent})
            before = f"{event['id']}-{turn}"
    yield _capture("made/long", lines)
    yield _capture("made/odd", [_message(number, text) for number, text in enumerate(_ODD)])


_SECRET: Final = "ghp_" + "".join(chr(97 + (7 * number) % 26) for number in range(36))
_ODD: Final = (
    "<script>alert(1)</script> & <b>bold</b> \"quoted\" 'single'",
    "# Head\n\n* one\n* two\n\n```python\nprint('<x>')\n```\n\n[link](javascript:alert(1)) ![](http://x.test/y.png)",
    f"the token is {_SECRET} and password=Tr0ub4dor&3-{_SECRET[:9]}",
    "\u202eright to left\u202c, \x07 bell, \u0000 zero, \U0001f600 smile, \u00e9t\u00e9",
    "large " * 20_000,
    "",
    "line\nline\r\nline\ttab  two blanks",
)


def _message(number: int, text: str) -> dict[str, object]:
    kind = "user.message" if number % 2 == 0 else "assistant.message"
    return {
        "type": kind,
        "data": {"content": text},
        "id": f"odd-{number}",
        "timestamp": f"2026-11-18T10:00:{number:02}.000Z",
        "parentId": f"odd-{number - 1}" if number else None,
    }


def _capture(name: str, events: Iterable[object]) -> Capture:
    content = b"".join(
        json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for event in events
    )
    return Capture(name, str(uuid5(NAMESPACE_URL, f"golden:{name}")), content, None)


def _own() -> Iterator[tuple[str, Path]]:
    for place in _FIXTURES:
        yield from _below(TREE / "tests/fixtures" / place, place)
    yield "demo", _demo()


def _demo() -> Path:
    """The session of `up --demo`, wherever the program keeps it."""
    [path] = (TREE / "exporter").rglob("session.jsonl")
    return path


def _of(others: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    for number, other in enumerate(others, 1):
        yield from _below(other, f"given{number}")


def _below(root: Path, label: str) -> Iterator[tuple[str, Path]]:
    paths = {path for name in _NAMES for path in root.rglob(name)}
    for path in sorted(paths):
        if not (path.name.startswith("events") and path.parent.name == "tolerance"):
            yield f"{label}/{path.relative_to(root).as_posix()}", path
