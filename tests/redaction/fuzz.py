"""Random lines, texts and streams that are nearly right, and what must hold for all of them.

Choices come from anywhere: a seed (`test_fuzz.py`) or the bytes that a fuzzer makes (`fuzz_with_atheris.py`).
"""

import json
import random
import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Protocol

from redaction.engine import CLEAN, FAILED_TEXT, Engine, Masked, Refused
from redaction.protected import is_protected, type_of
from redaction.rules.examples import expanded
from redaction.rules.formats import built_in_pack
from tests.redaction.events import EVENT, SESSION
from tests.redaction.made_up import KINDS, make
from tests.shared import CACHE

BUDGET_MS = 60_000.0
PIECES_MAX = 10
TIME = "2026-11-18T09:58:19.660Z"
NAMES = (
    *("password", "passwd", "DB_PASSWORD", "api_key", "apiKey", "secret", "client_secret", "token", "access_token"),
    *("auth", "private_key", "aws_secret_access_key", "Authorization", "Cookie", "pwd", "x-api-key", "key", "id"),
)
JOINTS = ("=", ": ", ":", " = ", '": "', "': '", " => ", ":=", '="', "='", " ", "\n", " | ", "</", ">", ", ", "\\n")
BEGINNINGS = (
    *("Authorization: Bearer ", "Authorization: Basic ", "Cookie: session=", "curl -u admin:", "mysql -uroot -p"),
    *("sshpass -p ", "--password ", "https://user:", "postgres://u:", "@host/db", "machine h login l password "),
    *("-----BEGIN RSA PRIVATE KEY-----\n", "-----END RSA PRIVATE KEY-----", "//registry/:_authToken=", "export "),
    *("eyJ", "eyJhbGciOiJIUzI1NiJ9.", "ghp_", "sk-", "AKIA", "xoxb-", "AccountKey=", "data:image/png;base64,"),
    *('{"auths":{"h":{"auth":"', "kind: Secret\ndata:\n  k: ", '"Value": "', "[REDACTED:", "[REDACTED:password:"),
)
NOISE = (
    *("\\", "\\\\", '"', '\\"', "'", "`", "\n", "\r\n", "\t", " ", "\x1b[31m", "\x1b[0m", "\x1b[", "\x00", "\x7f"),
    *("\\u0041", "\\u00", "\\x41", "%41", "%", "\ud800", "\udc00", "é", "😀", "\u2028", "${X}", "<x>", "{{ y }}"),
    *("[REDACTED:password:0011aabb]", "[REDACTED:nobody:0011aabb]", "******", "@", ":", "/", "=", "==", ",", ";"),
    *(".", "-", "_", "{", "}", "[", "]", "(", ")", "#", "&", "+", "$", "~", "AAAAAAAAAAAAAAAAAAAAAAAA", "0123456789"),
    *("os.environ['X']", "null", "xxxxxxxx", "changeme", "x" * 300, "a1B2c3D4" * 12),
)


class Choices(Protocol):
    """Where decisions come from."""

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1."""
        ...


class Seeded:
    """Decisions that follow from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


