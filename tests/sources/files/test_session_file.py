"""Lines of a real file come once each, and a changed past is never taken for new content."""

import os
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporter.core.delivery.position import START, TAIL_BYTES, Position, tail_hash
from exporter.core.events.envelope import Envelope
from exporter.core.events.lines import HEAD_BYTES, Oversized
from exporter.sources.files.session_file import (
    CHUNK_BYTES,
    OpenFiles,
    PastChangedError,
    Reader,
    SessionFile,
    durable_events,
)
from tests.core.made_events import event

LINE_MAX: Final = 1 << 20
ROOT: Final = Path(__file__).parents[3]


class Followed:
    """One session file, with what follows it."""

    def __init__(self, root: Path, *, open_files: int = 4, name: str = "session") -> None:
        (root / name).mkdir(exist_ok=True)
        self.files = OpenFiles(open_files)
        self.file = SessionFile(name, root / name)
        self.path = self.file.path

    def write(self, content: bytes) -> None:
        """In place: the same inode, from its first byte."""
        self.path.write_bytes(content)

    def append(self, content: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(content)

    def replace(self, content: bytes) -> None:
        """As the CLI does: another file, renamed over it."""
        other = self.path.with_name("other")
        other.write_bytes(content)
        other.rename(self.path)

    def refresh(self) -> str | None:
        return self.file.refresh(self.files)

    def reader(self, position: Position = START, line_max: int = LINE_MAX) -> Reader:
        self.refresh()
        return Reader(self.file, self.files, position, line_max)


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def rest(reader: Reader) -> list[bytes | Oversized]:
    """Every line that can be had now."""
    lines: list[bytes | Oversized] = []
    while reader.fill():
        lines.extend(reader.chunk.lines[reader.index :])
        reader.take(len(reader.chunk.lines))
    return lines


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


# ---- which file it is ---------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_yet_is_gone_and_then_it_is_not(followed: Followed) -> None:
    assert followed.refresh() is None
    assert (followed.file.gone, followed.file.identity, followed.file.problem) == (True, None, None)
    followed.write(b"")
    assert followed.refresh() is None
    assert (followed.file.gone, followed.file.size, followed.file.generation) == (False, 0, 0)


def test_growing_is_the_same_generation(followed: Followed) -> None:
    followed.write(b"one\n")
    followed.refresh()
    followed.append(b"two\n")

    assert followed.refresh() is None
    assert (followed.file.size, followed.file.generation) == (8, 0)


def test_a_shorter_file_is_another_generation(followed: Followed) -> None:
    followed.write(b"one\ntwo\n")
    followed.refresh()
    followed.write(b"one\n")

    assert followed.refresh() == "truncated"
    assert (followed.file.size, followed.file.generation) == (4, 1)


@pytest.mark.parametrize("content", [b"", b"one\n", b"one\ntwo\n", b"one\ntwo\nthree\n"])
def test_another_file_in_its_place_is_another_generation(followed: Followed, content: bytes) -> None:
    followed.write(b"one\ntwo\n")
    followed.refresh()
    followed.replace(content)

    assert followed.refresh() == "replaced"
    assert (followed.file.size, followed.file.generation) == (len(content), 1)


def test_a_file_moved_away_and_back_is_the_same(followed: Followed) -> None:
    followed.write(b"one\n")
    followed.refresh()
    away = followed.file.directory.rename(followed.file.directory.with_name("away"))
    followed.refresh()
    assert followed.file.gone
    away.rename(followed.file.directory)

    assert followed.refresh() is None
    assert (followed.file.gone, followed.file.generation) == (False, 0)


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "loop"])
def test_what_is_no_file_is_a_problem_and_does_not_block(followed: Followed, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(followed.path)
    elif kind == "directory":
        followed.path.mkdir()
    elif kind == "device":
        followed.path.symlink_to("/dev/null")
    else:
        followed.path.symlink_to(followed.path)
    reader = followed.reader()

    assert followed.file.gone
    assert followed.file.problem is not None
    assert (kind == "loop") == followed.file.problem.startswith("unreadable_file")
    assert rest(reader) == []


def test_a_problem_that_is_over_is_forgotten(followed: Followed) -> None:
    os.mkfifo(followed.path)
    followed.refresh()
    followed.path.unlink()
    followed.write(b"one\n")

    assert rest(followed.reader()) == [b"one"]
    assert followed.file.problem is None


def test_a_link_to_a_file_is_a_file(followed: Followed) -> None:
    followed.path.with_name("real").write_bytes(b"one\n")
    followed.path.symlink_to("real")

    assert rest(followed.reader()) == [b"one"]


def test_a_link_out_of_the_directory_is_not_followed(followed: Followed, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(event("one") + b"\n")
    followed.path.symlink_to(tmp_path / "elsewhere")
    reader = followed.reader()

    assert (followed.file.gone, followed.file.problem) == (True, "link_out_of_its_directory")
    assert rest(reader) == []
    assert list(durable_events(followed.path, LINE_MAX)) == []


def test_a_file_that_becomes_a_link_between_two_looks_is_not_followed(followed: Followed, tmp_path: Path) -> None:
    followed.write(b"one\n")
    reader = followed.reader()
    followed.path.rename(tmp_path / "elsewhere")  # the same inode, so that its identity does not betray it
    followed.path.symlink_to(tmp_path / "elsewhere")

    assert rest(reader) == []
    assert "link out of its directory" in str(followed.file.problem)


def test_a_directory_that_is_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "session").symlink_to("elsewhere")
    followed = Followed(tmp_path)
    followed.write(b"one\n")

    assert rest(followed.reader()) == [b"one"]


def test_a_file_that_may_not_be_read_is_a_problem_until_it_may(tmp_path: Path) -> None:
    """In a process without the rights of root, who may read anything."""
    code = (
        "import os, pathlib\n"
        "from tests.sources.files.test_session_file import Followed, rest\n"
        "if os.getuid() == 0:\n    os.setuid(12345)\n"
        "followed = Followed(pathlib.Path('.'))\n"
        "followed.write(b'one\\n'); followed.path.chmod(0)\n"
        "reader = followed.reader()\n"
        "print(rest(reader), followed.file.problem); followed.refresh(); print(followed.file.problem)\n"
        "followed.path.chmod(0o600); print(rest(reader), followed.file.problem)\n"
    )
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o777)
    for parent in (tmp_path, *tmp_path.parents[:2]):  # pytest's own, closed to everybody else
        if parent.name.startswith(("pytest-", "test_")):
            parent.chmod(stat.S_IMODE(parent.stat().st_mode) | 0o011)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env=environment, capture_output=True, text=True, check=True
    )

    problem = "unreadable_file: Permission denied"
    assert result.stdout.splitlines() == [f"[] {problem}", problem, "[b'one'] None"]


# ---- reading ------------------------------------------------------------------------------------------------


def test_a_line_comes_when_it_is_whole(followed: Followed) -> None:
    followed.write(b"one\ntw")
    reader = followed.reader()
    assert rest(reader) == [b"one"]
    assert reader.held == 2
    followed.append(b"o")
    followed.refresh()
    assert rest(reader) == []
    followed.append(b"\nthree\n")
    followed.refresh()
    assert rest(reader) == [b"two", b"three"]
    assert reader.held == 0


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.sampled_from([0, 1, 5, 200, 300, 5000, CHUNK_BYTES - 1, CHUNK_BYTES + 7]), max_size=8),
    cuts=st.lists(st.integers(0, 10**7), max_size=4),
    line_max=st.sampled_from([4000, 1 << 20]),
    data=st.data(),
)
def test_any_growth_gives_each_line_once_with_the_bytes_before_it(
    tmp_path: Path, sizes: list[int], cuts: list[int], line_max: int, data: st.DataObject
) -> None:
    content = b"".join(bytes([97 + number]) * size + b"\n" for number, size in enumerate(sizes)) + b"torn"
    followed = Followed(tmp_path)
    followed.replace(b"")
    reader = followed.reader(line_max=line_max)
    lines: list[bytes | Oversized] = []
    offset = 0
    for cut in [*sorted(cut % (len(content) + 1) for cut in cuts), len(content)]:
        followed.append(content[followed.path.stat().st_size : cut])
        followed.refresh()
        while reader.fill():
            index = data.draw(st.integers(reader.index + 1, len(reader.chunk.lines)))
            taken = reader.chunk.lines[reader.index : index]
            lines.extend(taken)
            offset += sum((len(line) if isinstance(line, bytes) else line.size) + 1 for line in taken)

            assert reader.take(index) == content[:offset][-TAIL_BYTES:]
            assert Position(offset, tail_hash(content[:offset])).follows(content[:offset][-TAIL_BYTES:])

    expected = [bytes([97 + number]) * size for number, size in enumerate(sizes)]
    assert [line if isinstance(line, bytes) else line.head for line in lines] == [
        line if len(line) <= line_max else line[:HEAD_BYTES] for line in expected
    ]
    followed.files.close_all()


