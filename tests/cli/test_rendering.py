"""What each command makes of an answer for people to read."""

from datetime import UTC, datetime
from typing import Any

from exporter.cli.commands.backfill import backfill_text
from exporter.cli.commands.doctor import doctor_text
from exporter.cli.commands.quarantine import entry_text, outcome_text, quarantine_text
from exporter.cli.commands.sessions import select, session_text, sessions_text
from exporter.cli.commands.status import status_text
from exporter.cli.commands.verify import source_text, verify_text
from exporter.cli.output.table import TerminalView

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
PLAIN = TerminalView(now=NOW)
ONE, TWO = "3f2ab1c0-0000-4000-8000-000000000001", "9c0d11e2-0000-4000-8000-000000000002"

SINK: dict[str, Any] = {
    "name": "local",
    "state": "ok",
    "lag_events": 0,
    "lag_bytes": 0,
    "lag_seconds": 0.0,
    "last_success": "2026-11-18T11:59:59Z",
    "last_error": None,
    "retries": 0,
    "quarantined": 1,
}
DOWN = SINK | {
    "name": "mission_control",
    "state": "unreachable",
    "lag_events": 1204,
    "lag_bytes": 2_140_000,
    "lag_seconds": 38.0,
    "last_success": "2026-11-18T11:57:00Z",
    "last_error": "refused",
    "retries": 12,
    "quarantined": 0,
}
PROBLEM = {"session": ONE, "kind": "malformed_line", "offset": 8812, "count": 3}
STATUS: dict[str, Any] = {
    "daemon": {"running": True, "pid": 4242, "version": "0.1.0", "since": "2026-11-18T11:48:00Z"},
    "sources": [{"name": "files", "sessions": 12, "events_per_second": 3.1, "problems": [PROBLEM]}],
    "sinks": [SINK, DOWN],
}
SESSIONS: list[dict[str, Any]] = [
    {
        "id": ONE,
        "title": "Why the tide table fails at night",
        "state": "needs_attention",
        "repository": "harbour-works/lighthouse",
        "branch": "main",
        "model": "demo-model-1",
        "started": "2026-11-18T09:30:00Z",
        "last_activity": "2026-11-18T11:57:00Z",
        "events": 118,
        "tokens": {
            "input": {"value": 3000, "source": "usage_record"},
            "output": {"value": 150, "source": "usage_record"},
        },
        "masked": 2,
        "host": "laptop",
        "file": "/home/dana/.copilot/session-state/3f/events.jsonl",
        "sinks": [
            {"name": "local", "delivered": 118, "lag_events": 0},
            {"name": "mc", "delivered": 100, "lag_events": 18},
        ],
    },
    {
        "id": TWO,
        "title": None,
        "state": "ended",
        "last_activity": "2026-11-18T11:59:58Z",
        "events": 4,
        "masked": 0,
        "sinks": [],
    },
]


def test_status_tells_daemon_sinks_sources_and_problems() -> None:
    assert status_text(STATUS, PLAIN).splitlines() == [
        "daemon  running · pid 4242 · version 0.1.0 · started 12 min ago",
        "",
        "SINK             STATE        LAG                         LAST SUCCESS  RETRIES  QUARANTINED  LAST ERROR",
        "local            ok           up to date                  just now            0            1",
        "mission_control  unreachable  1,204 events, 2.1 MB, 38 s  3 min ago          12            0  refused",
        "",
        "SOURCE  SESSIONS       READING",
        "files         12  3.1 events/s",
        "",
        "problems",
        f"  malformed line (3 times) in {ONE} at byte 8,812",
    ]


def test_status_says_when_it_estimates_and_when_sums_wait() -> None:
    sinks = [
        DOWN | {"name": "one", "is_estimate": True},
        DOWN | {"name": "two", "sums_wait": True},
        SINK | {"name": "three", "sums_wait": True},
    ]
    shown = status_text(STATUS | {"sinks": sinks}, PLAIN).splitlines()[3:6]

    assert "  about 1,204 events, 2.1 MB, 38 s  " in shown[0]
    assert "  1,204 events, 2.1 MB, metrics, 38 s  " in shown[1]
    assert "  latest metrics pending  " in shown[2]


