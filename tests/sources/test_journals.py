"""A journal is on the disk before anything goes on, gives space back only behind a mark, and stops at its bound."""

import json
import os
import resource
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.core.delivery.position import TAIL_BYTES, Position, tail_hash
from exporter.sources.files.session_file import OpenFiles, Reader, SessionFile
from exporter.sources.journals import Journals

SESSION = "the-session"
BYTES_MAX = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "journals"


@pytest.fixture
def journals(root: Path) -> Iterator[Journals]:
    made = Journals(root, BYTES_MAX)
    yield made
    made.close()


def event(n: int, size: int = 0) -> tuple[str, bytes]:
    id = f"id-{n}"
    return id, json.dumps({"type": "x", "id": id, "timestamp": "t", "data": {"fill": "y" * size}}).encode()


def lines(root: Path) -> list[bytes]:
    return (root / SESSION / "events.jsonl").read_bytes().splitlines()


def test_a_journal_is_the_file_of_a_session_and_private(journals: Journals, root: Path) -> None:
    assert journals.append(SESSION, [event(1), event(2)])

    path = root / SESSION / "events.jsonl"
    assert path.read_bytes() == event(1)[1] + b"\n" + event(2)[1] + b"\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [stat.S_IMODE(one.stat().st_mode) for one in (root, path.parent)] == [0o700, 0o700]


def test_what_is_taken_has_been_synced(journals: Journals, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))

    assert journals.append(SESSION, [event(1)])

    assert sizes == [len(event(1)[1]) + 1]


def test_the_mark_is_the_last_event_also_after_a_restart(journals: Journals, root: Path) -> None:
    assert journals.mark(SESSION) is None
    journals.append(SESSION, [event(1), event(2), ("", b"rubbish")])
    again = Journals(root, BYTES_MAX)

    assert journals.mark(SESSION) == again.mark(SESSION) == "id-2"
    assert [again.known(SESSION, id) for id in ("id-1", "id-2", "id-3")] == [True, True, False]
    assert again.used_bytes == journals.used_bytes == (root / SESSION / "events.jsonl").stat().st_size


def test_asking_makes_no_file(journals: Journals, root: Path) -> None:
    assert (journals.mark("other"), journals.known("other", "id-1")) == (None, False)
    assert list(root.iterdir()) == []


def test_an_event_is_written_once(journals: Journals, root: Path) -> None:
    for _ in range(2):
        assert journals.append(SESSION, [event(1), event(1), event(2)])

    assert lines(root) == [event(1)[1], event(2)[1]]


@pytest.mark.parametrize("torn", [b'{"type":"x","id":"id-3"', b"\0\0\0", event(3)[1]])
def test_a_line_that_a_crash_tore_is_taken_away(journals: Journals, root: Path, torn: bytes) -> None:
    journals.append(SESSION, [event(1), event(2)])
    with (root / SESSION / "events.jsonl").open("ab") as file:
        file.write(torn)
    again = Journals(root, BYTES_MAX)

    assert again.mark(SESSION) == "id-2"
    assert again.append(SESSION, [event(3)])
    assert lines(root) == [event(n)[1] for n in (1, 2, 3)]
    assert again.used_bytes == (root / SESSION / "events.jsonl").stat().st_size


def test_at_its_bound_it_says_so_and_takes_nothing(root: Path) -> None:
    journals = Journals(root, 1000)
    assert journals.append("one", [event(1, 600)])
    taken = journals.append("two", [event(2), event(3, 600)])
    problem = journals.problem

    assert not taken
    assert problem is not None and "full" in problem
    assert journals.mark("two") is None
    assert journals.append("two", [event(2)])
    assert journals.problem is None