def test_a_reader_from_a_position_gives_the_rest(followed: Followed) -> None:
    content = b"one\ntwo\nthree\n"
    followed.write(content)

    assert rest(followed.reader(Position(8, tail_hash(content[:8])))) == [b"three"]
    assert rest(followed.reader(Position(14, tail_hash(content)))) == []


def test_a_position_in_another_past_is_not_read_from(followed: Followed) -> None:
    followed.write(b"One\ntwo\nthree\n")
    reader = followed.reader(Position(8, tail_hash(b"one\ntwo\n")))

    assert not reader.past_is_same()
    with pytest.raises(PastChangedError):
        reader.fill()


def test_a_file_rewritten_in_place_with_the_same_length_is_not_read_on(followed: Followed) -> None:
    followed.write(b"one\ntwo\n")
    reader = followed.reader()
    rest(reader)
    followed.write(b"ONE\nTWO\n")
    assert followed.refresh() is None
    assert not reader.past_is_same()
    followed.append(b"three\n")
    followed.refresh()
    with pytest.raises(PastChangedError):
        reader.fill()


def test_a_file_truncated_and_grown_beyond_is_not_read_on(followed: Followed) -> None:
    followed.write(b"one\ntwo\n")
    reader = followed.reader()
    rest(reader)
    followed.write(b"another beginning\nand more\n")
    assert followed.refresh() is None
    with pytest.raises(PastChangedError):
        reader.fill()


def test_a_reader_at_the_end_keeps_no_lines(followed: Followed) -> None:
    followed.write(b"one\ntwo\n")
    reader = followed.reader()
    assert reader.fill()

    reader.take(1)
    left = len(reader.chunk.lines)
    reader.take(2)

    assert (left, reader.chunk.lines) == (2, [])
    assert not reader.fill()


def test_a_file_changed_between_two_reads_is_not_read_on(followed: Followed) -> None:
    line = b"x" * 999 + b"\n"
    followed.write(line * 2000)
    reader = followed.reader()
    assert reader.fill()
    reader.take(len(reader.chunk.lines))
    followed.write(b"y" * 999 + b"\n" + line.replace(b"x", b"y") * 1999)
    with pytest.raises(PastChangedError):
        reader.fill()


@pytest.mark.parametrize("first", [b'{"id":"a"}\n', b""])
def test_a_file_changed_in_the_middle_of_lines_that_look_alike_there_is_not_read_on(
    followed: Followed, first: bytes
) -> None:
    def lines(prefix: str) -> list[bytes]:
        ids = (f"{prefix}{number:02}" for number in range(12))
        return [b'{"p":"' + b"x" * 200_000 + b'","id":"' + name.encode() + b'"}\n' for name in ids]

    old, new = lines("a"), lines("b")
    followed.write(first + b"".join(old))
    reader = followed.reader()
    assert reader.fill()
    assert reader.held > 256
    reader.take(len(reader.chunk.lines))
    followed.write(first + b"".join(new))
    with pytest.raises(PastChangedError):
        reader.fill()


def test_a_noted_change_is_a_new_generation_with_a_new_descriptor(followed: Followed) -> None:
    followed.write(b"one\n")
    rest(followed.reader())
    followed.file.rewritten(followed.files)

    assert followed.file.generation == 1
    assert not followed.files.holds(followed.file)


def test_a_deleted_file_is_drained_from_the_open_descriptor(followed: Followed) -> None:
    followed.write(b"one\n")
    reader = followed.reader()
    assert reader.fill()
    with followed.path.open("ab") as writer:
        followed.path.unlink()
        writer.write(b"two\n")
        writer.flush()
        followed.refresh()

        assert followed.file.gone
        assert followed.files.holds(followed.file)
        assert reader.chunk.lines == [b"one"]
        reader.take(1)
        assert rest(reader) == [b"two"]


