"""`exporter redact` end to end: files, pipes and sessions through the real program."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from exporter.errors import Exit
from redaction.rules.examples import expanded
from tests.cli.program import TIMEOUT_SECONDS, command, environment, exporter

TOKEN = expanded("ghp_<base62:30><crc32:6>")
OTHER = expanded("ghp_<base62:30><crc32:6>", "other")
SESSION = "5f0d8a3e-1c1b-4f0e-9a77-0d9c1b0a2e11"

pytestmark = [pytest.mark.usefixtures("installed"), pytest.mark.slow]


def event(number: int, kind: str, data: dict[str, Any]) -> str:
    envelope = {"type": kind, "data": data, "id": f"e{number}", "timestamp": f"2026-11-{number:02}T10:00:00.000Z"}
    return json.dumps({**envelope, "parentId": f"e{number - 1}" if number > 1 else None})


EVENTS = [
    event(1, "user.message", {"content": "good day"}),
    event(2, "user.message", {"content": f"first line\nexport TOKEN={TOKEN} && go\nlast line"}),
    event(3, "tool.execution_complete", {"toolCallId": "1", "result": {"content": f"{TOKEN}, {OTHER}"}}),
]


@pytest.fixture
def events(own_home: Path) -> Path:
    """A session of three events below the test's own `~/.copilot`."""
    file = own_home / ".copilot" / "session-state" / SESSION / "events.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(EVENTS) + "\n")
    return file


