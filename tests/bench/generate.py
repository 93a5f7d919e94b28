"""Writes session files of any size, the same bytes for the same parameters, so that two runs measure the same work.

Envelopes are those of the real CLI (`type data id timestamp parentId`, and `ephemeral` last on the live ones). Sizes
follow a log-normal law: most events are near 1 KB, one in a hundred is above 15 KB, and the streamed (ephemeral) ones
are small. The contents are made up here: prose, code, tool output and JSON inside strings, with the words a redactor
has to look twice at.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

FORMAT = 5
"""Part of the cache key: raised whenever the bytes for the same parameters change."""

EPHEMERAL_SHARE = 0.2
SIZE_MEDIAN_BYTES = 1080
SIZE_SIGMA = 1.2
SIZE_MAX_BYTES = 1_000_000
ENVELOPE_BYTES = 330
CALLS_MAX = 8
"""So many calls run at a time at most. Twice as many calls end as start: of half of the ends no call is known."""
SECRET_LIKE_EVERY = 600
"""One line in so many looks like a secret at first sight; the real sessions at hand have about as many."""
FIRST_TIMESTAMP = datetime(2026, 11, 18, 8, 0, tzinfo=UTC)

_WORDS_TEXT = (
    "the session was resumed after a short pause and every remaining check passed so we can merge this change now "
    "first read configuration then build index before writing tests because parser depends on token order please "
    "password rotation is documented in the handbook while secret names stay out of logs key points follow below "
    "function returns early when input is empty otherwise it walks directory tree and collects matching files naïve "
    "naming → arrows über café 日本語 numbers like 42 or 1024 appear too error message explains what to do next"
)
_NAMES_TEXT = (
    "reader buffer offset session event parser total counter client batch retry deadline path index "
    "value result config owner state cursor line_number handler queue worker header payload"
)
_WORDS = tuple(_WORDS_TEXT.split())
_NAMES = tuple(_NAMES_TEXT.split())


@dataclass(frozen=True, slots=True)
class SessionFile:
    """One generated file and what a receiver must end with after it was delivered."""

    path: str
    session_id: str
    size_bytes: int
    events: int
    durable: int
    durable_bytes: int
    ids_digest: str
    """`digest_of_ids` over the durable events."""


def digest_of_ids(ids: set[str]) -> str:
    """The same value for the same set of ids, whatever order they came in."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


def cache_directory() -> Path:
    """Where generated files and unpacked packages are kept between runs; never inside the repository."""
    directory = Path(tempfile.gettempdir()) / f"session-exporter-bench-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def cached(size_bytes: int, seed: int = 1) -> SessionFile:
    """The file for these parameters, written on first use and reused by later runs."""
    path = cache_directory() / f"session-{FORMAT}-{size_bytes}-{seed}.jsonl"
    manifest = path.with_suffix(".json")
    if path.exists() and manifest.exists():
        return SessionFile(**json.loads(manifest.read_text()))
    written = write(path, size_bytes, seed)
    manifest.write_text(json.dumps(asdict(written)))
    return written


def write(path: Path, size_bytes: int, seed: int) -> SessionFile:
    """Writes one session of about `size_bytes` (it ends with the first event that reaches it)."""
    stream = EventStream(seed)
    pending: list[bytes] = []
    size = events = pending_bytes = 0
    with path.open("wb") as file:
        while size < size_bytes:
            line = stream.next_line()
            events += 1
            size += len(line)
            pending.append(line)
            pending_bytes += len(line)
            if pending_bytes > 4_000_000:
                file.write(b"".join(pending))
                pending, pending_bytes = [], 0
        file.write(b"".join(pending))
    ids = stream.durable_ids
    return SessionFile(
        str(path), stream.session_id, size, events, len(ids), stream.durable_bytes, digest_of_ids(set(ids))
    )


class EventStream:
    """An endless session; `durable_ids` are those of the durable lines handed out so far, in order."""

    def __init__(self, seed: int, *, ephemeral_share: float = EPHEMERAL_SHARE) -> None:
        self._random = random.Random(seed)
        self._share = ephemeral_share
        self._prose, self._code, self._output, self._nested = corpora()
        self._parent: str | None = None
        self._milliseconds = 0
        self._calls: deque[str] = deque(maxlen=CALLS_MAX)
        self.session_id = self._uuid()
        self.durable_ids: list[str] = []
        self.durable_bytes = 0

    def next_line(self) -> bytes:
        """The next event as one line with its newline."""
        if self._parent is None:
            return self._durable("session.start", self._start())
        if self._random.random() < self._share:
            return self._ephemeral()
        size = int(self._random.lognormvariate(0, SIZE_SIGMA) * SIZE_MEDIAN_BYTES)
        return self._durable(*self._content(min(size, SIZE_MAX_BYTES) - ENVELOPE_BYTES))

    def _start(self) -> str:
        return (
            f'{{"sessionId":"{self.session_id}","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102",'
            f'"startTime":"{self._timestamp()}","selectedModel":"bench-model","contextTier":null,'
            '"context":{"cwd":"/home/dev/work"},"alreadyInUse":false,"remoteSteerable":false}'
        )

    def _content(self, length: int) -> tuple[str, str]:
        if length < 40:
            kind = "assistant.turn_start" if self._random.random() < 0.5 else "assistant.turn_end"
            return kind, f'{{"turnId":"{len(self.durable_ids) % 97}","interactionId":"{self._uuid()}"}}'
        choice = self._random.random()
        if choice < 0.4:
            corpus, success = (self._output, "true") if choice < 0.3 else (self._nested, "false")
            text = corpus.text(self._random, length)
            return "tool.execution_complete", (
                f'{{"toolCallId":"{self._calls.popleft() if self._calls else self._call()}","model":"bench-model",'
                f'"success":{success},'
                f'"result":{{"content":"{text}"}},"toolTelemetry":{{"properties":{{"command":"view"}},"metrics":{{}}}}}}'
            )
        if choice < 0.6:
            text = self._code.text(self._random, length)
            self._calls.append(self._call())
            return "tool.execution_start", (
                f'{{"toolCallId":"{self._calls[-1]}","toolName":"edit",'
                f'"arguments":{{"path":"/home/dev/work/src/{self._random.choice(_NAMES)}.py","new_str":"{text}"}}}}'
            )
        text = (self._prose if choice < 0.85 else self._code).text(self._random, length)
        return "assistant.message", (
            f'{{"messageId":"{self._uuid()}","model":"bench-model","content":"{text}","toolRequests":[],'
            f'"outputTokens":{length // 4}}}'
        )

    def _durable(self, kind: str, data: str) -> bytes:
        parent = "null" if self._parent is None else f'"{self._parent}"'
        identifier = self._uuid()
        line = (
            f'{{"type":"{kind}","data":{data},"id":"{identifier}","timestamp":"{self._timestamp()}",'
            f'"parentId":{parent}}}\n'
        ).encode()
        self._parent = identifier
        self.durable_ids.append(identifier)
        self.durable_bytes += len(line)
        return line

    def _ephemeral(self) -> bytes:
        text = self._prose.text(self._random, 20 + int(self._random.expovariate(1 / 200)))
        return (
            f'{{"type":"assistant.message_delta","data":{{"messageId":"{self._uuid()}","deltaContent":"{text}"}},'
            f'"id":"{self._uuid()}","timestamp":"{self._timestamp()}","parentId":"{self._parent}","ephemeral":true}}\n'
        ).encode()

    def _timestamp(self) -> str:
        self._milliseconds += 7
        moment = FIRST_TIMESTAMP + timedelta(milliseconds=self._milliseconds)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self._milliseconds % 1000:03d}Z"

    def _call(self) -> str:
        return f"call_{self._random.getrandbits(48):012x}"

    def _uuid(self) -> str:
        digits = f"{self._random.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class Corpus:
    """Text to cut from, held as JSON-escaped lines so that a cut never falls inside an escape."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = [json.dumps(line, ensure_ascii=False)[1:-1] for line in lines]
        self._mean = sum(map(len, self._lines)) / len(self._lines) + 2

    def text(self, source: random.Random, length: int) -> str:
        """About `length` characters from a random place, cut at a line end where there is one."""
        wanted = max(1, round(length / self._mean))
        at = source.randrange(len(self._lines))
        lines = self._lines[at : at + wanted]
        while len(lines) < wanted:
            lines += self._lines[: wanted - len(lines)]
        return "\\n".join(lines)


@cache
def corpora() -> tuple[Corpus, Corpus, Corpus, Corpus]:
    """The texts that all streams of this process cut from: prose, code, tool output, JSON."""
    makers = (_prose_lines, _code_lines, _output_lines, _nested_lines)
    prose, code, output, nested = (Corpus(make(random.Random(seed))) for seed, make in enumerate(makers, start=101))
    return prose, code, output, nested


def _prose_lines(source: random.Random) -> Iterator[str]:
    for _ in range(20_000):
        yield " ".join(source.choices(_WORDS, k=source.randint(6, 18))).capitalize() + "."


def _code_lines(source: random.Random) -> Iterator[str]:
    shapes = (
        "    def {a}_{b}(self, {c}: dict[str, int]) -> list[str]:",
        "        if self._{a}.{b}({c}) is None and {n} < len({a}):",
        '        {a} = {b}[{n}:{m}] + "{c}={n}\\n"  # {a} before {b}',
        '        raise ValueError(f"{a} {{{b}}} is not a {c}")',
        "const {a} = await {b}.fetch(`https://example.org/{c}/${{{a}}}?page={n}`);",
        "",
    )
    return _filled(source, shapes, 20_000)


def _output_lines(source: random.Random) -> Iterator[str]:
    shapes = (
        "-rw-r--r-- 1 dev dev {n} Nov 18 08:{n} src/{a}/{b}_{c}.py",
        "src/{a}/{b}.py:{n}:{m}: warning: unused {c} in {a}",
        "\t{h} {a}: make {b} faster ({c} #{n})",
        "tests/{a}/test_{b}.py::test_{c} PASSED  [{n}%]",
        "2026-11-18T08:00:{n}Z INFO {a}.{b} finished in {m} ms id={h}",
    )
    return _filled(source, shapes, 20_000)


def _nested_lines(source: random.Random) -> Iterator[str]:
    shapes = (
        '{{"name": "{a}", "version": "{n}.{m}.0", "integrity": "sha512-{h}", "dev": true}},',
        '  "{a}": {{"{b}": [{n}, {m}, null], "{c}": "<{a}>"}},',
        '  "url": "https://registry.example.org/{a}/-/{b}-{n}.tgz",',
    )
    return _filled(source, shapes, 10_000)


def _filled(source: random.Random, shapes: tuple[str, ...], count: int) -> Iterator[str]:
    for number in range(count):
        if number % SECRET_LIKE_EVERY == 0:
            yield 'api_key = os.environ["EXAMPLE_KEY"]; password = getpass("Password: ")'
        a, b, c = source.choices(_NAMES, k=3)
        two_digits, other = source.randint(10, 99), source.randint(100, 9999)
        yield source.choice(shapes).format(a=a, b=b, c=c, n=two_digits, m=other, h=f"{source.getrandbits(160):040x}")
