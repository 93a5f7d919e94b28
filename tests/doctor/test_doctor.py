"""The doctor as a whole, and its bundle."""

import asyncio
import json
import sqlite3
import stat
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.doctor.check import Check, attempt, shown_url
from exporter.doctor.doctor import doctor
from exporter.doctor.facts import Facts
from exporter.doctor.sinks import MissionControlProbe, OtlpProbe
from tests.doctor.machines import contents, event, examined, record, state_dir


def test_a_machine_in_order_has_no_warning_and_keeps_every_file(facts: Facts, tmp_path: Path) -> None:
    record(facts, event("session.start", copilotVersion="1.0.102"))
    before = contents(tmp_path)

    checks = examined(facts, schema=True)

    assert {name: check for name, check in checks.items() if check["verdict"] not in ("ok", "note")} == {}
    assert {"exporter", "sessions", "Copilot CLI", "event types", "marks", "quarantine", "daemon"} <= checks.keys()
    assert contents(tmp_path) == before
    assert not facts.state_dir.exists()


def test_event_types_are_read_only_when_asked_for(facts: Facts) -> None:
    assert "event types" not in examined(facts)


def test_everything_broken_at_once_is_told_and_nothing_raises(facts: Facts, tmp_path: Path) -> None:
    directory = state_dir(facts)
    directory.chmod(0o777)
    (directory / "marks.db").write_bytes(b"rubbish" * 1_000)
    with closing(sqlite3.connect(directory / "quarantine.db")) as other:
        other.execute("CREATE TABLE something_else (x)")
    (facts.copilot_home / "session-state").rmdir()
    (facts.copilot_home / "session-state").write_bytes(b"")
    broken = replace(
        facts,
        sinks=(MissionControlProbe("mc", "http://127.0.0.1:1", "t\u00e9"), OtlpProbe("otel", "http://127.0.0.1:1")),
    )

    checks = examined(broken, schema=True)

    failed = {name for name, check in checks.items() if check["verdict"] == "failed"}
    assert {"marks", "quarantine", "sessions", "mc", "otel"} <= failed
    assert all(checks[name]["remedy"] for name in failed)


def test_a_check_that_breaks_is_a_failed_check() -> None:
    def look() -> Iterator[Check]:
        yield from ()
        raise ValueError("as nobody thought of")

    [check] = attempt("something", look)

    assert (check.name, check.verdict) == ("something", "failed")
    assert "ValueError: as nobody thought of" in check.detail


def test_a_bundle_holds_no_secret_no_content_and_no_home(facts: Facts, tmp_path: Path) -> None:
    record(facts, event("session.start", copilotVersion="1.0.102"), event("user.message", content="a private text"))
    told = replace(
        facts,
        rows=(("state_dir", f'"{tmp_path}/state"', "default"), ("cache_dir", f'"{tmp_path}2/x"', "default")),
        status={"daemon": {"running": True, "pid": 1}, "sinks": [{"last_error": "hunter2 was refused", "lag": 0.5}]},
        mask=lambda text: text.replace("hunter2", "[masked]"),
    )
    bundle = tmp_path / "report.zip"

    answer = asyncio.run(doctor(told, schema=True, bundle=bundle))

    with zipfile.ZipFile(bundle) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert answer["bundle"] == str(bundle)
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600 or sys.platform == "win32"
    assert json.loads(parts["settings.json"])[0] == {"setting": "state_dir", "value": '"~/state"', "origin": "default"}
    assert json.loads(parts["settings.json"])[1]["value"] == f'"{tmp_path}2/x"'
    assert json.loads(parts["status.json"])["sinks"] == [{"last_error": "[masked] was refused", "lag": 0.5}]
    assert {check["name"] for check in json.loads(parts["checks.json"])} >= {"exporter", "python", "event types"}
    everything = "".join(parts.values())
    assert "a private text" not in everything
    assert f"{tmp_path}/" not in everything


def test_a_bundle_never_replaces_a_file(facts: Facts, tmp_path: Path) -> None:
    bundle = tmp_path / "report.zip"
    bundle.write_bytes(b"mine")

    answer = asyncio.run(doctor(facts, bundle=bundle))

    assert answer["bundle"] is None
    assert answer["checks"][-1]["name"] == "bundle"
    assert answer["checks"][-1]["verdict"] == "failed"
    assert bundle.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@mc.example:8443/agents?key=secret", "https://mc.example:8443/agents"),
        ("http://[::1]:8411/agents", "http://[::1]:8411/agents"),
        ("http://[broken", "(not an address)"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown
