"""A preview shows what is around each secret as it would leave, and no more than a person wants to see."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exporter.sources.files.session_file import SessionFile
from exporter.wiring.redact_preview import AROUND, PreviewFinding, Withheld, preview, split
from redaction.engine import Engine, Finding
from redaction.rules.examples import expanded
from tests.core.made_events import event
from tests.shared import CACHE

TOKEN = expanded("ghp_<base62:30><crc32:6>")


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
