"""An archive behind a running exporter: when events are written, what is hidden, and what a fault leaves."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zstandard

from config.settings import Archive, MissionControl, Settings
from exporter.core.events.redaction import Masked
from exporter.errors import Exit, UsageError
from exporter.pipeline.redactors import Redactors
from exporter.sinks.archive.sink import directory_of
from tests.daemon.peer import Peer
from tests.daemon.sessions import SessionFile, event
from tests.daemon.station import Exporter, Station, never, until

pytestmark = pytest.mark.anyio

SOON: float = 0.3
NEVER: float = 3_600.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def archiving(station: Station, root: Path, **changes: Any) -> Settings:
    """Settings with one archive; `seal_seconds` and `seal_bytes` are of it, the others of the settings."""
    one = {"seal_seconds": SOON} | {key: changes.pop(key) for key in list(changes) if key.startswith("seal_")}
    return station.settings({}, archive={"default": Archive(url=root.as_uri(), **one)}, **changes)


def manifest(root: Path, session: str = "s") -> dict[str, Any]:
    path = root / directory_of(session) / "manifest.json"
    found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {"segments": [], "hidden": []}
    return found


def held(root: Path, session: str = "s") -> dict[str, bytes]:
    """What an archive holds of a session, read as docs/archive.md says and with nothing of the program."""
    found: dict[str, bytes] = {}
    told = manifest(root, session)
    for segment in told["segments"]:
        packed = (root / directory_of(session) / f"{segment['object']}.jsonl.zst").read_bytes()
        for line in zstandard.ZstdDecompressor().decompress(packed).splitlines():
            identity = json.loads(line)["id"]
            found.pop(identity, None)
            found[identity] = line
    return {identity: line for identity, line in found.items() if identity not in told["hidden"]}


def objects(root: Path, session: str = "s") -> list[Path]:
    return sorted((root / directory_of(session)).glob("*.zst"))


def everything(root: Path) -> list[Path]:
    return [root, *root.rglob("*")]


def written(root: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file with its time and content."""
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in everything(root) if path.is_file()}


def move(path: Path, name: str) -> None:
    path.rename(path.with_name(name))


def block(path: Path) -> None:
    path.write_text("in the way")


def unblock(path: Path) -> None:
    path.unlink()


def expected(session: SessionFile) -> dict[str, bytes]:
    return {json.loads(line)["id"]: line for line in session.lines()}


async def verified(exporter: Exporter, **options: Any) -> tuple[int, dict[str, Any]]:
    result = await exporter.ask("verify", all=True, **options)
    [row] = [one for one in result["sessions"] if one["sink"].startswith("archive")]
    return result["exit"], row


async def archived(station: Station, root: Path, count: int = 20, **changes: Any) -> tuple[SessionFile, Exporter]:
    session = station.session()
    session.add(count)
    exporter = station.exporter(archiving(station, root, **changes))
    assert await exporter.idle() == Exit.DONE
    return session, exporter


# ---- when a segment is sealed -------------------------------------------------------------------------------


async def test_what_is_over_is_one_object_with_exactly_the_files_bytes(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)

    assert held(root) == expected(session)
    assert len(objects(root)) == 1
    assert (await verified(exporter))[0] == Exit.DONE
    assert await exporter.differences() == []


async def test_events_gather_until_none_came_for_a_while(station: Station, root: Path) -> None:
    session = station.session()
    exporter = station.exporter(archiving(station, root, seal_seconds=1.0))
    for _ in range(6):
        session.add(2)
        await never(lambda: objects(root), 0.3)

    await until(lambda: held(root) == expected(session))
    await exporter.idle()

    assert len(objects(root)) == 1
    status = await exporter.sink_status("archive")
    assert (status["state"], status["lag_events"]) == ("ok", 0)


