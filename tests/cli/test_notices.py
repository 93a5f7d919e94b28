"""What `up`, `run` and long work say while they go on."""

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from exporter.cli.output.notices import Notices, as_mapping, notice_text, ready_text
from exporter.cli.output.output import Output
from exporter.cli.output.progress import progress_text
from exporter.cli.output.table import Palette, TerminalView
from exporter.core.notice import Level, Notice, NoticeName

PLAIN = Palette()
READY: dict[str, Any] = {
    "url": "http://127.0.0.1:8411/",
    "days": 7,
    "sessions": 12,
    "events": 34_120,
    "bytes": 18_200_000,
    "masked": 41,
}


@pytest.fixture(autouse=True)
def _no_handler_is_left() -> Iterator[None]:
    before = list(logging.getLogger().handlers)
    yield
    logging.getLogger().handlers[:] = before


def test_up_says_where_the_page_is_and_that_nothing_leaves() -> None:
    assert ready_text(READY, TerminalView()).splitlines() == [
        "Mission Control     http://127.0.0.1:8411/",
        "sessions            12 from the last 7 days, 34,120 events (18.2 MB)",
        "secrets redacted    41",
        "leaves the machine  nothing",
        "",
        "Following live. Press Ctrl-C to stop; the next start continues here and nothing is lost.",
    ]


def test_up_names_what_leaves_and_what_it_found_and_did_not_use() -> None:
    more = {"leaves": ["https://mc.example.com/agents"], "found_not_used": ["COPILOT_MC_BASE_URL", "OTEL_SERVICE_NAME"]}

    shown = ready_text(READY | more, TerminalView())

    assert "leaves the machine  redacted events to https://mc.example.com/agents" in shown
    assert "found, not used     COPILOT_MC_BASE_URL and OTEL_SERVICE_NAME" in shown


def test_up_without_a_session_offers_the_demo() -> None:
    assert "exporter up --demo" in ready_text({"url": "http://127.0.0.1:8411/"}, TerminalView())


def test_up_beside_an_exporter_that_does_not_tell_its_numbers_shows_none() -> None:
    assert ready_text({"url": "http://127.0.0.1:8411/", "attached": True}, TerminalView()).splitlines() == [
        "Mission Control  http://127.0.0.1:8411/",
        "",
        "An exporter is already running; this is its page.",
    ]


def test_a_notice_of_the_core_is_one_line() -> None:
    notice = Notice(
        NoticeName.SINK_WAITING, Level.WARNING, "sink does not answer", sink="mission_control", fields={"retries": 3}
    )

    assert notice_text(as_mapping(notice), PLAIN) == "warning: sink does not answer · sink mission_control, retries 3"


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            {
                "sessions": 12,
                "sessions_done": 3,
                "events": 900,
                "bytes": 2_000_000,
                "bytes_total": 8_000_000,
                "masked": 1,
            },
            "3 of 12 sessions, 900 events, 2.0 MB of 8.0 MB, 1.0 MB/s, 6 s left, 1 secret redacted",
        ),
        ({"sessions": 2, "sessions_done": 1, "events": 118}, "1 of 2 sessions, 118 events"),
    ],
)
def test_progress_says_how_far_how_fast_and_how_long(report: dict[str, Any], said: str) -> None:
    assert progress_text(report, 2.0) == said


STARTED = Notice(NoticeName.STARTED, Level.INFO, "started", fields={"sessions": 12})
LOST = Notice(NoticeName.DEFECT, Level.ERROR, "data lost", session="3f2a")


def said(output: Output, level: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    with closing(Notices(output, level=level)) as notices:
        notices(STARTED)
        notices(LOST)
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_notices_are_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(Output(as_json=False, quiet=False, color=True), "info", capsys)

    assert out == ""
    assert [line.partition(" ")[2] for line in err.splitlines()] == [
        "started · sessions 12",
        "error: data lost · session 3f2a",
    ]


@pytest.mark.parametrize(("quiet", "level"), [(True, "info"), (False, "warning"), (True, "debug")])
def test_what_needs_an_operator_is_said_whatever_is_left_out(
    quiet: bool, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err = said(Output(as_json=False, quiet=quiet, color=True), level, capsys)

    assert "started" not in err
    assert "data lost" in err


def test_with_json_notices_are_lines_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(Output(as_json=True, quiet=False, color=True), "info", capsys)

    assert err == ""
    assert [json.loads(line) for line in out.splitlines()] == [
        {"event": "started", "message": "started", "level": "info", "sessions": 12},
        {"event": "defect", "message": "data lost", "level": "error", "session": "3f2a"},
    ]


def test_a_log_in_json_is_one_document_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=False, quiet=False, color=True)
    output.log_as_json()

    _, err = said(output, "info", capsys)

    lines = [json.loads(line) for line in err.splitlines()]
    assert [list(line)[:4] for line in lines] == [["time", "level", "event", "message"]] * 2
    assert [(line["level"], line["event"]) for line in lines] == [("info", "started"), ("error", "defect")]
    assert (lines[0]["sessions"], lines[1]["session"]) == (12, "3f2a")
    assert datetime.fromisoformat(lines[0]["time"]).tzinfo is UTC


def test_what_libraries_log_is_a_line_without_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False, quiet=False, color=True).log_as_json()

    logging.getLogger("some.library").warning("cannot read %s", "the content of an event")

    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["logger"], line["message"]) == ("library", "some.library", "cannot read %s")
