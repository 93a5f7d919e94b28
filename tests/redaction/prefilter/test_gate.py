"""The two engines behind the gate say the same, and compiled rules are kept only where nobody else can write."""

import os
import random
import re
import stat
from pathlib import Path

import pytest

from redaction.errors import TooManyHitsError
from redaction.prefilter.gate import EngineName, make_gate

ENGINES: tuple[EngineName, ...] = ("hyperscan", "re")
EXPRESSIONS = [
    b"ab[0-9]{3}",
    rb"(?i:pass)[\w-]{0,8}[=:][^\s]{4}",
    rb"\\{1,15}[nr]x",
    rb"[^\n]{0,4}q[0-9a-f]{8}",
]


@pytest.mark.parametrize("seed", range(20))
def test_all_engines_find_the_same_first_ends(seed: int) -> None:
    chooser = random.Random(seed)
    line = "".join(
        chooser.choice(["ab", "1", "23", "pAss", "=", ":", "\\n", "x", "q", "0f", "é", " ", "\n"]) for _ in range(400)
    )
    data = line.encode()
    ends = {
        name: {
            number: {to for owner, to in make_gate(EXPRESSIONS, engine=name).hits(data) if owner == number}
            for number in range(4)
        }
        for name in ENGINES
    }

    for number, expression in enumerate(EXPRESSIONS):
        assert ends["re"][number] <= ends["hyperscan"][number]
        for to in ends["hyperscan"][number]:
            assert re.search(b"(?:%b)\\Z" % expression, data[:to])


@pytest.mark.parametrize("engine", ENGINES)
def test_literals_are_plain_texts(engine: EngineName) -> None:
    gate = make_gate([b"a.b", b"(c"], engine=engine, literal=True)

    assert sorted(gate.hits(b"axb a.b (c")) == [(0, 7), (1, 10)]


@pytest.mark.parametrize("engine", ENGINES)
def test_more_hits_than_anybody_can_look_at_are_refused(engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redaction.prefilter.gate.HITS_MAX", 100)

    with pytest.raises(TooManyHitsError):
        make_gate([b"a"], engine=engine).hits(b"a" * 1000)


def test_compiled_rules_are_kept_for_this_user_only_and_used_again(tmp_path: Path) -> None:
    directory = tmp_path / "cache"
    make_gate(EXPRESSIONS, cache_dir=directory)
    (kept,) = directory.iterdir()

    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    before = kept.stat().st_mtime_ns
    assert make_gate(EXPRESSIONS, cache_dir=directory).hits(b"ab123") == [(0, 5)]
    assert kept.stat().st_mtime_ns == before


@pytest.mark.parametrize("fault", ["flipped", "empty", "cut", "writable", "directory", "link"])
def test_a_kept_file_that_is_not_ours_is_compiled_anew(tmp_path: Path, fault: str) -> None:
    directory = tmp_path / "cache"
    make_gate(EXPRESSIONS, cache_dir=directory)
    (kept,) = directory.iterdir()
    content = kept.read_bytes()
    if fault == "flipped":
        kept.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif fault == "empty":
        kept.write_bytes(b"")
    elif fault == "cut":
        kept.write_bytes(content[: len(content) // 2])
    elif fault == "writable":
        kept.chmod(0o666)
    elif fault == "directory":
        directory.chmod(0o777)
    else:
        kept.rename(tmp_path / "elsewhere")
        kept.symlink_to(tmp_path / "elsewhere")

    assert make_gate(EXPRESSIONS, cache_dir=directory).hits(b"ab123") == [(0, 5)]
    if fault in ("flipped", "empty", "cut"):
        assert kept.read_bytes() == content


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user to make the file")
def test_a_kept_file_of_another_user_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "cache"
    make_gate(EXPRESSIONS, cache_dir=directory)
    (kept,) = directory.iterdir()
    os.chown(kept, 12345, 12345)
    monkeypatch.setattr("hyperscan.loadb", lambda *_: pytest.fail("it was loaded"))

    assert make_gate(EXPRESSIONS, cache_dir=directory).hits(b"ab123") == [(0, 5)]


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    assert make_gate(EXPRESSIONS, cache_dir=tmp_path / "file" / "cache").hits(b"ab123") == [(0, 5)]


def test_counts_above_a_thousand_are_matched() -> None:
    expressions = [b"a{3}", rb"x[0-9]{2,1200}\.y", b"b{3}"]

    for engine in ENGINES:
        hits = {(number, to) for number, to in make_gate(expressions, engine=engine).hits(b"aaa x12.y bbb")}
        assert hits == {(0, 3), (1, 9), (2, 13)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("line", [b"", b"good day", b"\xff\x00\n"])
def test_a_line_with_nothing_has_no_hits(engine: EngineName, line: bytes) -> None:
    assert list(make_gate(EXPRESSIONS, engine=engine).hits(line)) == []