async def test_events_are_sealed_when_there_are_enough_of_them(station: Station, root: Path) -> None:
    session = station.session()
    exporter = station.exporter(archiving(station, root, seal_seconds=NEVER, seal_bytes=65_536))
    session.add(50, size=2_000)
    await until(lambda: len(objects(root)) == 1)
    await never(lambda: len(objects(root)) > 1, 0.5)

    [segment] = manifest(root)["segments"]
    assert 60_000 < segment["size"] <= 65_536
    assert (segment["first"], segment["events"]) == ("e0", len(segment["ids"]))
    lag = (await exporter.sink_status("archive"))["lag_events"]
    assert lag == 50 - segment["events"] > 0

    session.add(50, size=2_000)
    await until(lambda: len(manifest(root)["segments"]) == 3)
    assert list(held(root)) == [f"e{number}" for number in range(len(held(root)))]
    assert 50 < len(held(root)) < 100


async def test_the_end_of_a_session_seals_it(station: Station, root: Path) -> None:
    session = station.session()
    station.exporter(archiving(station, root, seal_seconds=NEVER))
    session.add(3)
    await never(lambda: objects(root), 0.5)

    session.append(event("end").replace(b'"tool.x"', b'"session.shutdown"'))

    await until(lambda: held(root) == expected(session))


async def test_a_backfill_and_until_idle_seal_at_the_end_of_what_was_asked_for(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root, seal_seconds=NEVER)
    assert held(root) == expected(session)
    session.add(5)
    await never(lambda: len(objects(root)) > 1, 0.3)

    answer = await exporter.ask("backfill", sessions=["s"])

    assert (answer["exit"], answer["sessions"][0]["events"]) == (Exit.DONE, 5)
    assert held(root) == expected(session)
    session.add(1)
    await never(lambda: len(objects(root)) > 2, 0.5)


async def test_other_sinks_do_not_wait_while_events_gather(station: Station, root: Path, full: Peer) -> None:
    session = station.session()
    both = {"mission_control": {"default": MissionControl(url=full.url)}}
    station.exporter(archiving(station, root, seal_seconds=NEVER, **both))
    session.add(1_200)

    await until(lambda: len(full.ids()) == 1_200)

    assert not objects(root)


