"""Lines and texts of any size are masked piece by piece, and what cannot be masked is not written.

A preview shows what is around each secret as it would leave, and no more than a person wants to see.
"""

import asyncio
import io
import json
import random
import string
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from exporter.sources.files.session_file import SessionFile
from exporter.wiring import redact_commands as module
from exporter.wiring.redact_commands import (
    AROUND,
    Format,
    Outcome,
    PreviewFinding,
    Withheld,
    guess_format,
    mask_lines,
    mask_text,
    preview,
    split,
)
from redaction.engine import CLEAN, Engine, Finding, Redaction, Refused
from redaction.rules.examples import expanded
from tests.core.made_events import event
from tests.shared import CACHE

BUDGET_MS = 60_000.0
LINE_MAX = 4 * 1024 * 1024
ENGINE = Engine(b"k" * 32, cache_dir=CACHE)
TOKEN = expanded("ghp_<base62:30><crc32:6>")
CHANCE = random.Random(7)


def key_block(lines: int = 24) -> str:
    """A private key in its usual form."""
    body = "\n".join("".join(CHANCE.choices(string.ascii_letters + string.digits, k=64)) for _ in range(lines))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"


def lines(content: bytes, line_bytes_max: int = LINE_MAX) -> list[Outcome]:
    return list(mask_lines(ENGINE, io.BytesIO(content), budget_ms=BUDGET_MS, line_bytes_max=line_bytes_max))


def text(content: bytes, line_bytes_max: int = LINE_MAX) -> list[Outcome]:
    return list(mask_text(ENGINE, io.BytesIO(content), budget_ms=BUDGET_MS, line_bytes_max=line_bytes_max))


def written(outcomes: Iterable[Outcome]) -> bytes:
    return b"".join(outcome.output for outcome in outcomes)


def test_of_a_hook_the_result_of_a_printing_command_is_masked() -> None:
    given = {"toolArgs": {"command": "pass show a"}, "toolResult": {"sessionLog": "amber jetty"}}

    shown = written(lines(event("e1", kind="hook.start", data=json.dumps({"input": given})) + b"\n"))

    assert b"amber" not in shown
    assert b"[REDACTED:printed.pass:" in shown


@pytest.mark.parametrize(
    ("name", "head", "format"),
    [
        ("a.jsonl", b"not even JSON", "jsonl"),
        ("-", b'{"a":1}\n{"b":2}\n', "jsonl"),
        ("-", b'\n\xef\xbb\xbf{"a":1}', "text"),
        ("-", b'\xef\xbb\xbf{"a":1}\n', "jsonl"),
        ("-", b'{"a":1}', "jsonl"),
        ("-", b'{"a":"' + b"x" * 9000, "jsonl"),
        ("a.json", b'{\n  "a": 1\n}\n', "text"),
        ("a.log", b'{"a":1}\nthen words\n', "text"),
        ("-", b"[1]\n[2]\n", "text"),
        ("-", b"", "text"),
    ],
)
def test_the_format_is_guessed_from_the_name_or_the_beginning(name: str, head: bytes, format: Format) -> None:
    assert guess_format(name, head) == format


def test_clean_lines_and_their_ends_stay_as_they_are() -> None:
    content = (
        b'\xef\xbb\xbf{"a" : 1}\r\n\n  \n[1.50, "\xc3\xa9", "\\ud800"]\n' + b"[" * 9000 + b"]" * 9000 + b'\n"last"'
    )

    assert written(lines(content)) == content


def test_a_finding_has_its_line_and_event() -> None:
    line = json.dumps({"type": "a", "id": "the-id", "data": {"content": f"\u00e9 {TOKEN}"}, "timestamp": ""})

    *_, clean, found = lines(f"{{}}\n{line}\n".encode())

    [(number, finding)] = found.findings
    assert (clean.findings, found.event, number) == ((), "the-id", 2)
    assert (finding.path, finding.start, finding.end) == ("/data/content", 2, 2 + len(TOKEN))
    assert TOKEN.encode() not in found.output