def test_status_says_up_to_date_only_of_what_was_confirmed() -> None:
    sinks = [
        SINK | {"name": "one", "unconfirmed": 3, "confirmed_at": None},
        SINK | {"name": "two", "unconfirmed": 1, "confirmed_at": "2026-11-18T11:55:00Z"},
        SINK | {"name": "three", "unconfirmed": 0, "confirmed_at": "2026-11-18T11:55:00Z"},
    ]
    shown = [line.split("  ") for line in status_text(STATUS | {"sinks": sinks}, PLAIN).splitlines()[3:6]]

    assert [next(cell.strip() for cell in cells[1:] if cell and cell.strip() != "ok") for cells in shown] == [
        "accepted, not confirmed",
        "accepted, not confirmed (last confirmed 5 min ago)",
        "up to date",
    ]


def test_status_says_that_another_exporter_has_the_same_identity() -> None:
    shown = status_text(STATUS | {"sinks": [SINK | {"copies": 1}]}, PLAIN)

    assert "identity  also that of 1 other exporter that runs: was the state directory copied?" in shown


def test_status_names_the_places_of_defects() -> None:
    daemon = STATUS["daemon"] | {"defects": {"traces.py:88": 3, "logs.py:7": 1}}
    shown = status_text(STATUS | {"daemon": daemon}, PLAIN).splitlines()

    assert shown[1] == (
        "defects  telemetry of some events is incomplete; please report logs.py:7 (1 time), traces.py:88 (3 times)"
    )


def test_status_without_a_daemon_says_how_to_start_one() -> None:
    shown = status_text({"daemon": {"running": False}, "sources": [], "sinks": []}, TerminalView(80, now=NOW))

    assert shown == "daemon  not running · start it with: exporter run"


def test_status_fits_a_narrow_terminal_and_keeps_the_state() -> None:
    shown = status_text(STATUS, TerminalView(60, now=NOW))

    assert max(len(line) for line in shown.split("problems")[0].splitlines() if "daemon" not in line) <= 60
    assert "unreachable  1,204 events" in shown


def test_sessions_are_listed_with_short_ids_and_states_in_words() -> None:
    shown = sessions_text(SESSIONS, {ONE: "3f2ab1c0", TWO: "9c0d11e2"}, PLAIN)

    assert shown.splitlines() == [
        "ID        STATE            LAST ACTIVITY  EVENTS  REDACTED  REPOSITORY                BRANCH  "
        "TITLE                              SINKS",
        "3f2ab1c0  needs attention  3 min ago         118         2  harbour-works/lighthouse  main    "
        "Why the tide table fails at night  mc 18 pending",
        "9c0d11e2  ended            just now            4",
    ]


def test_what_all_sessions_have_alike_is_said_once_below_the_list() -> None:
    alike = [{**one, "state": "ended", "repository": "harbour-works/lighthouse", "branch": None} for one in SESSIONS]

    shown = sessions_text(alike, {ONE: "3f2ab1c0", TWO: "9c0d11e2"}, PLAIN).splitlines()

    assert [word for word in ("STATE", "REPOSITORY", "BRANCH", "EVENTS") if word in shown[0]] == ["EVENTS"]
    assert shown[-1] == "the same for all: state ended, repository harbour-works/lighthouse"


def test_one_session_alone_has_every_column() -> None:
    shown = sessions_text(SESSIONS[:1], {ONE: "3f2ab1c0"}, PLAIN)

    assert "STATE" in shown
    assert "the same for all" not in shown


def test_sessions_are_chosen_by_state_and_time_the_latest_first() -> None:
    every = select(SESSIONS, since=None, state=None)

    assert [session["id"] for session in every] == [TWO, ONE]
    assert [session["id"] for session in select(SESSIONS, since=None, state="needs_attention")] == [ONE]
    assert [s["id"] for s in select(SESSIONS, since=datetime(2026, 11, 18, 11, 58, tzinfo=UTC), state=None)] == [TWO]


def test_no_session_is_explained() -> None:
    assert "appears after its first message is sent" in sessions_text([], {}, TerminalView(80, now=NOW))


