"""Session files around text that nobody wrote for this project, and around made-up text full of trigger words.

Real text is what is installed on the machine: source, documentation, npm packages and logs, chosen by their sorted
paths, so that the bytes stay the same until something is installed. Each event holds a piece of one file as the output
of a tool. The other text is lines of words and code in which names and products stand that our rules look at twice.
"""

from __future__ import annotations

import functools
import json
import random
import re
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from redaction.rules.formats import built_in_pack
from tests.bench.generate import cache_directory
from tests.bench.planted import PlantedFile

MEGABYTE = 1_000_000
PIECES_CHARS = (700, 1_500, 3_000, 1_000, 6_000, 2_000, 12_000, 1_200, 30_000)
FILE_BYTES = range(200, 1_500_000)
# A file of a scanner holds samples of every secret.
LEFT_OUT = ("detect_secrets", "kingfisher", "/redaction/", "__pycache__")
HOME = Path.home()
MADE_NAMES = ("password", "secret", "token", "api_key", "session", "private key", "credentials", "authorization")


@dataclass(frozen=True, slots=True)
class Shelf:
    """Files of one kind: below these roots, with these ends of names."""

    name: str
    roots: tuple[Path, ...]
    suffixes: tuple[str, ...]


SHELVES = (
    Shelf(
        "source",
        (Path(sysconfig.get_path("purelib")), Path(functools.__file__).parent),
        (".py", ".pyi", ".c", ".h", ".toml", ".json"),
    ),
    Shelf("documentation", (Path("/usr/share/doc"),), (".txt", ".md", ".rst", ".html", "README", "copyright", ".TODO")),
    Shelf(
        "npm",
        (HOME / ".cache/exporter-real/node-24", Path("/usr/lib/node_modules"), HOME / ".npm/_cacache"),
        (".js", ".mjs", ".cjs", ".ts", ".json", ".md", ".map"),
    ),
    Shelf("logs", (Path("/var/log"), HOME / ".npm/_logs"), (".log", ".1", "history", "messages", "syslog")),
)


def texts(shelf: Shelf, size_chars: int) -> Iterator[str]:
    """The text files of a shelf up to this size together, spread over all that are there."""
    paths = [path for root in shelf.roots for path in files(root, shelf.suffixes)]
    total = sum(path.stat().st_size for path in paths)
    every = max(1, total // (size_chars + 1))
    left = size_chars
    for path in paths[::every]:
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError):
            continue
        yield text[:left]
        left -= len(text)
        if left <= 0:
            return


def files(root: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """The files below the root in the order of their paths, without those of scanners."""
    for path in sorted(root.rglob("*")):
        if not path.name.endswith(suffixes) or any(word in str(path) for word in LEFT_OUT):
            continue
        if path.is_file() and not path.is_symlink() and path.stat().st_size in FILE_BYTES:
            yield path


def pieces(text: str, sizes: Iterator[int]) -> Iterator[str]:
    """The text cut at ends of lines into pieces of about these sizes."""
    start = 0
    while start < len(text):
        end = start + next(sizes)
        end = text.find("\n", end) + 1 or len(text)
        yield text[start : min(end, start + 60_000)]
        start = min(end, start + 60_000)


def events(contents: Iterable[str]) -> Iterator[bytes]:
    """One event of a tool's output for each content."""
    for number, content in enumerate(contents):
        data = {
            "toolCallId": f"call_{number:024d}",
            "success": True,
            "result": {"content": content, "detailedContent": content[:200]},
        }
        event = {
            "type": "tool.execution_complete",
            "data": data,
            "id": f"00000000-0000-4000-8000-{number:012d}",
            "timestamp": "2026-11-19T08:00:00.000Z",
            "parentId": None,
        }
        yield json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def real(megabytes: int) -> list[PlantedFile]:
    """Files of a megabyte each: half of it source, a quarter documentation, the rest packages and logs."""
    shares = {"source": 0.5, "documentation": 0.25, "npm": 0.24, "logs": 0.01}
    sizes = cycle(PIECES_CHARS)
    contents = (
        piece
        for shelf in SHELVES
        for text in texts(shelf, int(megabytes * MEGABYTE * shares[shelf.name]))
        for piece in pieces(text, sizes)
    )
    return _written("real", events(contents))


def with_triggers(megabytes: int, seed: int = 1) -> list[PlantedFile]:
    """Files of a megabyte each of made-up text, in which about every eighth line has the name of some secret."""
    sizes = cycle(PIECES_CHARS)
    text = "\n".join(trigger_lines(random.Random(f"triggers {seed}"), megabytes * MEGABYTE))
    return _written("triggers", events(pieces(text, sizes)))


def trigger_names() -> list[str]:
    """The words of the names in our tables, and the names of secrets anywhere."""
    names = {name for row, _ in built_in_pack().rows for name in row.near}
    words = {word for name in names for word in re.findall(r"[a-z]{4,}", name)}
    return sorted(words) + [*MADE_NAMES] * 8


def trigger_lines(source: random.Random, size_chars: int) -> Iterator[str]:
    """Lines of ordinary text and code."""
    names = trigger_names()
    words = WORDS.split()
    size = 0
    while size < size_chars:
        prose = " ".join(source.choices(words, k=source.randint(6, 16)))
        if source.random() < 0.125:
            line = source.choice(FORMS).format(name=source.choice(names), prose=prose)
        else:
            line = source.choice(PLAIN).format(prose=prose, one=source.choice(words), two=source.choice(words))
        yield line
        size += len(line) + 1


WORDS = (
    "the of a to when it is returned from cache before each request and then written again for all clients so "
    "that no part of an older entry leaves this table while the next sheet is open on the desk beside it"
)
FORMS = (
    "# {name}: {prose}",
    "{prose} {name} {prose}",
    "    self.{name} = {name}",
    "    if {name} is None: return {name}_of(request.{name})",
    "def {name}_from(value: str, {name}: str = '') -> None:",
    '    "{name}": "{name}",',
    "The {name} is {prose}.",
    "import {name}",
    "  {name}: string  # {prose}",
    '    log.info("{name} of %s", client.{name})',
    "- `{name}` {prose}",
)
PLAIN = (
    "{prose}.",
    "    {one}_{two} = {two}.{one}({one}, {two})",
    "    for {one} in {two}: yield {one}[{two}]",
    "    # {prose}",
    '    return "{prose}"',
    "",
)


def _written(name: str, lines: Iterable[bytes]) -> list[PlantedFile]:
    """The lines in files of a megabyte, made anew: what is installed may have changed."""
    directory = cache_directory()
    for old in directory.glob(f"{name}-text-*.jsonl"):
        old.unlink()
    written: list[PlantedFile] = []
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= MEGABYTE:
            written.append(_file(directory / f"{name}-text-{len(written):03d}.jsonl", batch))
            batch, size = [], 0
    if size > MEGABYTE // 4:
        written.append(_file(directory / f"{name}-text-{len(written):03d}.jsonl", batch))
    return written


def _file(path: Path, lines: Sequence[bytes]) -> PlantedFile:
    return PlantedFile(str(path), path.write_bytes(b"".join(lines)), len(lines), 0)
