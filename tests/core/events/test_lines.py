"""Whole lines come out the same, whatever the chunks are cut like."""

import tracemalloc
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from exporter.core.events.lines import HEAD_BYTES, LineSplitter, Oversized


def feed_all(splitter: LineSplitter, content: bytes, chunk_bytes: int) -> list[bytes | Oversized]:
    lines: list[bytes | Oversized] = []
    for at in range(0, len(content), chunk_bytes):
        lines.extend(splitter.feed(content[at : at + chunk_bytes]))
    return lines


def lines_by_definition(content: bytes, offset: int, line_bytes_max: int) -> list[bytes | Oversized]:
    lines: list[bytes | Oversized] = []
    for line in content.split(b"\n")[:-1]:
        oversized = len(line) > line_bytes_max
        lines.append(Oversized(offset, len(line), line[:HEAD_BYTES]) if oversized else line)
        offset += len(line) + 1
    return lines


def test_a_chunk_gives_its_lines_without_their_newlines() -> None:
    splitter = LineSplitter(0, 100)

    assert splitter.feed(b"one\ntwo\n\nfour\n") == [b"one", b"two", b"", b"four"]


def test_a_line_without_its_newline_is_held() -> None:
    splitter = LineSplitter(1000, 100)

    assert splitter.feed(b"one\ntw") == [b"one"]
    assert (splitter.offset, splitter.held) == (1004, 2)
    assert splitter.feed(b"o\n") == [b"two"]
    assert (splitter.offset, splitter.held) == (1008, 0)


def test_nothing_but_a_newline_byte_ends_a_line() -> None:
    line = "\r\x00\x0b\x0c\x1c\x85\u0085\u2028\u2029\r".encode()

    assert LineSplitter(0, 100).feed(line + b"\n") == [line]


def test_an_empty_chunk_changes_nothing() -> None:
    splitter = LineSplitter(7, 100)
    splitter.feed(b"begun")

    assert splitter.feed(b"") == []
    assert (splitter.offset, splitter.held) == (7, 5)


def test_a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not() -> None:
    splitter = LineSplitter(0, 4)

    assert splitter.feed(b"1234\n12345\n1\n") == [b"1234", Oversized(5, 5, b"12345"), b"1"]


@given(
    pieces=st.lists(
        st.sampled_from([b"\n", b"x", b"yz\n", b"\r\n", b"0123456789", b"\xe2\x80\xa8", b"\0" * 40]), max_size=40
    ),
    cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=20),
    offset=st.integers(min_value=0, max_value=2**40),
    line_bytes_max=st.integers(min_value=1, max_value=30),
)
def test_any_chunking_gives_the_same_lines(
    pieces: list[bytes], cuts: list[int], offset: int, line_bytes_max: int
) -> None:
    content = b"".join(pieces)
    edges = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    splitter = LineSplitter(offset, line_bytes_max)

    lines = [line for begin, end in pairwise(edges) for line in splitter.feed(content[begin:end])]

    assert lines == lines_by_definition(content, offset, line_bytes_max)
    assert splitter.offset == offset + content.rfind(b"\n") + 1
    assert splitter.offset + splitter.held == offset + len(content)


@given(
    sizes=st.lists(st.integers(min_value=0, max_value=3 * HEAD_BYTES), min_size=1, max_size=4),
    chunk_bytes=st.integers(min_value=1000, max_value=4 * HEAD_BYTES),
    line_bytes_max=st.sampled_from([1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 2 * HEAD_BYTES]),
)
def test_the_head_of_an_oversized_line_does_not_depend_on_the_chunks(
    sizes: list[int], chunk_bytes: int, line_bytes_max: int
) -> None:
    content = b"".join(bytes([65 + number]) * size + b"\n" for number, size in enumerate(sizes))

    lines = feed_all(LineSplitter(0, line_bytes_max), content, chunk_bytes)

    assert lines == lines_by_definition(content, 0, line_bytes_max)


def test_a_line_of_100_megabytes_is_counted_and_not_held() -> None:
    splitter = LineSplitter(0, 1024 * 1024)
    chunk = b"x" * 65536
    tracemalloc.start()
    for _ in range(1600):
        assert splitter.feed(chunk) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert splitter.held == 1600 * 65536
    assert splitter.feed(b"\nnext\n") == [Oversized(0, 1600 * 65536, chunk), b"next"]
    assert peak < 2 * 1024 * 1024


def test_a_long_line_within_the_limit_survives_small_chunks() -> None:
    line = bytes(range(65, 91)) * 200_000

    assert feed_all(LineSplitter(0, len(line)), line + b"\n", 4096) == [line]


def test_the_beginning_of_a_line_that_is_not_whole_can_be_looked_at() -> None:
    splitter = LineSplitter(0, 4)
    splitter.feed(b"one\nab")

    assert (splitter.head(1), splitter.head(9)) == (b"a", b"ab")
    splitter.feed(b"cdef")
    assert splitter.head(9) == b"abcdef"
    assert splitter.held == 6