async def test_a_restart_writes_nothing_again(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    before = written(root)
    await exporter.stop()

    again = station.exporter(archiving(station, root))
    await again.idle()

    assert written(root) == before
    assert (await verified(again))[0] == Exit.DONE
    assert held(root) == expected(session)


# ---- rewinds, rewrites, lost state --------------------------------------------------------------------------


async def test_what_is_rewound_is_hidden_and_its_object_stays(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    before = objects(root)

    session.replace(*session.lines()[:7], event("new"))
    await until(lambda: held(root) == expected(session))

    assert manifest(root)["hidden"] == sorted(f"e{number}" for number in range(7, 20))
    assert set(before) < set(objects(root))
    await exporter.idle()
    assert await exporter.differences() == []


async def test_what_comes_back_after_a_rewind_counts_again(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    whole = session.lines()
    session.replace(*whole[:7])
    await until(lambda: len(held(root)) == 7)

    session.replace(*whole[:7], event("e7", text="another"), *whole[8:])
    await until(lambda: held(root) == expected(session))

    assert manifest(root)["hidden"] == []
    assert await exporter.idle() == Exit.DONE
    assert await exporter.differences() == []


async def test_a_lost_state_directory_is_rebuilt_by_asking_the_archive(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    await exporter.stop()
    before = objects(root)
    (station.state / "marks.db").unlink()

    session.add(2)
    again = station.exporter(archiving(station, root))
    assert await again.idle() == Exit.DONE

    assert held(root) == expected(session)
    assert len(objects(root)) == len(before) + 1
    assert objects(root)[0].exists() and manifest(root)["segments"][1]["events"] == 2


async def test_an_archive_that_is_another_than_before_gets_every_session(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    other = station.session("other")
    other.add(3)
    await exporter.idle()
    await exporter.stop()
    move(root, "unmounted")

    again = station.exporter(archiving(station, root))
    session.add(1)
    await until(lambda: len(held(root)) == 21 and len(held(root, "other")) == 3)

    assert any("another store" in one.message for one in again.notices)


async def test_another_directory_is_noticed_in_the_middle_of_a_run(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    station.session("other").add(3)
    await until(lambda: len(held(root, "other")) == 3)
    await exporter.idle()
    move(root, "unmounted")

    session.add(1)
    await until(lambda: held(root) == expected(session))

    await until(lambda: len(held(root, "other")) == 3)


async def test_what_was_written_without_the_disk_is_written_to_it_when_it_is_back(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    other = station.session("other")
    other.add(3)
    await until(lambda: len(held(root, "other")) == 3)
    await exporter.idle()
    move(root, "unmounted")
    session.add(1)
    other.add(1)
    await until(lambda: held(root) == expected(session) and held(root, "other") == expected(other))
    await exporter.idle()
    await exporter.stop()
    move(root, "mount point")
    move(root.with_name("unmounted"), root.name)

    station.exporter(archiving(station, root))

    await until(lambda: held(root) == expected(session) and held(root, "other") == expected(other))


async def test_what_gathers_is_written_although_its_file_is_deleted(station: Station, root: Path) -> None:
    session = station.session()
    exporter = station.exporter(archiving(station, root, seal_seconds=1.0))
    session.add(5)
    await until(lambda: "s" in (lanes := exporter.running.daemon.runs[0].lanes) and lanes["s"].gathers)
    lines = expected(session)

    session.path.unlink()

    await until(lambda: held(root) == lines)


# ---- what is written ----------------------------------------------------------------------------------------


async def test_everything_is_private_and_named_by_its_content(station: Station, root: Path) -> None:
    await archived(station, root)

    for path in everything(root):
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    for path in objects(root):
        assert path.name == f"{sha256(path.read_bytes()).hexdigest()}.jsonl.zst"
    assert not list((root / ".partial").iterdir())


async def test_no_secret_is_in_any_file(station: Station, root: Path) -> None:
    secret = b"hunter2-hunter2"

    def redact(line: bytes, /) -> bytes | Masked:
        return Masked(line.replace(secret, b"[REDACTED]"), ("planted",)) if secret in line else line

    session = station.session()
    session.append(event("a", text=secret.decode()), event("b"))
    exporter = station.exporter(archiving(station, root), redaction=Redactors(redact, lambda text: text))
    assert await exporter.idle() == Exit.DONE

    assert b"[REDACTED]" in held(root)["a"]
    files = [data for _, data in written(root).values()]
    unpacked = [zstandard.ZstdDecompressor().decompress(one.read_bytes()) for one in objects(root)]
    assert unpacked and not any(secret in data for data in [*unpacked, *files])


# ---- faults -------------------------------------------------------------------------------------------------


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, call: str, number: int, below: Path) -> Iterator[Callable[[], int]]:
    """Let a call of the system fail for files below a directory; yields how often it did."""
    name, _, of_directory = call.partition(" of a ")
    module = Path if name == "replace" else os
    real, failed = getattr(module, name), [0]

    def fails(first: Any, *rest: Any, **named: Any) -> Any:
        path = str(Path(f"/proc/self/fd/{first}").readlink()) if isinstance(first, int) else str(first)
        if path.startswith(str(below)) and (not of_directory or Path(path).is_dir()):
            failed[0] += 1
            raise OSError(number, os.strerror(number))
        return real(first, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(module, name, fails)
        yield lambda: failed[0]


@pytest.mark.parametrize("call", ["open", "write", "fsync", "fsync of a directory", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
async def test_a_fault_at_any_step_waits_with_its_reason_and_loses_nothing(
    station: Station, root: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    session, exporter = await archived(station, root)
    with failing(monkeypatch, call, number, root) as failures:
        session.add(3)
        await until(lambda: failures() > 1)
        status = await exporter.sink_status("archive")

        assert status["state"] == "waiting"
        assert os.strerror(number) in status["last_error"]
        assert (status["lag_events"], len(held(root))) == (3, 20)

    await until(lambda: held(root) == expected(session))
    assert await exporter.idle() == Exit.DONE
    assert await exporter.differences() == []


async def test_a_directory_that_cannot_be_made_waits_until_it_can(station: Station, root: Path) -> None:
    block(root)
    session = station.session()
    session.add(3)
    exporter = station.exporter(archiving(station, root, give_up_seconds=0.5))

    assert await exporter.idle() == Exit.UNREACHABLE
    unblock(root)
    await until(lambda: held(root) == expected(session))


class _Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["object", "manifest", "mark"])
async def test_a_crash_between_the_steps_is_done_again_without_harm(
    station: Station, root: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    session = station.session()
    session.add(5)
    doomed = station.exporter(archiving(station, root))
    sink = doomed.running.daemon.runs[0].sink_state.sink
    store, real = sink._objects, sink._objects.put  # type: ignore[attr-defined]

    def put(key: str, data: bytes) -> None:
        before = key.endswith(".zst") if step == "object" else key.endswith("manifest.json")
        if before and step != "mark":
            raise _Crash
        real(key, data)
        if before:
            raise _Crash

    monkeypatch.setattr(store, "put", put)
    await until(lambda: any(task.done() for task in doomed.running.daemon.runs[0]._workers))
    await doomed.crash()
    monkeypatch.undo()
    session.add(2)

    again = station.exporter(archiving(station, root))
    assert await again.idle() == Exit.DONE

    assert held(root) == expected(session)
    assert await again.differences() == []


# ---- verify -------------------------------------------------------------------------------------------------


def _gone(root: Path) -> str:
    [path] = objects(root)
    path.unlink()
    return f"object {path.name.partition('.')[0]} is missing"


def _cut(root: Path) -> str:
    [path] = objects(root)
    path.write_bytes(path.read_bytes()[:-3])
    return f"object {path.name.partition('.')[0]} has other bytes than were written"


def _flipped(root: Path) -> str:
    [path] = objects(root)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    return "has other bytes than were written"


def _forged(root: Path) -> str:
    """Another event under a name that fits, in a manifest that agrees with itself but for that event's hash."""
    [path] = objects(root)
    content = zstandard.ZstdDecompressor().decompress(path.read_bytes()).replace(b'"e3"', b'"eX"')
    packed = zstandard.ZstdCompressor().compress(content)
    path.with_name(f"{sha256(packed).hexdigest()}.jsonl.zst").write_bytes(packed)
    file = root / directory_of("s") / "manifest.json"
    file.write_text(file.read_text().replace(path.name.partition(".")[0], sha256(packed).hexdigest()))
    path.unlink()
    return "does not hold e3 as the manifest says"


def _manifest_gone(root: Path) -> str:
    (root / directory_of("s") / "manifest.json").unlink()
    return "the manifest is missing"


def _manifest_torn(root: Path) -> str:
    path = root / directory_of("s") / "manifest.json"
    path.write_bytes(path.read_bytes()[:200])
    return "the manifest cannot be read"


def _manifest_changed(root: Path) -> str:
    path = root / directory_of("s") / "manifest.json"
    path.write_text(path.read_text().replace('"e3"', '"eX"'))
    return "the manifest and its digest do not agree"


@pytest.mark.parametrize("damage", [_gone, _cut, _flipped, _forged, _manifest_gone, _manifest_torn, _manifest_changed])
async def test_what_is_damaged_is_named_and_sent_again_by_a_repair(
    station: Station, root: Path, damage: Callable[[Path], str]
) -> None:
    session, exporter = await archived(station, root)
    named = damage(root)

    ended, row = await verified(exporter)
    looked = written(root)
    assert (ended, row["verdict"]) == (Exit.FINDINGS, "different")
    assert named in row["detail"]
    assert len(row["missing"]) == 20
    assert written(root) == looked

    ended, row = await verified(exporter, repair=True)
    assert (ended, row["equal"], row["receiver"]) == (Exit.DONE, True, 20)
    assert held(root) == expected(session)


async def test_an_object_that_cannot_be_read_now_stays_in_the_manifest(station: Station, root: Path) -> None:
    """A read error may pass; of a journal whose front is gone nothing could be sent again."""
    session, exporter = await archived(station, root)
    [path] = (root / directory_of("s")).glob("*.zst")
    manifest = path.with_name("manifest.json").read_bytes()
    kept = path.rename(path.with_name("kept"))
    path.mkdir()  # reading it is an error, and not "there is no such object"

    ended, row = await verified(exporter, repair=True)
    assert ended == Exit.FINDINGS
    assert path.name.partition(".")[0] in row["detail"]
    assert path.with_name("manifest.json").read_bytes() == manifest

    path.rmdir()
    kept.rename(path)
    ended, row = await verified(exporter)
    assert (ended, row["equal"]) == (Exit.DONE, True)
    assert held(root) == expected(session)


async def test_a_damaged_object_of_hidden_events_alone_is_a_difference_too(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    lines = session.lines()
    session.add(3)
    await until(lambda: len(held(root)) == 23)
    session.replace(*lines)
    await until(lambda: len(held(root)) == 20)
    second = manifest(root)["segments"][1]["object"]
    (root / directory_of("s") / f"{second}.jsonl.zst").unlink()

    ended, row = await verified(exporter)

    assert (ended, row["missing"]) == (Exit.FINDINGS, [])
    assert f"object {second} is missing" in row["detail"]


async def test_verify_beside_a_running_exporter_writes_first_what_gathers(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root, seal_seconds=NEVER)
    session.add(4)
    await until(lambda: exporter.running.daemon.runs[0].lanes["s"].gathers)

    ended, row = await verified(exporter)

    assert (ended, row["equal"], row["receiver"]) == (Exit.DONE, True, 24)
    assert held(root) == expected(session)


async def test_verify_asks_nobody_but_the_files(station: Station, root: Path) -> None:
    _, exporter = await archived(station, root)
    await exporter.stop()

    asked = Exporter(archiving(station, root))
    try:
        asked.running.daemon.start(deliver=False)
        assert (await verified(asked))[1]["detail"] is None
    finally:
        await asked.stop()


async def test_events_that_only_the_archive_has_are_named_and_hidden_by_a_repair(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    sink = exporter.running.daemon.runs[0].sink_state.sink
    await sink.send("s", ["stranger"], [event("stranger")])

    ended, row = await verified(exporter)
    repaired, after = await verified(exporter, repair=True)

    assert (ended, row["extra"]) == (Exit.FINDINGS, ["stranger"])
    assert (repaired, after["equal"]) == (Exit.DONE, True)
    assert held(root) == expected(session)


async def test_objects_without_a_manifest_are_a_note_and_no_difference(station: Station, root: Path) -> None:
    await archived(station, root)
    (root / directory_of("s") / f"{'0' * 64}.jsonl.zst").write_bytes(b"left by a crash")
    exporter = station.exporters[0]

    ended, row = await verified(exporter)

    assert ended == Exit.DONE
    assert row["detail"] == "1 object that the manifest does not name"


# ---- forgetting ---------------------------------------------------------------------------------------------


async def test_a_forgotten_session_is_gone_and_stays_gone(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)

    answer = await exporter.ask("archive_forget", session="s")
    session.add(2)
    await never(lambda: objects(root), 1.0)
    await exporter.stop()
    (station.state / "marks.db").unlink()
    again = station.exporter(archiving(station, root))
    await again.idle()

    assert answer == {"session": "s", "archives": [{"sink": "archive", "deleted": 2, "why": None}], "exit": 0}
    assert [path.name for path in (root / directory_of("s")).iterdir()] == ["forgotten.json"]
    assert (await verified(again))[1]["verdict"] == "deleted there"


async def test_a_forgotten_session_comes_back_only_from_its_start(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    await exporter.ask("archive_forget", session="s")

    await exporter.ask("backfill", sessions=["s"])
    assert not objects(root)
    answer = await exporter.ask("backfill", sessions=["s"], from_start=True)

    assert answer["exit"] == Exit.DONE
    assert held(root) == expected(session)
    assert await exporter.differences() == []


async def test_a_session_whose_file_is_gone_can_be_forgotten(station: Station, root: Path) -> None:
    session, exporter = await archived(station, root)
    session.path.unlink()
    session.directory.rmdir()
    await exporter.stop()

    again = station.exporter(archiving(station, root))
    answer = await again.ask("archive_forget", session="s")

    assert answer["archives"][0]["deleted"] == 2


async def test_what_no_archive_has_cannot_be_forgotten(station: Station, root: Path) -> None:
    _, exporter = await archived(station, root)

    with pytest.raises(UsageError, match="no archive has a session other"):
        await exporter.ask("archive_forget", session="other")
    assert not (root / directory_of("other")).exists()
