"""A helper redacts as this process does, and nothing depends on it: slow, stopped or killed it costs time only."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from exporter.core.delivery.position import START
from exporter.core.delivery.segment import Segment, SegmentBuilder
from exporter.core.events.lines import Oversized
from exporter.core.events.redaction import CLEAN, Masked, Redacted, Refused
from exporter.pipeline.redaction_helper import Offer, RedactionHelper, Values, helper_possible
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sources.files.session_file import EVENTS_NAME, OpenFiles, SessionFile

pytestmark = pytest.mark.skipif(not helper_possible(), reason="there is one core, or a fork is not safe")

LIMIT_SECONDS = 60.0


def redactor(values: Values) -> Callable[[bytes], Redacted]:
    """One that masks the known values, and refuses what is to be refused."""
    known = [value.encode() for value in values]

    def redact(line: bytes, /) -> Redacted:
        if b"refuse me" in line:
            return Refused("time_budget")
        masked = line
        for value in known:
            masked = masked.replace(value, b"*")
        return line if masked == line else Masked(masked, ("known-value",))

    return redact


def event(number: int, text: str, **more: object) -> bytes:
    made = {"type": "user.message", "data": {"content": text}, "id": f"e{number}", "timestamp": "t", **more}
    return json.dumps(made, separators=(",", ":")).encode()


def lines_of(count: int) -> list[bytes]:
    """Lines of any kind and size, among them what is masked, refused, ephemeral, no event, or longer than a message."""
    kinds: list[Callable[[int], bytes]] = [
        lambda n: event(n, "word " * (n % 400)),
        lambda n: event(n, "a hidden thing"),
        lambda n: event(n, "shown", ephemeral=True),
        lambda n: event(n, "refuse me"),
        lambda n: b"no event" if n % 3 else event(n, "x") + event(n + 1_000_000, "hidden"),
        lambda n: b"  " + event(n, "naïve") + b" \r",
        lambda n: event(n, "hidden" + "y" * 200_000 * (n % 105 == 6)),
    ]
    return [kinds[n % len(kinds)](n) for n in range(count)]


@pytest.fixture
def helper() -> Iterator[RedactionHelper]:
    known = frozenset({"hidden"})
    made = RedactionHelper(redactor, lambda _: known)
    yield made
    made.close()


def done(helper: RedactionHelper, offer: Offer | None) -> Offer:
    assert offer is not None
    end = time.monotonic() + LIMIT_SECONDS
    while not offer.is_done and time.monotonic() < end:
        helper.look(offer)
        time.sleep(0.001)
    assert offer.is_done
    return offer


def read(directory: Path, helper: RedactionHelper | None, between: Callable[[int], None] = lambda _: None) -> object:
    """Everything that is read from the file, and why what is not sent is not."""
    redact = redactor(["hidden"])
    files, file = OpenFiles(4), SessionFile("s", directory)
    file.refresh(files)
    reader = SegmentReader(files, redact, line_bytes_max=1 << 20, cache_bytes=0, helper=helper)
    found: list[Segment] = []

    async def all_of_it() -> None:
        position = START
        while (segment := await reader.segment(file, position)) is not None:
            found.append(segment)
            position = segment.end
            between(len(found))

    asyncio.run(all_of_it())
    files.close_all()
    return [(one.ids, one.lines, one.offsets, one.unsendable, one.masked, one.ephemeral, one.end) for one in found]


def written(directory: Path, count: int = 9_000) -> Path:
    (directory / EVENTS_NAME).write_bytes(b"".join(line + b"\n" for line in lines_of(count)))
    return directory


def test_what_the_helper_tells_is_what_this_process_finds(helper: RedactionHelper) -> None:
    whole, redact = lines_of(200), redactor(["hidden"])
    offer = done(helper, helper.offer([*whole, Oversized(0, 9, b"x")]))

    told = {index: offer.found.get(index, line) for index, line in enumerate(whole) if offer.states[index]}

    assert told == {
        index: redact(line.strip(b" \t\r")) if index in offer.found else line
        for index, line in enumerate(whole)
        if index in told
    }
    assert all(redact(line) == line for index, line in enumerate(whole) if offer.states[index] == CLEAN)
    untold = [line for index, line in enumerate(whole) if not offer.states[index]]
    assert all(b"ephemeral" in line or len(line) > 100_000 for line in untold)
    assert len(untold) < len(whole) / 5


def test_a_line_with_a_verdict_is_not_redacted_again(helper: RedactionHelper) -> None:
    lines: list[bytes | Oversized] = [event(n, "hidden" if n % 2 else "open" * 200) for n in range(200)]
    offer = done(helper, helper.offer(lines))

    def never(_line: bytes, /) -> Redacted:
        raise AssertionError("redacted again")

    builder = SegmentBuilder(START, never, verdicts=offer)
    index = 0
    while index < len(lines):
        index = builder.take(lines, index, len(lines))

    wanted = [event(n, "*" if n % 2 else "open" * 200) for n in range(200)]
    assert builder.finish(b"").lines == wanted


@pytest.mark.parametrize("number", [None, signal.SIGKILL, signal.SIGSTOP])
def test_the_same_is_read_whatever_becomes_of_the_helper(
    number: signal.Signals | None, helper: RedactionHelper, tmp_path: Path
) -> None:
    directory = written(tmp_path)
    wanted = read(directory, None)

    def harm(segments: int) -> None:
        if number is not None and segments == 3:
            os.kill(helper.pid, number)

    assert read(directory, helper, harm) == wanted


def test_verdicts_made_with_other_known_values_are_not_used() -> None:
    known = frozenset({"hidden"})
    helper = RedactionHelper(redactor, lambda _: known)
    lines: list[bytes | Oversized] = [event(n, "hidden and later" * 40) for n in range(200)]
    before = done(helper, helper.offer(lines))

    known = frozenset({"hidden", "later"})
    after = done(helper, helper.offer(lines))

    assert helper.look(before) is None
    assert helper.look(after) is after
    assert after.redacted(0, b"", redactor([])) == Masked(event(0, "* and *" * 40), ("known-value",))
    helper.close()


def test_nothing_is_offered_where_the_known_values_cannot_be_told() -> None:
    helper = RedactionHelper(redactor, lambda _: None)

    assert helper.offer([event(n, "hidden" * 100) for n in range(200)]) is None
    helper.close()


def test_a_helper_ends_with_the_process_that_started_it() -> None:
    ours, theirs = os.pipe()
    if (starter := os.fork()) == 0:
        made = RedactionHelper(redactor, lambda _: frozenset())
        os.write(theirs, f"{made.pid}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(starter, 0)
    os.close(theirs)
    pid = int(os.read(ours, 20))
    os.close(ours)

    end = time.monotonic() + LIMIT_SECONDS
    while _lives(pid) and time.monotonic() < end:
        time.sleep(0.01)

    assert not _lives(pid)


def test_a_helper_has_no_file_and_no_connection_but_to_its_starter(tmp_path: Path) -> None:
    with (tmp_path / "held").open("w"), closing(RedactionHelper(redactor, lambda _: frozenset())) as helper:
        offer = helper.offer([event(number, "word " * 400) for number in range(100)])
        end = time.monotonic() + LIMIT_SECONDS
        while offer is not None and not offer.is_done and time.monotonic() < end:  # from then on it has left all files
            helper.look(offer)
            time.sleep(0.01)
        opened = {one.name: str(one.readlink()) for one in Path(f"/proc/{helper.pid}/fd").iterdir()}

    assert offer is not None and offer.is_done
    assert {opened.pop(name) for name in ("0", "1", "2")} == {"/dev/null"}
    assert [one.partition(":")[0] for one in opened.values()] == ["socket"]


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
