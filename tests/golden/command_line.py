"""Group `cli`: what commands say and how they end, on the directories that `state` saves and on files of its own.

Help, usage errors and completion are left out: a library writes them. Of a usage error only the exit code is a case.
"""

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.golden.captures import Capture
from tests.golden.machine import Ended, Machine, Work, toml_table
from tests.golden.recorders import floor
from tests.golden.state import FAR, HERE, Trouble, chosen, receivers, take_over
from tests.golden.store import Goldens

GROUP: Final = "cli"
_OF_MACHINE: Final = ("inotify", "open files", "platform", "python", "clock", "file watching", "disk space")
"""Checks of the doctor that are about this machine at this moment."""
_PROGRESS: Final = re.compile(rb"(?m)^\d+ of \d+ sessions?, .*\n")
_PROCESS: Final = re.compile(rb"\(process \d+\)")


def write_commands(goldens: Goldens, work: Work, captures: Sequence[Capture], saved: Path) -> None:
    """Keep what every command that reports says, for people and as JSON."""
    some = chosen(captures)
    far = take_over(work, saved, FAR)
    _asleep(goldens, far, some)
    with receivers(far, Trouble()):
        for arguments in (
            ("verify", "--all"),
            ("verify", "--session", some[0].id),
            ("verify", "--session", some[0].id[:6]),
            ("verify", "--all", "--repair"),
            ("backfill", "--all", "--dry-run"),
            ("backfill", "--session", some[3].id, "--from-start"),
            ("backfill", "--since", "30d", "--sink", "otel"),
            ("backfill", "--all", "--sink", "nobody"),
            ("quarantine", "replay", "1"),
            ("quarantine", "drop", "1"),
            ("quarantine", "drop", "999"),
        ):
            _both(goldens, far, "reachable", *arguments)
        _doctor(goldens, far, "reachable")
    _both(goldens, take_over(work, saved, HERE), "here", "mission-control", "token", "list")
    _both(goldens, take_over(work, saved, HERE), "here", "redact", "report", "--since", "36500d")
    _both(goldens, take_over(work, saved, HERE), "here", "status")
    _settings(goldens, work)
    _redact(goldens, work, captures)
    _mistakes(goldens, work)


def _asleep(goldens: Goldens, machine: Machine, captures: Sequence[Capture]) -> None:
    for arguments in (
        ("status",),
        ("sessions", "list"),
        ("sessions", "list", "--state", "ended"),
        ("sessions", "list", "--since", "1d"),
        *(("sessions", "show", capture.id) for capture in captures),
        ("sessions", "show", captures[0].id[:5]),
        ("sessions", "show", "zzz"),
        *(("sessions", "tail", capture.id) for capture in captures),
        *(("quarantine", "show", str(number)) for number in range(1, 8)),
        ("quarantine", "list"),
        ("redact", "report"),
        *(("redact", "preview", "--session", capture.id) for capture in captures[-4:]),
        *(("redact", "preview", "--session", capture.id, "--diff") for capture in captures[-2:]),
        ("tap", "status"),
    ):
        _both(goldens, machine, "asleep", *arguments)
    _doctor(goldens, machine, "asleep")


def _both(goldens: Goldens, machine: Machine, step: str, *arguments: str) -> None:
    _keep(goldens, f"{step}/{' '.join(arguments)}", machine.exporter(*arguments))
    _keep(goldens, f"{step}/{' '.join(arguments)} --json", machine.exporter(*arguments, "--json"), is_json=True)


def _keep(goldens: Goldens, name: str, done: Ended, *, is_json: bool = False) -> None:
    """Keep how a command ended and what it said; how far it had come at which moment is chance."""
    out, err = (_PROCESS.sub(b"(process N)", said) for said in (done.out, _PROGRESS.sub(b"", done.err)))
    goldens.put(GROUP, f"{name}: exit", b"%d" % done.code)
    if done.code == Ended.USAGE and name.startswith("mistakes/"):
        return
    is_error = out.startswith(b'{"error":')
    goldens.put(GROUP, f"{name}: out", out, "bytes" if is_json and not is_error else "text")
    if not is_json:
        goldens.put(GROUP, f"{name}: err", err, "text")


def _doctor(goldens: Goldens, machine: Machine, step: str) -> None:
    """The doctor's checks but those of the machine; the order of the rest is a fact too."""
    done = machine.exporter("doctor", "--json")
    checks = [one for one in json.loads(done.out)["checks"] if one["name"] not in _OF_MACHINE]
    told = b"%d\n" % done.code + json.dumps(checks, indent=1).encode()
    goldens.put(GROUP, f"{step}/doctor --json", told, "text")
    done = machine.exporter("doctor")
    lines = [line for line in done.out.decode().splitlines() if not any(name in line for name in _OF_MACHINE)]
    goldens.put(GROUP, f"{step}/doctor", b"%d\n" % done.code + "\n".join(lines).encode(), "text")