def test_a_deleted_file_that_was_not_open_gives_nothing(followed: Followed) -> None:
    followed.write(b"one\n")
    reader = followed.reader()
    followed.path.unlink()
    followed.refresh()

    assert followed.file.gone
    assert rest(reader) == []


def test_a_file_replaced_before_it_was_seen_is_not_read_under_the_old_name(followed: Followed) -> None:
    followed.write(b"one\n")
    reader = followed.reader()
    followed.replace(b"other\n")

    assert rest(reader) == []
    assert followed.refresh() == "replaced"
    assert rest(followed.reader()) == [b"other"]


def test_a_hundred_megabytes_without_a_newline_are_not_held(followed: Followed) -> None:
    with followed.path.open("wb") as file:
        file.truncate(100 << 20)  # of NULs, on a disk that stores none of them
        file.seek(0, os.SEEK_END)
        file.write(b"\nafter\n")
    reader = followed.reader()
    tracemalloc.start()
    lines = rest(reader)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert lines == [Oversized(0, 100 << 20, bytes(HEAD_BYTES)), b"after"]
    assert peak < 4 * LINE_MAX


def test_whether_lines_are_ascii_is_known_even_of_a_line_of_three_chunks(followed: Followed) -> None:
    followed.write("\u20ac".encode() + b"x" * 2 * CHUNK_BYTES + b"\nplain\n")
    reader = followed.reader()
    assert reader.fill()
    assert not reader.chunk.is_ascii
    followed.replace(b"x" * 2 * CHUNK_BYTES + b"\nplain\n")
    reader = followed.reader()
    assert reader.fill()
    assert reader.chunk.is_ascii


# ---- descriptors --------------------------------------------------------------------------------------------


def test_the_descriptor_used_longest_ago_is_closed_first(tmp_path: Path) -> None:
    files = OpenFiles(2)
    followed = [Followed(tmp_path, name=name) for name in "abc"]
    for one in followed:
        one.files = files
        one.write(b"one\n")
    readers = [one.reader() for one in followed]
    before = open_descriptors()
    for index in (0, 1, 0, 2):
        readers[index].past_is_same()

    assert [files.holds(one.file) for one in followed] == [True, False, True]
    assert open_descriptors() == before + 2
    assert [rest(reader) for reader in readers] == [[b"one"]] * 3
    files.close_all()
    assert open_descriptors() == before


def test_a_thousand_files_are_read_through_two_descriptors(tmp_path: Path) -> None:
    files = OpenFiles(2)
    before = open_descriptors()
    for number in range(1000):
        one = Followed(tmp_path, name=f"session-{number}")
        one.files = files
        one.write(b"%d\n" % number)

        assert rest(one.reader()) == [b"%d" % number]
        assert open_descriptors() <= before + 2
    files.close_all()


def durable(path: Path, line_bytes_max: int = 1 << 20) -> list[tuple[str, bytes]]:
    return [(envelope.id, raw) for envelope, raw in durable_events(path, line_bytes_max)]


def test_durable_events_come_in_order_with_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    a, b, c, d = event("a"), event("b", ephemeral=True), event("c", data='"\\ud800"'), event("d")
    path.write_bytes(a + b"\n" + b + b"\nrubbish\n\n " + c + b"\r\n" + d + b + a[:30] + d + b"\n" + event("torn"))

    assert durable(path) == [("a", a), ("c", c), ("d", d), ("d", d)]


def test_a_line_too_long_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(event("a") + b"\n" + event("long", data='"' + "x" * 3_000_000 + '"') + b"\n" + event("b") + b"\n")

    assert [identity for identity, _ in durable(path)] == ["a", "b"]


def test_it_can_be_left_before_its_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(event(str(number)) + b"\n" for number in range(9)))

    events = durable_events(path, 1000)
    first, _ = next(events)
    events.close()  # type: ignore[attr-defined]  # it is a generator, which an Iterator need not be

    assert isinstance(first, Envelope)
    assert first.id == "0"


@pytest.mark.parametrize("kind", ["missing", "directory", "loop", "pipe", "below a file"])
def test_what_is_no_file_has_no_events_and_does_not_block(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "events.jsonl"
    if kind == "directory":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "below a file":
        path.touch()
        path = path / "events.jsonl"

    assert durable(path) == []
