"""What the doctor says of archives."""

import asyncio
import errno
import os
import shutil
from pathlib import Path

import pytest

from exporter.doctor.sinks import ArchiveProbe


def test_an_archive_that_is_not_there_yet_is_well_and_stays_away(tmp_path: Path) -> None:
    [check] = asyncio.run(ArchiveProbe("archive", tmp_path / "a" / "b").probe()).checks

    assert (check.verdict, "made when it is needed" in check.detail, "free" in check.detail) == ("ok", True, True)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_is_looked_at_without_a_trace(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    [private] = asyncio.run(ArchiveProbe("archive", tmp_path).probe()).checks
    tmp_path.chmod(0o755)
    [opened] = asyncio.run(ArchiveProbe("archive", tmp_path).probe()).checks

    assert (private.verdict, opened.verdict, "mode 755" in opened.detail) == ("ok", "note", True)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_cannot_be_written_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (tmp_path / "file").write_text("")
    [no_directory] = asyncio.run(ArchiveProbe("archive", tmp_path / "file").probe()).checks
    monkeypatch.setattr(os, "open", refuse)
    [read_only] = asyncio.run(ArchiveProbe("archive", tmp_path).probe()).checks

    assert (no_directory.verdict, read_only.verdict) == ("failed", "failed")
    assert "Read-only file system" in read_only.detail


def test_an_archive_with_little_room_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))

    [check] = asyncio.run(ArchiveProbe("archive", tmp_path).probe()).checks

    assert (check.verdict, "1.0 MiB free" in check.detail) == ("warning", True)
