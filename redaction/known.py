"""Values known to be secret: gathered from an environment and from files, and found in every form they are written
in."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import quote

from redaction.placeholders import looks_made
from redaction.views import LEVELS_MAX

LENGTH_MIN = 8
FILE_SIZE_MAX = 64 * 1024
# The part of a value that is the same however the value is written; known by it, a line is looked at closer.
STEADY = re.compile(r"[A-Za-z0-9_.~-]+")
# The same of a value that has no such part, in JSON of any depth.
UNESCAPED = re.compile(r"[ !#-\[\]-~]+")
STEADY_MIN = 4
UNESCAPED_MIN = 2  # costs speed, but such values are rare
WORD_ONLY = re.compile(r"[A-Za-z]+(?:[-_. ][A-Za-z]+)*")
COMMON = frozenset(
    {"password", "localhost", "production", "development", "undefined", "disabled", "anonymous", "x-access-token"}
)
BASE64_EDGE = re.compile(r"[A-Za-z0-9+/_-]{0,4}={0,2}")


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
                values.extend(line.strip() for line in path.read_text("utf-8", "surrogateescape").splitlines())
        except OSError:
            continue
    return [value for value in values if value]


def is_worth_knowing(value: str) -> bool:
    """Whether masking this value everywhere can do no harm: long enough, and no number, path, placeholder or common
    word."""
    if len(value) < LENGTH_MIN or len(set(value)) < 4 or value.lower() in COMMON or "\0" in value:
        return False
    if WORD_ONLY.fullmatch(value) and (value.islower() or value.istitle()) and len(value) < 2 * LENGTH_MIN:
        return False
    return not looks_made(value)


def _base64_cores(value: str) -> Iterator[str]:
    """What is always there when the value stands somewhere inside text that was base64 encoded."""
    data = value.encode("utf-8", "surrogateescape")
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        skipped = (shift * 8 + 5) // 6
        whole = (shift + len(data)) * 8 // 6
        core = encoded[skipped:whole]
        yield core
        yield core.replace("+", "-").replace("/", "_")


def _longest(pattern: re.Pattern[str], value: str, least: int) -> str:
    found = max(pattern.findall(value), key=len, default="")
    return found if len(found) >= least else ""


def _needles(value: str, written: Sequence[str]) -> Sequence[str]:
    """Strings of which one is in every raw line that holds the value in plain, JSON or address form."""
    if steady := _longest(STEADY, value, STEADY_MIN):
        return (steady,)
    if unescaped := _longest(UNESCAPED, value, UNESCAPED_MIN):
        return (unescaped, quote(value, safe=""), quote(value))
    levels = [value]
    for _ in range(LEVELS_MAX):
        levels.append(json.dumps(levels[-1])[1:-1])
    return (*written, *levels)


class KnownValues:
    """The values worth knowing, ready to be looked for."""

    __slots__ = ("_cores", "_forms", "_longest", "_spaced", "needles")

    def __init__(self, values: Iterable[bytes | str]) -> None:
        texts = {value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value for value in values}
        worthy = sorted(text for text in texts if is_worth_knowing(text))
        forms: dict[str, None] = {}
        cores: dict[str, None] = {}
        needles: dict[bytes, None] = {}
        for value in worthy:
            escaped = json.dumps(value)[1:-1]
            written = (value, escaped, json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe=""), quote(value))
            forms.update(dict.fromkeys(written))
            cores.update(dict.fromkeys(_base64_cores(value)))
            sought = _needles(value, written)
            needles.update(dict.fromkeys(form.encode("utf-8", "surrogateescape") for form in sought))
        needles.update(dict.fromkeys(core.encode() for core in cores))
        self._forms = tuple(forms)
        self._cores = tuple(cores)
        self._spaced = tuple(form for form in forms if any(character.isspace() for character in form))
        self._longest = max(map(len, self._spaced), default=0)
        self.needles = tuple(needles)

    def __bool__(self) -> bool:
        return bool(self.needles)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a known value stands in the text, in any of its forms."""
        for form in self._forms:
            start = text.find(form)
            while start >= 0:
                yield start, start + len(form)
                start = text.find(form, start + len(form))
        for core in self._cores:
            start = text.find(core)
            while start >= 0:
                edge = BASE64_EDGE.match(text, start + len(core))
                yield start, edge.end() if edge else start + len(core)
                start = text.find(core, start + len(core))

    def safe_length(self, text: str) -> int:
        """The length of the text without the beginning of a known value that it may end with."""
        for start in range(max(0, len(text) - self._longest), len(text)):
            if any(form.startswith(text[start:]) for form in self._spaced):
                return start
        return len(text)
