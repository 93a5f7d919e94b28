"""What is stored is loaded again, unless somebody else could have written it or it is not whole."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redaction.prefilter.cache import load, store


def change(path: Path, at: int) -> None:
    body = bytearray(path.read_bytes())
    body[at] ^= 1
    path.write_bytes(body)


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def test_what_was_stored_last_is_loaded_from_a_directory_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "some" / "where" / "rules.hsdb"

    for body in (b"one", b"another"):
        store(path, body)

    assert load(path) == b"another"
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.chmod(0o620),
        lambda path: path.chmod(0o602),
        lambda path: path.parent.chmod(0o720),
        lambda path: path.parent.chmod(0o702),
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: change(path, 0),
        lambda path: change(path, -1),
        link,
    ],
)
def test_what_another_could_have_written_or_is_not_whole_is_not_loaded(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = tmp_path / "cache" / "rules.hsdb"
    store(path, b"body")

    spoil(path)

    assert load(path) is None


def test_nothing_is_stored_where_another_can_write(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)

    store(folder / "rules.hsdb", b"body")

    assert list(folder.iterdir()) == []


def test_the_latest_eight_of_a_kind_stay(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    store(folder / "tables.msgpack", b"another kind")
    for number in range(10):
        store(folder / f"rules-{number}.hsdb", b"body")
        os.utime(folder / f"rules-{number}.hsdb", (number, number))

    store(folder / "rules-10.hsdb", b"body")

    left = {path.name for path in folder.iterdir()}
    assert left == {"tables.msgpack", *(f"rules-{number}.hsdb" for number in range(3, 11))}


def test_a_file_that_cannot_take_its_place_is_left_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "rules.hsdb"
    (path / "in the way").mkdir(parents=True)
    path.parent.chmod(0o700)

    store(path, b"body")

    assert [one.name for one in path.parent.iterdir()] == ["rules.hsdb"]


def test_an_empty_cache_is_filled_by_a_process_of_its_own_and_a_failure_is_none(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from redaction.prefilter.cache import fill_apart, store\n"
        "directory, me = Path(sys.argv[1]), os.getpid()\n"
        "fill_apart(directory, lambda: 1 / 0)\n"
        "fill_apart(directory, lambda: store(directory / 'a.hsdb', b'apart' if os.getpid() != me else b'here'))\n"
        "fill_apart(directory, lambda: store(directory / 'a.hsdb', b'again'))\n"
    )

    subprocess.run([sys.executable, "-c", program, tmp_path / "cache"], check=True, capture_output=True)

    assert load(tmp_path / "cache" / "a.hsdb") == (b"apart" if sys.platform == "linux" else None)


def test_what_is_to_be_compiled_is_compiled_in_processes_of_its_own_and_loaded_here(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from redaction.prefilter import cache, gate\n"
        "directory, every = Path(sys.argv[1]), [[b'a+b', b'[0-9]{3}'], [b'c.d'], [b'e{2,9}', b'f', b'g']]\n"
        "make = lambda: [gate.make_gate(one, cache_dir=directory) for one in every]\n"
        "cache.fill_apart(directory, make)\n"
        "if sys.platform == 'linux': cache.compiled = None\n"  # whoever compiles here fails
        "print([one.hits(b'aab c-d g') for one in make()], len([*directory.glob('*.hsdb')]))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "cache"], check=True, capture_output=True, text=True
    )

    assert ran.stdout.strip() == "[[(0, 3)], [(0, 7)], [(2, 9)]] 3"
