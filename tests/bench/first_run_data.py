"""The sessions that a first run finds: a thousand conversations of very different lengths, with secrets in them."""

from __future__ import annotations

import json
import os
import random
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from redaction.rules.examples import expanded
from tests.bench.conversations import Teller
from tests.bench.generate import FIRST_TIMESTAMP, cache_directory
from tests.bench.planted import templates

FORMAT = 1
"""Part of the cache key: raised whenever the bytes for the same parameters change."""

EVENTS_PER_SESSION = 440
OUTPUT_BYTES = 4_100
"""The mean of a tool's output, which brings an event to 1.1 KB."""
_OVERSHOOT = 16
"""By how many events a session is longer than asked, because its last interaction is whole."""
LENGTH_SIGMA = 0.9
"""Of the log-normal law of the sessions' lengths: one in a hundred is eight times as long as the median."""
SPREAD_DAYS = 5
_OUTPUT = b'"result":{"content":"'


@dataclass(frozen=True, slots=True)
class Sessions:
    """A directory of generated sessions, newest first, and what a program must hold when it has them all."""

    directory: str
    ids: list[str]
    events: int
    size_bytes: int
    secrets: list[str]
    """One of each tenth session, as it stands in the file."""
    last_words: list[str]
    """A word that only the last event of a session holds, in the order of `ids`."""


def cached(sessions: int) -> Sessions:
    """So many sessions, written on first use and reused by later runs."""
    directory = cache_directory() / f"first-run-{FORMAT}-{sessions}"
    manifest = directory / "manifest.json"
    if manifest.exists():
        return Sessions(**json.loads(manifest.read_text()))
    directory.mkdir(exist_ok=True)
    source = random.Random(sessions)
    lengths = [source.lognormvariate(0, LENGTH_SIGMA) for _ in range(sessions)]
    scale = sessions * EVENTS_PER_SESSION / sum(lengths)
    made = Sessions(str(directory), [], 0, 0, [], [])
    events = size = 0
    for number, length in enumerate(lengths):
        told = _tell(made, number, sessions, max(2, round(length * scale) - _OVERSHOOT))
        events += len(told)
        content = b"".join(told)
        size += len(content)
        (directory / f"{made.ids[-1]}.jsonl").write_bytes(content)
    made = Sessions(made.directory, made.ids, events, size, made.secrets, made.last_words)
    manifest.write_text(json.dumps(asdict(made)))
    return made


def place(made: Sessions, root: Path) -> None:
    """Put the sessions below a `session-state`, without copying them; the newest was written some minutes ago."""
    now = time.time()
    for number, session in enumerate(made.ids):
        source = Path(made.directory) / f"{session}.jsonl"
        written = now - 900 - number * SPREAD_DAYS * 86_400 / len(made.ids)
        os.utime(source, (written, written))
        target = root / session / "events.jsonl"
        target.parent.mkdir(parents=True)
        os.link(source, target)
        target.chmod(0o600)


def _tell(made: Sessions, number: int, sessions: int, events: int) -> list[bytes]:
    began = FIRST_TIMESTAMP - timedelta(days=SPREAD_DAYS * number / sessions)
    teller = Teller(number, began, output_bytes=OUTPUT_BYTES)
    told = [teller.start()]
    while len(told) < events:
        told.extend(teller.interaction())
    if number % 10 == 0:
        secret = expanded(templates()[number % len(templates())], str(number))
        for index, line in enumerate(told):
            if _OUTPUT in line:
                planted = _OUTPUT + json.dumps(f"  - {secret}\n").encode()[1:-1]
                told[index] = line.replace(_OUTPUT, planted, 1)
                made.secrets.append(secret)
                break
    word = f"lastword{number:04}of{random.Random(number).getrandbits(40):010x}"
    told[-2] = told[-2].replace(b'"content":"', b'"content":"' + word.encode() + b" ", 1)
    made.ids.append(teller.session_id)
    made.last_words.append(word)
    return told