def _settings(goldens: Goldens, work: Work) -> None:
    machine = Machine(work, "settings")
    tables = (
        toml_table("mission_control", {"url": "https://mc.example.com/agents", "token": "the-secret-token"})
        + toml_table("mission_control.second", {"url": "http://127.0.0.1:1/agents", "live": True})
        + toml_table("otel", {"endpoint": "http://127.0.0.1:4318", "content": "redacted", "headers": {}})
    ).replace("headers = {}\n", 'headers = { authorization = "Bearer x" }\n')
    machine.configure(tables.replace("[mission_control]", "[mission_control.default]"))
    variables = {"EXPORTER_LOG_LEVEL": "debug", "COPILOT_MC_BASE_URL": "http://127.0.0.1:2/agents",
                 "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:3", "EXPORTER_UNKNOWN": "1"}  # fmt: skip
    for arguments in (("config", "show"), ("config", "show", "--origin"), ("config", "check"), ("status",)):
        _both(goldens, machine, "settings", *arguments)
        done = machine.exporter(*arguments, variables=variables)
        _keep(goldens, f"settings/variables {' '.join(arguments)}", done)
    for arguments in (("config", "example"), ("config", "schema"), ("redact", "rules"), ("redact", "rules", "--json")):
        _keep(goldens, f"settings/{' '.join(arguments)}", machine.exporter(*arguments))
    for name, text in _BAD_SETTINGS.items():
        machine.configure(text)
        for arguments in (("config", "check"), ("status",)):
            _both(goldens, machine, f"settings/{name}", *arguments)
    machine.exporter("dashboards", "export", str(machine.root / "dashboards"))
    for path in sorted((machine.root / "dashboards").rglob("*")):
        if path.is_file():
            goldens.put(GROUP, f"dashboards/{path.relative_to(machine.root / 'dashboards')}", path.read_bytes())


_BAD_SETTINGS = {
    "misspelt": "[mission_controll]\nurl = 'http://127.0.0.1:1/agents'\n",
    "misspelt key": "[mission_control]\nurl = 'http://127.0.0.1:1/agents'\ntokn = 'x'\n",
    "no url": "[mission_control]\ntoken = 'x'\n",
    "bad url": "[mission_control]\nurl = 'nowhere'\n",
    "plain token": "[mission_control]\nurl = 'http://mc.example.com/agents'\ntoken = 'x'\n",
    "bad type": "[limits]\nopen_files = 'many'\n",
    "out of bounds": "[limits]\nopen_files = 0\n",
    "bad toml": "[limits\n",
    "bad source": "[[source]]\nurl = 'gopher://x'\n",
    "two secrets": "[mission_control]\nurl = 'http://127.0.0.1:1/agents'\ntoken = 'x'\ntoken_file = 'y'\n",
    "bad otel": "[otel]\nendpoint = 'http://127.0.0.1:4318'\nprotocol = 'http/json'\n",
    "bad rule": "[redaction]\nextra_rules = ['/nowhere/rules.toml']\n",
}


def _redact(goldens: Goldens, work: Work, captures: Sequence[Capture]) -> None:
    machine = Machine(work, "redacting")
    for number, capture in enumerate(captures):
        for flags in ((), ("--findings",)):
            done = machine.exporter("redact", "test", "--format", "jsonl", *flags, given=capture.content)
            _keep(goldens, f"redact/{capture.name} {' '.join(flags)}", done, is_json=True)
        if number % 6 == 0:
            for more in (["--format", "text"], ["--format", "jsonl", "--check"]):
                done = machine.exporter("redact", "test", *more, given=capture.content)
                _keep(goldens, f"redact/{capture.name} {' '.join(more)}", done, is_json=True)


def _mistakes(goldens: Goldens, work: Work) -> None:
    machine = Machine(work, "mistaken")
    for arguments in (
        ("nothing",), ("status", "--nothing"), ("sessions",), ("sessions", "show"), ("backfill",), ("verify",),
        ("backfill", "--all", "--since", "7d"), ("backfill", "--since", "whenever"), ("quarantine", "show", "x"),
        ("up", "--port", "99999"), ("mission-control", "token", "create"), ("redact", "test", "/nowhere"),
        ("mission-control", "serve", "--store", "mysql://x"), ("mission-control", "serve", "--host", "0.0.0.0"),
        ("mission-control", "token", "revoke", "nobody"), ("config", "check", "/nowhere"), ("--version",),
        ("run", "--session", "zzz", "--until-idle"), ("status",), ("sessions", "list"), ("run", "--until-idle"),
    ):  # fmt: skip
        _both(goldens, machine, "mistakes", *arguments)
    port = work.port + 6
    machine.configure(toml_table("mission_control", {"url": f"http://127.0.0.1:{port}/agents"}), give_up_seconds=1)
    machine.write_session(
        "0c5da152-0000-4000-8000-000000000001", b'{"type":"user.message","id":"1","data":{}}\n', age=9
    )
    for arguments in (("run", "--until-idle"), ("backfill", "--all"), ("verify", "--all"), ("status",)):
        _both(goldens, machine, "unreachable", *arguments)
    with floor(port):
        for arguments in (("run", "--until-idle"), ("verify", "--all"), ("status",)):
            _both(goldens, machine, "reached", *arguments)
        with machine.running("run"):
            time.sleep(2)
            for arguments in (("run", "--until-idle"), ("backfill", "--all"), ("verify", "--all")):
                _both(goldens, machine, "beside a daemon", *arguments)