def test_a_disk_that_is_full_leaves_no_part_of_a_line(
    journals: Journals, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals.append(SESSION, [event(1)])
    real = os.pwrite
    written: list[int] = []

    def half(descriptor: int, content: memoryview, offset: int) -> int:
        if written:
            raise OSError(28, "No space left on device")
        written.append(real(descriptor, content[:10], offset))
        return written[0]

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", half)
        taken = journals.append(SESSION, [event(2)])

    assert not taken
    assert journals.problem == "a journal cannot be written: No space left on device"
    assert lines(root) == [event(1)[1]]
    assert journals.append(SESSION, [event(2)])
    assert lines(root) == [event(1)[1], event(2)[1]]


def filled(journals: Journals, count: int = 100) -> list[bytes]:
    events = [event(n, 500) for n in range(count)]
    assert journals.append(SESSION, events)
    return [line for _, line in events]


def test_space_behind_the_slowest_mark_is_given_back_and_nobody_notices(journals: Journals, root: Path) -> None:
    written = filled(journals)
    path = root / SESSION / "events.jsonl"
    offset = sum(len(line) + 1 for line in written[:60])
    file, files = SessionFile(SESSION, path.parent), OpenFiles(4)
    file.refresh(files)
    mark = Position(offset, tail_hash(path.read_bytes()[:offset]))
    blocks = path.stat().st_blocks
    freed = journals.cut(SESSION, offset)

    assert freed > 60 * 400
    assert path.stat().st_blocks < blocks
    assert journals.used_bytes == path.stat().st_size - journals.begins(SESSION)
    assert file.refresh(files) is None and file.generation == 0
    reader = Reader(file, files, mark, 1 << 20)
    assert reader.fill() and reader.chunk.lines == written[60:]
    files.close_all()


def test_what_is_left_begins_with_a_whole_event_also_after_a_restart(journals: Journals, root: Path) -> None:
    written = filled(journals)
    journals.cut(SESSION, sum(len(line) + 1 for line in written[:60]))
    content = (root / SESSION / "events.jsonl").read_bytes()
    again = Journals(root, BYTES_MAX)

    begins = journals.begins(SESSION)
    assert content[begins:].splitlines() == written[-len(content[begins:].splitlines()) :]
    assert content[:begins].strip(b"\0") == b"\n"
    assert again.begins(SESSION) == begins
    assert again.mark(SESSION) == "id-99"
    assert again.append(SESSION, [event(100)])


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3000), st.floats(0, 1)), max_size=5))
def test_nothing_behind_the_mark_is_lost(steps: list[tuple[int, int, float]]) -> None:
    mark = 0
    with tempfile.TemporaryDirectory() as directory:
        journals = Journals(Path(directory), 1 << 30)
        path = Path(directory, SESSION, "events.jsonl")
        written = b""
        for count, size, part in steps:
            first = written.count(b"\n")
            events = [event(first + n, size) for n in range(count)]
            assert journals.append(SESSION, events)
            written += b"".join(line + b"\n" for _, line in events)
            mark = max(mark, written.rfind(b"\n", 0, int(len(written) * part)) + 1)
            journals.cut(SESSION, mark)

            content = path.read_bytes()
            assert len(content) == len(written)
            needed = max(0, mark - TAIL_BYTES)
            assert content[needed:] == written[needed:]
            assert content[journals.begins(SESSION) :] == written[journals.begins(SESSION) :]
            assert written[: journals.begins(SESSION)][-1:] in (b"", b"\n")
            again = Journals(Path(directory), 1 << 30)
            assert again.begins(SESSION) == journals.begins(SESSION)
            assert again.mark(SESSION) == journals.mark(SESSION)
            assert again.used_bytes >= len(written) - journals.begins(SESSION)
            again.close()
        journals.close()


def test_the_last_event_is_never_cut(journals: Journals) -> None:
    written = filled(journals)
    journals.cut(SESSION, sum(len(line) + 1 for line in written))

    assert journals.mark(SESSION) == "id-99"
    assert journals.known(SESSION, "id-99")


def test_what_stands_beside_events_does_not_take_the_place_of_the_last_one(journals: Journals, root: Path) -> None:
    filled(journals)
    fields = {"type": "u", "id": "u", "timestamp": "t", "ephemeral": True, "data": {"fill": "y" * 2000}}
    usage = [("", json.dumps(fields).encode())] * 3
    assert journals.append(SESSION, usage)
    freed = journals.cut(SESSION, (root / SESSION / "events.jsonl").stat().st_size)
    again = Journals(root, BYTES_MAX)

    assert freed > 90 * 500
    assert [one.mark(SESSION) for one in (journals, again)] == ["id-99", "id-99"]
    assert again.cut(SESSION, (root / SESSION / "events.jsonl").stat().st_size) == 0
    assert again.append(SESSION, [event(99), event(100, 5000), *usage])
    assert again.cut(SESSION, (root / SESSION / "events.jsonl").stat().st_size) > 0
    assert Journals(root, BYTES_MAX).mark(SESSION) == "id-100"
    again.close()


def test_a_journal_that_is_removed_gives_everything_back(journals: Journals, root: Path) -> None:
    filled(journals)
    journals.remove(SESSION)

    assert journals.used_bytes == 0
    assert list(root.iterdir()) == []


def test_few_files_are_open_however_many_journals_there_are(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.sources.journals.OPEN_MAX", 2)
    journals = Journals(root, BYTES_MAX)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for n in range(10):
        assert journals.append(f"s{n}", [event(n)])

    assert len(list(Path("/proc/self/fd").iterdir())) - before <= 2
    assert [journals.mark(f"s{n}") for n in range(10)] == [f"id-{n}" for n in range(10)]


def test_a_rewind_that_fails_on_the_way_forgets_only_what_is_read_again(journals: Journals, root: Path) -> None:
    assert journals.append(SESSION, [event(n, 1_000) for n in range(10)])
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, hard))
    try:
        with pytest.raises(OSError):
            journals.rewind(SESSION, {f"id-{n}" for n in range(10) if n != 6}, ())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))

    assert [journals.known(SESSION, f"id-{n}") for n in range(10)] == [True] * 6 + [False] * 4
    assert journals.append(SESSION, [event(n, 1_000) for n in range(7, 12)])
    assert [json.loads(line)["id"] for line in lines(root)] == [f"id-{n}" for n in range(12) if n != 6]
    assert journals.used_bytes == (root / SESSION / "events.jsonl").stat().st_size