def piped(content: bytes, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    line = command("redact", "test", *arguments)
    return subprocess.run(
        line, input=content, env=environment(), capture_output=True, timeout=TIMEOUT_SECONDS, check=False
    )


def below(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*")}


def test_a_file_of_events_is_masked_and_nothing_is_written(own_home: Path, events: Path) -> None:
    before = below(own_home)

    answer = exporter("redact", "test", str(events))

    masked = answer.stdout.splitlines()
    assert answer.returncode == Exit.DONE
    assert (masked[0], len(masked)) == (EVENTS[0], 3)
    assert [json.loads(line)["id"] for line in masked] == ["e1", "e2", "e3"]
    assert TOKEN not in answer.stdout + answer.stderr
    assert answer.stdout.count("[REDACTED:") == 3
    assert below(own_home) == before


def test_tags_are_those_of_the_installation_where_it_has_a_key(own_home: Path, events: Path) -> None:
    key = own_home / "state" / "exporter" / "redaction.key"
    key.unlink()
    without_key = {exporter("redact", "test", str(events)).stdout for _ in range(2)}
    key.write_bytes(bytes(range(32)))

    with_key = {exporter("redact", "test", str(events)).stdout for _ in range(2)}

    assert (len(without_key), len(with_key)) == (2, 1)


@pytest.mark.parametrize("more", [[], ["-"], ["--format", "jsonl"]])
def test_the_input_is_masked_too(more: list[str]) -> None:
    answer = piped("\n".join(EVENTS).encode(), *more)

    assert answer.returncode == Exit.DONE
    assert answer.stdout.startswith(EVENTS[0].encode() + b"\n")
    assert not answer.stdout.endswith(b"\n")
    assert answer.stdout.count(b"[REDACTED:") == 3


def test_a_text_keeps_every_other_byte() -> None:
    answer = piped(b"\xff\r\n\tuse " + TOKEN.encode() + b" now\x1b[0m\nlast")

    before, _, after = answer.stdout.partition(b"[REDACTED:")
    assert before == b"\xff\r\n\tuse "
    assert after.endswith(b"] now\x1b[0m\nlast")


def test_findings_say_how_sure_they_are() -> None:
    wrong = TOKEN[:-1] + ("a" if TOKEN[-1] != "a" else "b")
    unchecked = expanded("glpat-<base62:20>")

    answer = piped(f"{TOKEN} {wrong} {unchecked}\n".encode(), "--findings")

    assert [json.loads(line)["confidence"] for line in answer.stdout.splitlines()] == ["proven", "low", "high"]


def test_findings_say_where_and_never_what(events: Path) -> None:
    answer = exporter("redact", "test", str(events), "--findings")

    findings = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [list(one) for one in findings] == [["line", "event", "path", "start", "end", "rule", "confidence"]] * 3
    assert [(one["line"], one["event"], one["path"]) for one in findings] == [
        (2, "e2", "/data/content"),
        (3, "e3", "/data/result/content"),
        (3, "e3", "/data/result/content"),
    ]
    content = json.loads(EVENTS[1])["data"]["content"]
    assert content[findings[0]["start"] : findings[0]["end"]] == TOKEN
    assert TOKEN not in answer.stdout


@pytest.mark.parametrize("more", [[], ["--findings"], ["--format", "text"]])
def test_check_ends_with_8_when_anything_was_found(more: list[str]) -> None:
    found, clean = piped(EVENTS[1].encode(), "--check", *more), piped(EVENTS[0].encode(), "--check", *more)

    assert (found.returncode, clean.returncode) == (Exit.FINDINGS, Exit.DONE)
    assert TOKEN.encode() not in found.stdout


@pytest.mark.parametrize("more", [[], ["--findings"]])
def test_what_cannot_be_masked_is_named_and_not_written(more: list[str]) -> None:
    answer = piped(f"{EVENTS[0]}\n{{ {TOKEN}\n{EVENTS[1]}\n".encode(), "--format", "jsonl", *more)

    assert answer.returncode == Exit.PARTIAL
    assert b"line 2 is not written: it is not JSON" in answer.stderr
    assert TOKEN.encode() not in answer.stdout + answer.stderr
    assert answer.stdout.count(b"\n") == (1 if more else 2)


def test_a_budget_that_is_too_short_writes_nothing() -> None:
    line = json.dumps([f"password = {TOKEN}{number}" for number in range(30_000)])

    answer = subprocess.run(
        command("redact", "test", "--format", "jsonl"),
        input=line.encode(),
        env=environment(EXPORTER_REDACTION__BUDGET_MS="1"),
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )

    assert (answer.returncode, answer.stdout) == (Exit.PARTIAL, b"")
    assert b"redaction.budget_ms" in answer.stderr


@pytest.mark.parametrize("name", ["not-here.txt", "."])
def test_a_file_that_cannot_be_read_ends_with_2(name: str) -> None:
    assert exporter("redact", "test", name).returncode == Exit.USAGE


def test_a_reader_that_goes_away_is_no_error() -> None:
    line = command("redact", "test", "--format", "jsonl")
    with subprocess.Popen(
        line, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        try:
            program.stdin.write(b'{"a":1}\n' * 100_000)
            program.stdin.close()
        except BrokenPipeError:
            pass
        said = program.stderr.read()
        code = program.wait(TIMEOUT_SECONDS)

    assert (code, said) == (Exit.DONE, b"")


@pytest.mark.parametrize("more", ["", "--format text"])
def test_memory_does_not_grow_with_the_input(tmp_path: Path, more: str) -> None:
    line = f"{EVENTS[0]}\n".encode()
    peaks = []
    for name, size in (("small.jsonl", 2_000_000), ("large.jsonl", 30_000_000)):
        with (tmp_path / name).open("wb") as file:  # a little at a time: a program begins with what its parent had
            file.writelines(line for _ in range(size // len(line)))
        program = subprocess.Popen(
            command("redact", "test", str(tmp_path / name), *more.split()),
            env=environment(),
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(program.pid, 0)
        assert status == 0
        peaks.append(usage.ru_maxrss)

    assert peaks[1] < peaks[0] * 1.2


def test_a_preview_counts_and_shows_what_is_around(own_home: Path, events: Path) -> None:
    before = below(own_home)

    answer = exporter("redact", "preview", "--session", SESSION[:4])

    assert answer.returncode == Exit.DONE
    assert f"3 secrets would be redacted in 2 of 3 events of {SESSION}" in answer.stdout
    assert "user.message e2 /data/content" in answer.stdout
    assert "export TOKEN=[REDACTED:" in answer.stdout
    assert "] && go\n" in answer.stdout
    assert not {TOKEN, OTHER, "first line", "last line"} & set(answer.stdout.split())
    assert below(own_home) == before


def test_a_preview_as_a_diff_has_bullets_for_secrets(events: Path) -> None:
    answer = exporter("redact", "preview", "--session", SESSION, "--diff")

    removed = [line for line in answer.stdout.splitlines() if line.startswith("-") and not line.startswith("---")]
    added = [line for line in answer.stdout.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert removed == ["-export TOKEN=•••• && go", "-••••, ••••"]
    assert [line.count("[REDACTED:") for line in added] == [1, 2]
    assert not any(TOKEN[place : place + 6] in answer.stdout for place in range(4, len(TOKEN) - 6))


def test_a_preview_for_programs(events: Path) -> None:
    answer = exporter("redact", "preview", "--session", SESSION, "--diff", "--json")

    document = json.loads(answer.stdout)
    first = document["places"][0]
    assert (document["session"], document["events"], document["masked"]) == (SESSION, 3, 3)
    assert sum(rule["count"] for rule in document["rules"]) == 3
    assert (first["event"], first["path"]) == ("e2", "/data/content")
    assert (first["before"], first["after"]) == ("export TOKEN=", " && go")
    assert (first["removed"], first["added"]) == (
        "export TOKEN=•••• && go",
        f"export TOKEN={first['marker']} && go",
    )
    assert TOKEN not in answer.stdout


def test_a_preview_shows_where_a_key_is_a_secret(events: Path) -> None:
    events.write_text(event(1, "user.message", {"a": {TOKEN: OTHER, "b": ["", TOKEN]}}) + "\n")

    answer = exporter("redact", "preview", "--session", SESSION, "--json")

    places = json.loads(answer.stdout)["places"]
    assert len(places) == 3
    assert all(place["marker"].startswith("[REDACTED:") for place in places)
    assert places[-1]["path"] == "/data/a/b/1"
    assert TOKEN not in answer.stdout
    assert OTHER not in answer.stdout


def test_a_preview_names_what_would_stay_here(events: Path) -> None:
    with events.open("a") as file:
        file.write(event(4, "user.message", {"content": [f"password={TOKEN}{n}" for n in range(20_000)]}) + "\n")

    answer = exporter("redact", "preview", "--session", SESSION, EXPORTER_REDACTION__BUDGET_MS="1")

    assert answer.returncode == Exit.DONE
    assert "quarantined, not delivered: e4: time budget" in answer.stdout


def test_a_preview_of_a_session_that_is_not_there_ends_with_2(events: Path) -> None:
    assert exporter("redact", "preview", "--session", "no").returncode == Exit.USAGE


def test_the_rules_are_listed_with_provider_and_example() -> None:
    document = json.loads(exporter("redact", "rules", "--json").stdout)

    assert sum(pack["rules"] for pack in document["packs"]) == len(document["rules"]) > 50
    assert all(pack["version"] for pack in document["packs"])
    assert {"GitHub", "AWS", "Slack"} <= {rule["provider"] for rule in document["rules"]}
    assert {tuple(rule) for rule in document["rules"]} == {
        ("id", "provider", "name", "confidence", "example", "pack", "version")
    }
    examples = {rule["id"]: rule["example"] for rule in document["rules"]}
    assert examples["github-pat-classic"].startswith("ghp_")
    assert "<" not in examples["github-pat-classic"], "a text, no template"
    assert document["engine"]["name"] in ("hyperscan", "re")
    assert document["engine"]["version"]


def test_the_examples_of_rules_are_listed_on_demand() -> None:
    short, long = exporter("redact", "rules").stdout, exporter("redact", "rules", "-v").stdout

    assert "EXAMPLE" not in short.splitlines()[0]
    assert "EXAMPLE" in long.splitlines()[0]


def test_what_searches_for_the_rules_is_said() -> None:
    last = exporter("redact", "rules").stdout.splitlines()[-1]

    assert re.fullmatch(r"[\d,]+ rules of built-in \S+, .*; engine: (?:hyperscan|re) [\d.]+", last)


def test_a_report_of_nothing_makes_nothing(own_home: Path) -> None:
    before = below(own_home)

    document = json.loads(exporter("redact", "report", "--json").stdout)

    assert (document["total"], document["rules"], document["sessions"], document["days"]) == (0, [], [], [])
    assert "Nothing was redacted" in exporter("redact", "report").stdout
    assert below(own_home) == before


def test_a_report_counts_by_rule_session_and_day(events: Path) -> None:
    assert exporter("backfill", "--all").returncode == Exit.DONE

    document = json.loads(exporter("redact", "report", "--json").stdout)
    since = json.loads(exporter("redact", "report", "--json", "--since", "2026-11-03").stdout)
    shown = exporter("redact", "report").stdout

    assert document["total"] == sum(rule["count"] for rule in document["rules"]) == 3
    assert [(one["session"], one["count"]) for one in document["sessions"]] == [(SESSION, 3)]
    assert [(one["day"], one["count"]) for one in document["days"]] == [("2026-11-03", 2), ("2026-11-02", 1)]
    assert (since["since"], since["total"]) == ("2026-11-03", 2)
    assert "3 secrets redacted (1 session, 2 days)." in shown
    assert TOKEN not in shown


def cpu_seconds(cache: Path, state: Path) -> float:
    began = os.times()
    answer = subprocess.run(
        command("redact", "test"),
        input=f"password = '{TOKEN}'\n".encode(),
        env={**environment(), "XDG_CACHE_HOME": str(cache), "XDG_STATE_HOME": str(state)},
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    ended = os.times()
    assert TOKEN.encode() not in answer.stdout
    return ended.children_user + ended.children_system - began.children_user - began.children_system


def test_the_rules_are_compiled_once_where_nothing_was_ever_delivered(own_home: Path) -> None:
    cache, state = own_home / "fresh", own_home / "nothing"

    first = cpu_seconds(cache, state)
    second = cpu_seconds(cache, state)

    assert second < first / 2
    assert not state.exists()
    kept = [path for path in (cache / "exporter").rglob("*") if path.is_file()]
    assert kept
    assert all(path.stat().st_mode & 0o077 == 0 for path in (*kept, cache / "exporter"))