def test_an_id_that_is_a_secret_is_not_told() -> None:
    [found] = lines(json.dumps({"type": "a", "id": TOKEN, "data": {"content": TOKEN}, "timestamp": ""}).encode())

    assert found.event is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"words", "not_json"),
        (b'{"a":1}{"a":1}', "not_json"),
        (b'{"a":' + TOKEN.encode(), "not_json"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'{"a":"' + b"x" * 2000 + b'"}', "line_too_long"),
    ],
)
def test_a_line_that_cannot_be_masked_is_not_written_and_the_next_is(line: bytes, reason: str) -> None:
    outcomes = lines(line + b"\n{}\n", line_bytes_max=1000)

    assert [(one.first, one.refused, one.output) for one in outcomes] == [(1, reason, b""), (2, None, b"{}\n")]


def test_a_line_that_takes_too_long_is_not_written() -> None:
    class Slow(Engine):
        def redact(self, line: bytes, budget_ms: float, call: str | None = None) -> Redaction:
            return Refused("time_budget") if b"slow" in line else CLEAN

    outcomes = list(mask_lines(Slow(), io.BytesIO(b'"slow"\n1\n'), budget_ms=1, line_bytes_max=100))

    assert [(one.refused, one.output) for one in outcomes] == [("time_budget", b""), (None, b"1\n")]


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n\0\x1b[31m\\n\"'\xff\xfe\xc3\xa9", b'a\\ud800"\nb'])
def test_a_clean_text_stays_byte_for_byte(content: bytes) -> None:
    assert written(text(content)) == content