def test_a_session_is_shown_with_everything_known_of_it() -> None:
    shown = session_text(SESSIONS[0], PLAIN)

    assert f"session           {ONE}" in shown
    assert "started           2 h 30 min ago (2026-11-18 09:30)" in shown
    assert "tokens            3,000 input, 150 output" in shown
    assert "sink local        118 delivered, up to date" in shown
    assert "sink mc           100 delivered, 18 events pending" in shown


def test_what_a_session_says_of_itself_cannot_steer_the_terminal() -> None:
    hostile = SESSIONS[0] | {"title": "\x1b[2Jgone\nforged line", "repository": "a\x07b"}

    shown = sessions_text([hostile], {ONE: ONE}, PLAIN) + session_text(hostile, PLAIN)

    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "gone forged line" in shown


BACKFILL: list[dict[str, Any]] = [
    {"session": ONE, "sink": "local", "events": 118, "bytes": 58_000, "masked": 2, "state": "delivered"},
    {"session": TWO, "sink": "local", "events": 1, "bytes": 190, "state": "gave_up"},
]


def test_backfill_ends_with_the_sum() -> None:
    assert backfill_text(BACKFILL, TerminalView(100), dry_run=False).splitlines() == [
        "SESSION   SINK   EVENTS     SIZE  REDACTED  STATE",
        "3f2ab1c0  local     118  58.0 kB         2  delivered",
        "9c0d11e2  local       1    190 B            gave up",
        "",
        "119 events (58.2 kB) delivered, 2 secrets redacted.",
    ]


def test_a_session_that_goes_to_several_sinks_counts_once_in_the_sum() -> None:
    signals = [BACKFILL[0] | {"sink": f"otel:{signal}"} for signal in ("traces", "metrics", "logs")]

    shown = backfill_text(signals, TerminalView(100), dry_run=False)

    assert shown.endswith("118 events (58.0 kB) delivered, 2 secrets redacted.")


def test_a_dry_run_says_what_would_go() -> None:
    shown = backfill_text(BACKFILL, PLAIN, dry_run=True)

    assert shown.endswith("119 events (58.2 kB) would be delivered, 2 secrets redacted.")
    assert ONE in shown


VERIFY: dict[str, Any] = {
    "session": ONE,
    "sink": "local",
    "equal": True,
    "file": 118,
    "delivered": 118,
    "receiver": 118,
    "missing": [],
    "extra": [],
    "different": [],
    "quarantined": 0,
    "detail": None,
}


def test_verify_says_that_all_is_equal() -> None:
    shown = verify_text([VERIFY, VERIFY | {"session": TWO, "receiver": None}], TerminalView(100))

    assert shown.endswith("2 comparisons, all equal.")
    assert "3f2ab1c0  local  equal     118        118       118" in shown


def test_verify_names_the_ids_that_differ() -> None:
    missing = [f"event-{n:02}" for n in range(25)]
    row = VERIFY | {"equal": False, "missing": missing, "different": ["event-99"], "receiver": 93}

    shown = verify_text([row], TerminalView(100))

    assert "3f2ab1c0 at local\n  missing at the receiver: 25 events\n    event-00" in shown
    assert "    event-02\n    and 22 more (use --json to list all)\n  different content: 1 event\n    event-99" in shown
    assert shown.endswith("1 comparison: 1 with differences.")


def test_verify_with_the_source_names_the_turns_that_differ() -> None:
    row = {
        "session": ONE,
        "sink": "local",
        "source": "rpc://127.0.0.1:1",
        "verdict": "different",
        "history": 9,
        "given": 10,
        "missing": ["e1"],
        "extra": ["x1", "x2"],
        "different": [],
        "turns": ["turn 3: missing", "turn 3 of the journal: double"],
        "detail": None,
    }
    asleep = row | {"session": TWO, "sink": "", "verdict": "not asked", "turns": [], "detail": "--wake asks"}

    shown = source_text([row, asleep], TerminalView(140))

    assert "DIFFERENT" in shown
    assert (
        "3f2ab1c0 at local\n  turn 3: missing\n  turn 3 of the journal: double\n  missing at the sink: 1 event" in shown
    )
    assert "not in the history: 2 events" in shown
    assert shown.endswith("2 comparisons: 1 with differences, 1 not asked.")
    assert "`exporter verify` compares session files" in source_text([], PLAIN)


def test_verify_tells_what_is_no_difference_from_what_is() -> None:
    deleted = VERIFY | {"equal": False, "verdict": "deleted there"}
    down = VERIFY | {"equal": False, "verdict": "not reachable", "detail": "connection refused"}
    kept = VERIFY | {"quarantined": 2, "detail": "2 in quarantine", "verdict": "equal"}

    shown = verify_text([deleted, down, kept], PLAIN).splitlines()

    assert [line.split("  ")[2] for line in shown[1:4]] == ["deleted there", "not reachable", "equal"]
    assert shown[-2:] == [
        "3 comparisons: 1 deleted there, 1 not reachable.",
        "2 quarantined and therefore not delivered; see `exporter quarantine list`.",
    ]


def test_a_sink_where_the_session_was_deleted_is_not_said_to_have_everything() -> None:
    session = SESSIONS[0] | {"sinks": [{"name": "mc", "delivered": 9, "lag_events": 0, "state": "deleted there"}]}

    assert sessions_text([session], {ONE: ONE}, PLAIN).endswith("  mc deleted there")
    assert "9 delivered, deleted there" in session_text(session, PLAIN)


ENTRY: dict[str, Any] = {
    "n": 3,
    "session": ONE,
    "event": None,
    "offset": 8812,
    "size": 190,
    "sink": None,
    "reason": "not_json",
    "detail": "bad event",
    "since": "2026-11-18T11:00:00Z",
}


def test_quarantine_tells_reason_place_and_age() -> None:
    assert quarantine_text([ENTRY], TerminalView(100, now=NOW)).splitlines() == [
        "N  REASON    SESSION   OFFSET   SIZE  SINK       SINCE    DETAIL",
        "3  not json  3f2ab1c0   8,812  190 B  all sinks  1 h ago  bad event",
    ]


def test_an_empty_quarantine_is_good_news() -> None:
    assert quarantine_text([], TerminalView(80, now=NOW)) == "Nothing is quarantined."


def test_a_quarantined_event_is_shown_only_when_redaction_passed_it() -> None:
    hidden = entry_text(ENTRY | {"text": None}, PLAIN)
    shown = entry_text(ENTRY | {"text": '{"type":"x"}'}, PLAIN)

    assert hidden.endswith("The event is not shown because it cannot be redacted.")
    assert shown.endswith('{"type":"x"}')
    assert "position  byte 8,812, 190 B" in hidden


def test_what_stays_in_quarantine_says_why() -> None:
    answer = {"done": [3], "left": [{"n": 4, "reason": "still_refused"}]}

    assert outcome_text("replayed", answer) == "1 event replayed.\n4 stays in quarantine: still refused"


CHECKS: list[dict[str, Any]] = [
    {"name": "state directory", "verdict": "ok", "detail": "0700, on ext4", "remedy": None},
    {
        "name": "clock",
        "verdict": "failed",
        "detail": "two hours ahead of the receiver",
        "remedy": "turn on time synchronisation",
    },
    {
        "name": "inotify",
        "verdict": "warning",
        "detail": "8 of 8 instances in use",
        "remedy": "raise max_user_instances",
    },
]


def test_doctor_puts_the_remedy_below_the_problem() -> None:
    assert doctor_text(CHECKS, TerminalView(100)).splitlines() == [
        "ok       state directory  0700, on ext4",
        "FAILED   clock            two hours ahead of the receiver",
        "                          -> turn on time synchronisation",
        "warning  inotify          8 of 8 instances in use",
        "                          -> raise max_user_instances",
        "",
        "3 checks: 1 problem and 1 warning.",
    ]


def test_doctor_wraps_on_a_narrow_terminal() -> None:
    shown = doctor_text(CHECKS, TerminalView(50))

    assert max(len(line) for line in shown.splitlines()) <= 50
    assert doctor_text(CHECKS[:1], TerminalView(50)).endswith("1 check: no problems found.")
