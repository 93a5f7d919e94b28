"""Session files with made-up secrets in their tool outputs, so many per megabyte; made once and kept with the others.

A secret is one row's example, a password, a key, a web token or a header, and stands as people's tools print it: alone
on its line, in a list, in JSON.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache

from redaction.rules.examples import expanded
from redaction.rules.formats import built_in_pack
from tests.bench import generate
from tests.bench.generate import EventStream, cache_directory

FORMAT = 1
"""Part of the cache key: raised whenever the bytes for the same parameters change."""

OTHERS = (
    "password=<base62:14>",
    'DB_PASSWORD: "<base62:9>!<base62:8>"',
    "postgres://made:<base62:14>@db.example.org:5432/made",
    "Authorization: Bearer <base64url:40>",
    "<jwt>",
    "-----BEGIN RSA PRIVATE KEY-----\n" + "<base64:64>\n" * 24 + "<base64:31>=\n-----END RSA PRIVATE KEY-----",
)
OTHERS_SHARE = 0.3
SMALL_EVENT_BYTES = range(280, 321)
_CONTENT = re.compile(rb'"type":"tool\.execution_complete".*?"content":"((?:[^"\\]|\\.)*+)"')
_LINE_END = re.compile(rb"(?:[^\\]|\\[^n])*+(\\n)")


@dataclass(frozen=True, slots=True)
class PlantedFile:
    """One file and how many secrets were put into it."""

    path: str
    size_bytes: int
    events: int
    secrets: int


@cache
def templates() -> tuple[str, ...]:
    """The examples of all rows of the tables."""
    return tuple(row.example for row, _ in built_in_pack().rows)


def cached(size_bytes: int, per_megabyte: float, seed: int = 1) -> PlantedFile:
    """The file for these parameters and today's tables, written on first use."""
    rows = hashlib.sha256(repr((templates(), OTHERS)).encode()).hexdigest()[:8]
    name = f"planted-{FORMAT}.{generate.FORMAT}-{size_bytes}-{per_megabyte:g}-{seed}"
    return _cached(name, rows, _planted(size_bytes, per_megabyte, seed))


def small(size_bytes: int) -> PlantedFile:
    """A file of streamed events of about 300 bytes each, without secrets."""
    return _cached(f"small-{FORMAT}.{generate.FORMAT}-{size_bytes}", "0", _small(size_bytes))


def _cached(name: str, version: str, lines: Iterator[tuple[bytes, int]]) -> PlantedFile:
    path = cache_directory() / f"{name}-{version}.jsonl"
    manifest = path.with_suffix(".json")
    if path.exists() and manifest.exists():
        return PlantedFile(**json.loads(manifest.read_text()))
    for old in path.parent.glob(f"{name}-*"):
        old.unlink()  # of other tables
    size = events = secrets = 0
    with path.open("wb") as file:
        for line, planted in lines:
            size += file.write(line)
            events += 1
            secrets += planted
    made = PlantedFile(str(path), size, events, secrets)
    manifest.write_text(json.dumps(asdict(made)))
    return made


def _planted(size_bytes: int, per_megabyte: float, seed: int) -> Iterator[tuple[bytes, int]]:
    stream, source = EventStream(seed), random.Random(f"planted {seed}")
    size = planted = 0
    while size < size_bytes:
        line = stream.next_line()
        due = int(size * per_megabyte / 1e6) - planted if per_megabyte else 0
        content = _CONTENT.search(line) if due else None
        if content is not None:
            for _ in range(due):
                line = _with_secret(line, content.span(1), _secret(source), source)
            planted += due
        size += len(line)
        yield line, due if content is not None else 0


def _small(size_bytes: int) -> Iterator[tuple[bytes, int]]:
    stream = EventStream(5, ephemeral_share=1.0)
    size = 0
    while size < size_bytes:
        line = stream.next_line()
        if len(line) in SMALL_EVENT_BYTES:
            size += len(line)
            yield line, 0


def _secret(source: random.Random) -> str:
    rows = templates()
    template = source.choice(rows if rows and source.random() > OTHERS_SHARE else OTHERS)
    secret = expanded(template, str(source.getrandbits(64)))
    choice = source.random()
    if choice < 0.2:
        return json.dumps({"value": secret})
    return f"  - {secret}" if choice < 0.4 else secret


def _with_secret(line: bytes, content: tuple[int, int], secret: str, source: random.Random) -> bytes:
    """The line with one more line in its output, at a line's end near a random place."""
    start, end = content
    ends = [found.end() for found in _LINE_END.finditer(line, start, end)]
    at = source.choice([start, *ends])
    return line[:at] + json.dumps(secret).encode()[1:-1] + b"\\n" + line[at:]