def test_a_text_of_many_lines_is_masked_around_what_stays() -> None:
    content = f'\xff "q" \\n\n\ttoken: {TOKEN}\n{key_block()}end\n'.encode("latin-1")

    [outcome] = text(content)

    before, _, after = outcome.output.partition(b"token: ")
    assert before == b'\xff "q" \\n\n\t'
    assert after.endswith(b"\nend\n")
    assert after.count(b"[REDACTED:") == 2
    (first, token), (second, key) = outcome.findings
    assert (first, token.start, token.end) == (2, 8, 8 + len(TOKEN))
    assert (second, key.start) == (3, 0)
    assert token.path == key.path == ""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces small enough to have many of them quickly."""
    monkeypatch.setattr(module, "PIECE_BYTES", 16 * 1024)
    monkeypatch.setattr(module, "AHEAD_BYTES", 8 * 1024)


@pytest.mark.usefixtures("small")
def test_no_secret_of_a_long_text_is_lost_where_it_is_cut() -> None:
    filler = "an ordinary line of a log file which says nothing of any interest to anybody\n"
    parts, secrets = [], []
    for number in range(150):
        parts.append(filler * CHANCE.randrange(1, 20))
        secret = key_block() if number % 3 == 0 else f"token = {TOKEN[:-9]}{number:09}\n"
        secrets.append(secret)
        parts.append(secret)
    content = "".join(parts).encode()

    outcomes = text(content)

    assert len(outcomes) > 5
    out = written(outcomes).decode()
    bodies = [line for secret in secrets for line in secret.splitlines() if not line.startswith("-----")]
    assert [line for line in bodies if line in out] == []
    assert out.count(filler) == content.decode().count(filler)
    at = [content.decode().count("\n", 0, content.decode().find(secret)) + 1 for secret in secrets]
    assert [number for outcome in outcomes for number, _ in outcome.findings] == at


@pytest.mark.usefixtures("small")
def test_a_line_too_long_to_be_held_is_not_written_and_the_rest_is() -> None:
    outcomes = text(b"first\n" + b"x" * 200_000 + b"\nlast\n", line_bytes_max=50_000)

    assert written(outcomes) == b"first\nlast\n"
    assert [(one.first, one.last) for one in outcomes if one.refused == "line_too_long"] == [(2, 2)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("before", [0, 60, 150, 250, 300, 350])
def test_a_secret_longer_than_a_piece_is_masked_as_a_whole(before: int) -> None:
    block = key_block(600)
    content = "an ordinary line of some length\n" * before + block + "last\n"

    out = written(text(content.encode(), line_bytes_max=100_000)).decode()

    assert [line for line in block.splitlines()[1:-1] if line in out] == []
    assert out.startswith("an ordinary line of some length\n" * before)
    assert out.endswith("\nlast\n")


def test_only_a_piece_at_a_time_is_read(tmp_path: Path) -> None:
    class Counting(io.BytesIO):
        most = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.most = max(self.most, size if size is not None and size >= 0 else LINE_MAX * 9)
            return super().read(size)

    source = Counting(b"good day\n" * 600_000)

    assert sum(len(one.output) for one in mask_text(ENGINE, source, budget_ms=BUDGET_MS, line_bytes_max=LINE_MAX))
    assert source.most <= module.PIECE_BYTES + module.AHEAD_BYTES


# ---- preview ----------------------------------------------------------------------------------------------------


def finding(start: int, end: int) -> Finding:
    return Finding("a-rule", "/data", start, end, "high")


@pytest.mark.parametrize("marker", ["[REDACTED:a-rule:0123abcd]", "******"])
def test_a_masked_text_is_taken_apart_at_its_markers(marker: str) -> None:
    findings = [finding(2, 12), finding(15, 16)]

    pieces = split(f"a {marker} b {marker}", findings)

    assert [piece.text for piece in pieces] == ["a ", marker, " b ", marker, ""]
    assert [piece.finding for piece in pieces if piece.finding] == findings


def test_a_marker_that_was_there_before_is_not_taken_for_a_new_one() -> None:
    pieces = split("****** ******", [finding(7, 10)])

    assert [(piece.text, piece.finding is not None) for piece in pieces] == [
        ("****** ", False),
        ("******", True),
        ("", False),
    ]


def test_what_the_text_does_not_show_is_left_out() -> None:
    assert [piece.text for piece in split("nothing here", [finding(2, 4)])] == ["nothing here"]


def previewed(tmp_path: Path, *lines: bytes) -> list[PreviewFinding | Withheld | int]:
    (tmp_path / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))

    async def collect(found: AsyncIterator[PreviewFinding | Withheld | int]) -> list[PreviewFinding | Withheld | int]:
        return [one async for one in found]

    engine, session = Engine(cache_dir=CACHE), SessionFile("s", tmp_path)
    return asyncio.run(collect(preview(engine, session, budget_ms=60_000, line_bytes_max=1_000_000)))


def test_only_the_line_of_the_secret_is_shown_and_of_a_long_one_a_part(tmp_path: Path) -> None:
    text = f"other line\n{'word ' * 50}use {TOKEN} {'word ' * 50}\nother line"

    place, count = previewed(tmp_path, event("1", data=json.dumps({"content": text})))

    assert isinstance(place, PreviewFinding)
    assert count == 1
    shown = "".join(piece.text for piece in place.pieces)
    assert "other" not in shown
    assert place.pieces[place.index].text in shown
    assert len(shown) <= 2 * AROUND + len(place.pieces[place.index].text)
    assert shown.lstrip().startswith("word ")
    assert TOKEN[4:] not in shown


def test_neither_ephemeral_events_nor_clean_ones_are_shown(tmp_path: Path) -> None:
    secret = json.dumps({"content": TOKEN})

    found = previewed(tmp_path, event("1"), event("2", data=secret, ephemeral=True), b"no event", event("3"))

    assert found == [2]


def test_every_place_of_nested_json_is_found(tmp_path: Path) -> None:
    inner = json.dumps({"a": [TOKEN], "b": json.dumps({"c": TOKEN})})

    found = previewed(tmp_path, event("1", data=json.dumps({"arguments": {"x/y~z": inner}, "list": [{}, TOKEN]})))

    places = [one for one in found if isinstance(one, PreviewFinding)]
    assert [place.finding.path for place in places] == ["/data/arguments/x~1y~0z"] * 2 + ["/data/list/1"]
    assert all(place.pieces[place.index].text.startswith("[REDACTED:") for place in places)
    assert not any(TOKEN[4:] in piece.text for place in places for piece in place.pieces)


def test_a_session_without_a_file_has_nothing(tmp_path: Path) -> None:
    assert previewed(tmp_path) == []