class FromBytes:
    """Decisions that follow from bytes, and are 0 when there are no more."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, limit: int) -> int:
        size = 1 if limit <= 256 else 2
        number = int.from_bytes(self._data[self._at : self._at + size], "big")
        self._at += size
        return number % limit


class Broken(Exception):
    """A rule that does not hold, and for which input."""

    def __init__(self, rule: str, given: object) -> None:
        super().__init__(f"{rule}: {given!r}")
        self.rule = rule
        self.given = given


@cache
def examples() -> tuple[str, ...]:
    """The templates of all formats."""
    return tuple(row.example for row, _ in built_in_pack(CACHE).rows) or ("password=<base62:14>",)


def _one_of(choices: Choices, values: Sequence[str]) -> str:
    return values[choices.below(len(values))]


def _secret(choices: Choices) -> str:
    if choices.below(2):
        return expanded(_one_of(choices, examples()), str(choices.below(256)))
    return make(_one_of(choices, sorted(KINDS)), choices.below(256)).text


def _piece(choices: Choices) -> str:
    kind = choices.below(8)
    if kind < 2:
        return _secret(choices)
    if kind == 2:
        return _one_of(choices, NAMES) + _one_of(choices, JOINTS) + _secret(choices)
    if kind == 3:
        return _one_of(choices, NAMES) + _one_of(choices, JOINTS)
    return _one_of(choices, BEGINNINGS if kind == 4 else NOISE if kind < 7 else JOINTS)


def _changed(choices: Choices, text: str) -> str:
    """The text as it is, or with something done to it."""
    change = choices.below(20)
    at = choices.below(len(text)) if text else 0
    if change == 0:
        return text[:at]
    if change == 1:
        return text[at:]
    if change == 2:
        return text[:at] + _one_of(choices, NOISE) + text[at:]
    if change == 3:
        return text[:at] + text[at + 1 :]
    if change == 4:
        return "".join(f"\\u{ord(letter) & 0xFFFF:04x}" for letter in text)
    if change == 5:
        return text * (2 + choices.below(3))
    if change == 6:
        return f"{text[:at]}\x1b[01;31m\x1b[K{text[at:]}\x1b[m\x1b[K"
    if change <= 9:
        for _ in range(change - 6):
            text = json.dumps(text, ensure_ascii=bool(choices.below(2)))[1:-1]
    return text


def text_from(choices: Choices) -> str:
    """A text of some pieces, whole or spoilt."""
    pieces = (_changed(choices, _piece(choices)) for _ in range(1 + choices.below(PIECES_MAX)))
    return _changed(choices, "".join(pieces))


def _content(choices: Choices) -> object:
    shape = choices.below(8)
    text = text_from(choices)
    if shape == 0:
        return {text: text_from(choices)}
    if shape == 1:
        return {_one_of(choices, NAMES): text, "n": 1.50, "b": [True, None, -0.0, 12345678901234567890123]}
    if shape == 2:
        return [text, [text_from(choices)], {}]
    if shape == 3:
        return json.dumps({_one_of(choices, NAMES): text, "rest": [text_from(choices)]})
    if shape == 4:
        return json.dumps(json.dumps({"out": text}))
    return text


def line_from(choices: Choices) -> bytes:
    """An event, mostly valid, with a content from `text_from` in some place."""
    data: dict[str, object] = {"toolCallId": "call_0a1b2c3d4e5f60718293a4b5"}
    place = _one_of(choices, ("content", "content", "arguments", "result", "toolCallId", "encryptedContent", "model"))
    data[place] = _content(choices)
    if not choices.below(4):
        data["usage"] = {"model": _one_of(choices, examples()), "sha": text_from(choices)}
    members = {"type": "tool.execution_complete", "data": data, "id": EVENT, "timestamp": TIME, "parentId": SESSION}
    line = json.dumps(members, separators=(",", ":"), ensure_ascii=bool(choices.below(2)))
    raw = line.encode("utf-8", "surrogatepass")
    return raw if choices.below(4) else _spoilt(choices, raw)


def _spoilt(choices: Choices, line: bytes) -> bytes:
    at = choices.below(len(line))
    change = choices.below(4)
    if change == 0:
        return line[:at]
    if change == 1:
        return line[:at] + bytes((choices.below(256),)) + line[at:]
    if change == 2:
        return line[:at] + bytes((choices.below(256),)) + line[at + 1 :]
    return line[:at] + line[at + choices.below(64) :]


def check_line(engine: Engine, line: bytes) -> None:
    """Raises `Broken` unless everything that is promised for lines holds for this one."""
    result = engine.redact(line, BUDGET_MS)
    before = _parsed(line)
    if isinstance(result, Refused):
        if result.reason != "not_json" or before is not None:
            raise Broken(f"refused: {result.reason}", line)
        return
    if result is CLEAN:
        return
    assert isinstance(result, Masked)
    if engine.redact(result.line, BUDGET_MS) is not CLEAN:
        raise Broken("redacting twice changes it again", line)
    try:
        findings = result.findings
    except ValueError as error:
        raise Broken("the findings cannot be worked out", line) from error
    if len(findings) != len(result.rules) or any(one.end <= one.start for one in findings):
        raise Broken("the findings are not those of the rules", line)
    if before is not None:
        after = _parsed(result.line)
        if after is None:
            raise Broken("valid JSON became invalid", line)
        _compare(line, before[0], after[0], [])


def check_text(engine: Engine, text: str) -> None:
    """The same for texts."""
    once = engine.redact_text(text)
    if once == FAILED_TEXT:
        raise Broken("the text was not redacted", text)
    if engine.redact_text(once) != once:
        raise Broken("redacting the text twice changes it again", text)


def check_stream(engine: Engine, text: str, choices: Choices) -> None:
    """A text in pieces: what is masked in the whole text is masked here, and a text without secrets stays."""
    stream = engine.stream("message")
    shown, at = [], 0
    while at < len(text):
        step = 40 - choices.below(40)
        shown.append(stream.feed(text[at : at + step]))
        at += step
    joined = "".join(shown) + stream.flush()
    whole = engine.redact_text(text)
    if whole == text and joined != text:
        raise Broken("the stream changes a clean text", text)
    if _ends_what_did_not_begin(text):
        return  # a whole text shows that it was a key when it is too late for a stream
    for word in re.findall(r"[0-9A-Za-z]{12,}", text):
        if word not in whole and word in joined:
            raise Broken("the stream shows what is masked in the whole text", text)


def _ends_what_did_not_begin(text: str) -> bool:
    marks = ["", *re.findall(r"(BEGIN|END)[A-Z0-9 ]*PRIVATE KEY", text)]
    return any(pair != ("BEGIN", "END") for pair in pairwise(marks) if pair[1] == "END")


def check_all(engine: Engine, choices: Choices) -> None:
    """One line, one text or one stream, as is chosen."""
    kind = choices.below(4)
    if kind < 2:
        check_line(engine, line_from(choices))
    elif kind == 2:
        check_text(engine, text_from(choices))
    else:
        check_stream(engine, text_from(choices), choices)


class _Number(str):
    """A number by its digits."""

    __slots__ = ()


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _parsed(line: bytes) -> tuple[Any] | None:
    """The JSON value with members as pairs and numbers as they are written; None where it is not valid."""
    try:
        text = line.decode()
        return (
            json.loads(text, object_pairs_hook=tuple, parse_int=_Number, parse_float=_Number, parse_constant=_refuse),
        )
    except ValueError:
        return None


def _compare(line: bytes, before: Any, after: Any, path: list[str | int]) -> None:
    """Raises unless the two differ only in texts that may differ."""
    if before == after and type(before) is type(after):
        return
    if type(before) is not type(after) or isinstance(before, _Number) or not isinstance(before, (str, list, tuple)):
        raise Broken(f"another value at {path}", line)
    if isinstance(before, str):
        if is_protected(type_of(line), path, before.encode("utf-8", "surrogatepass")):
            raise Broken(f"a protected place was changed: {path}", line)
        if "[REDACTED:" not in after:
            raise Broken(f"a text without a marker was changed: {path}", line)
        return
    if len(before) != len(after):
        raise Broken(f"another number of members at {path}", line)
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        if isinstance(before, list):
            _compare(line, old, new, [*path, number])
            continue
        if old[0] != new[0]:
            _compare(line, old[0], new[0], [*path, old[0]])
        _compare(line, old[1], new[1], [*path, old[0]])
