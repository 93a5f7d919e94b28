"""What the doctor says of the sessions that it finds, and of the telemetry of the CLI itself."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.doctor import sources
from exporter.doctor.facts import Facts
from exporter.doctor.sinks import OtlpProbe, cli_telemetry
from exporter.sources.event_types import KNOWN
from tests.doctor.machines import event, only, record


def test_sessions_are_counted(facts: Facts) -> None:
    record(facts, event())
    record(facts, event(), session="0d6f0f9c-4f4e-4a51-9d0e-0d7a8a7f0002")

    check = only(sources.copilot_home(facts.copilot_home, sources.find(facts.copilot_home)))

    assert (check.verdict, check.detail.split(" in ")[0]) == ("ok", "2 sessions")


@pytest.mark.parametrize(
    ("spoil", "verdict"),
    [
        (lambda home: (home / "session-state").rmdir(), "note"),
        (lambda home: ((home / "session-state").rmdir(), home.rmdir()), "warning"),
        (lambda home: ((home / "session-state").rmdir(), (home / "session-state").touch()), "failed"),
        (lambda home: None, "note"),
    ],
    ids=["no session-state", "no home", "not a directory", "empty"],
)
def test_sessions_that_are_not_there_are_told(facts: Facts, spoil: Callable[[Path], object], verdict: str) -> None:
    spoil(facts.copilot_home)

    check = only(sources.copilot_home(facts.copilot_home, sources.find(facts.copilot_home)))

    assert check.verdict == verdict
    assert "copilot_home" in check.remedy


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("1.0.48", "ok"), ("1.0.102", "ok"), ("1.0.47", "note"), ("1.0.103", "note"), ("2.0.0", "note"), ("x", "note")],
)
def test_a_version_of_the_cli_that_we_do_not_know_is_a_note(facts: Facts, version: str, verdict: str) -> None:
    record(facts, event("session.start", copilotVersion=version))

    check = only(sources.cli_versions(sources.find(facts.copilot_home)))

    assert check.verdict == verdict
    assert ("unknown" if version == "x" else version) in check.detail


@pytest.mark.parametrize("line", [b"", b"garbage\n", b"\xff\n", event("user.message"), event("session.start")])
def test_a_session_without_a_version_is_a_note(facts: Facts, line: bytes) -> None:
    record(facts, line)

    assert only(sources.cli_versions(sources.find(facts.copilot_home))).detail == "unknown (1 session)"


def test_event_types_outside_our_list_are_counted(facts: Facts) -> None:
    known = [event(name, number) for number, name in enumerate(sorted(KNOWN))]
    strange = [event("model.new_thing", number) for number in range(1_000, 1_003)]
    path = record(facts, *known)

    before = only(sources.event_types(facts, sources.find(facts.copilot_home)))
    path.write_bytes(b"".join([*known, *strange, event("Not A name: hunter2", 2_000)]))
    after = only(sources.event_types(facts, sources.find(facts.copilot_home)))

    assert before.verdict == "ok"
    assert after.verdict == "note"
    assert "model.new_thing ×3, (not a name) ×1" in after.detail  # noqa: RUF001
    assert "hunter2" not in after.detail


@pytest.mark.parametrize(
    ("variables", "verdict"),
    [
        ({}, "ok"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318/"}, "warning"),
        ({"COPILOT_OTEL_ENABLED": "true"}, "warning"),
        ({"COPILOT_OTEL_ENABLED": "false"}, "ok"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:9999"}, "ok"),
        ({"COPILOT_OTEL_ENABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "https://otel.example"}, "ok"),
        ({"COPILOT_OTEL_FILE_EXPORTER_PATH": "otel.jsonl"}, "ok"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[broken"}, "ok"),
    ],
)
def test_telemetry_of_the_cli_to_our_endpoint_counts_twice(
    facts: Facts, variables: dict[str, str], verdict: str
) -> None:
    ours = OtlpProbe("otel", "http://localhost:4318")

    assert only(cli_telemetry(replace(facts, cli_telemetry=variables, sinks=(ours,)))).verdict == verdict
