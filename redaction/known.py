"""Values known to be secret, from the environment and from files, found in every form in which they are written."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import quote

from redaction.given import read_given
from redaction.prefilter.gate import EngineName, Hit, PatternGate, make_gate
from redaction.rules.rule import Rule

LENGTH_MIN: Final = 8
FILE_SIZE_MAX: Final = 64 * 1024
DEPTH_MAX: Final = 4
_WORD_ONLY: Final = re.compile(r"[A-Za-z]+(?:[-_. ][A-Za-z]+)*")
_HARMLESS: Final = re.compile(
    r"""(?ix)
      [$%<{(\[].*                                # a variable, a template
    | .*(?:\$\{|\{\{|your|example|placeholder|changeme|redacted).*
    | [-+]?[\d.,:_/-]+[a-z%]{0,3}                # numbers, dates, versions, sizes
    | (?:~|\.{1,2})?/[\w./~:-]* | [a-z]:\\.*     # paths
    | [a-z][a-z0-9+.-]{1,15}://[^@]*             # addresses without a password
    """
)
_COMMON: Final = frozenset(
    {"password", "localhost", "production", "development", "undefined", "disabled", "anonymous", "x-access-token"}
)
_BASE64_EDGE: Final = re.compile(rb"[A-Za-z0-9+/_-]{0,4}={0,2}")
KNOWN_RULE: Final = Rule(
    "known-value", "known values", "a value of the environment or of a file", (), lambda _, to: ((), to)
)


def from_environ(environ: Mapping[str, str], globs: Iterable[str]) -> list[str]:
    """The values of the variables whose names match one of the globs, whatever their case."""
    patterns = [glob.upper() for glob in globs]
    return [value for name, value in environ.items() if any(fnmatchcase(name.upper(), pattern) for pattern in patterns)]


def from_files(paths: Iterable[Path]) -> list[str]:
    """The lines of the files that can be read; a missing, unreadable or large file gives nothing."""
    values: list[str] = []
    for path in paths:
        try:
            if path.stat().st_size <= FILE_SIZE_MAX:
                text = read_given(path, follow=True).decode("utf-8", "surrogateescape")
                values.extend(line.strip() for line in text.splitlines())
        except OSError:
            continue
    return [value for value in values if value]


def is_worth_masking(value: str) -> bool:
    """Whether the value can be masked everywhere without harm: it is long enough, and no number, path, placeholder or
    common word."""
    if len(value) < LENGTH_MIN or len(set(value)) < 4 or value.lower() in _COMMON or "\0" in value or "\n" in value:
        return False
    if _WORD_ONLY.fullmatch(value) and (value.islower() or value.istitle()) and len(value) < 2 * LENGTH_MIN:
        return False
    return _HARMLESS.fullmatch(value) is None


def _base64_cores(value: bytes) -> Iterator[bytes]:
    """The base64 that any text with this value in it has once it is encoded."""
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + value).rstrip(b"=")
        skipped = (shift * 8 + 5) // 6
        whole = (shift + len(value)) * 8 // 6
        core = encoded[skipped:whole]
        yield core
        yield core.replace(b"+", b"-").replace(b"/", b"_")


def _written(value: str) -> Iterator[str]:
    """The value as it is, and as JSON (at several depths), URLs and HTML write it."""
    for ensure_ascii in (False, True):
        form = value
        for _ in range(DEPTH_MAX):
            yield form
            form = json.dumps(form, ensure_ascii=ensure_ascii)[1:-1]
    for safe in ("", "/"):
        quoted = quote(value.encode("utf-8", "surrogateescape"), safe=safe)
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), quoted)
    yield html.escape(value)


def _forms(values: Iterable[str]) -> tuple[list[bytes], set[bytes]]:
    """All forms of the values, and those of them that are base64."""
    forms: dict[bytes, None] = {}
    cores: dict[bytes, None] = {}
    for value in values:
        forms.update((form.encode("utf-8", "surrogateescape"), None) for form in _written(value))
        cores.update((core, None) for core in _base64_cores(value.encode("utf-8", "surrogateescape")))
    return [*forms, *(core for core in cores if core not in forms)], set(cores) - set(forms)


class KnownValues:
    """The known values that are worth masking, compiled."""

    __slots__ = ("_base64", "_forms", "_gate", "_spaced")

    def __init__(self, values: Iterable[bytes | str], engine: EngineName | None = None) -> None:
        texts = {value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value for value in values}
        self._forms, self._base64 = _forms(sorted(filter(is_worth_masking, texts)))
        self._spaced = [form for form in self._forms if any(byte in b" \t\r" for byte in form)]
        # In memory only, and never in the cache: the compiled form holds the values.
        self._gate: PatternGate | None = make_gate(self._forms, engine=engine, literal=True) if self._forms else None

    def __bool__(self) -> bool:
        return self._gate is not None

    def hits(self, data: bytes) -> Sequence[Hit]:
        """The ends of all known values in the data."""
        return self._gate.hits(data) if self._gate is not None else ()

    def find(self, data: bytes) -> Iterator[tuple[int, int]]:
        """The spans of known values in the data, in any of their forms."""
        for number, to in self.hits(data):
            form = self._forms[number]
            edge = _BASE64_EDGE.match(data, to) if form in self._base64 else None
            yield to - len(form), edge.end() if edge is not None else to

    def safe_length(self, data: bytes) -> int:
        """The length of the data without the beginning of a known value that the data may end with."""
        longest = max(map(len, self._spaced), default=0)
        for start in range(max(0, len(data) - longest), len(data)):
            if any(form.startswith(data[start:]) for form in self._spaced):
                return start
        return len(data)
