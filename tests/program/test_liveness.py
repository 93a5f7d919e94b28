"""An exporter that shares files with the CLI and not its processes, as a sidecar does, calls no session crashed."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.otel.receiver import Receiver, text_of
from tests.program.driver import Machine
from tests.program.session_files import SessionFile
from tests.program.waiting import until

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="namespaces"), pytest.mark.timeout(120)]
_ALONE: Final = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child=SIGTERM", "--mount-proc")
_BESIDE: Final = """
sleep 600 & holder=$!
touch "$SESSION/inuse.$holder.lock"
(while [ ! -e "$SESSION/kill" ]; do sleep 0.1; done; kill -9 $holder) &
"$@" & exporter=$!
trap 'kill $exporter' TERM
wait $exporter; wait $exporter
"""


@contextmanager
def up(machine: Machine, prefix: Sequence[str]) -> Iterator[httpx.Client]:
    """A running `exporter up` in a place of its own, by its Mission Control."""
    command = [*prefix, *machine.command("up", "--no-open", "--json")]
    program = subprocess.Popen(
        command, env=machine.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    )
    try:
        assert program.stdout is not None
        with httpx.Client(
            base_url=str(httpx.URL(json.loads(program.stdout.readline())["ready"]["url"]).join("/"))
        ) as c:
            yield c
    finally:
        # `unshare` waits for what runs in the namespace, and lets no signal through.
        children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        for process in map(int, children) if prefix else [program.pid]:
            os.kill(process, signal.SIGTERM)
        program.communicate(timeout=90)


@contextmanager
def held(session: SessionFile, *, hold: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds a session open; with `hold` as CLI 1.0.102 does, else as 1.0.48."""
    with (session.directory / "hold").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = subprocess.Popen(["sleep", "600"], pass_fds=[file.fileno()])  # has the lock from now on
    os.utime(session.directory / "hold", (time.time() - 60,) * 2)
    try:
        (session.directory / f"inuse.{process.pid}.lock").write_text(str(process.pid))
        if hold:
            (session.directory / "hold").rename(session.directory / f"inuse.{process.pid}.hold")
        yield process
    finally:
        process.kill()
        process.wait()


def at_work(session: SessionFile, *, age_seconds: float = 0) -> None:
    """A session in the middle of a tool call, with nothing new for so long."""
    called = {"toolCallId": "call-1", "toolName": "bash"}
    session.append(
        [
            session.event(type="session.start", data={}),
            session.event(type="user.message", data={"content": "go on"}),
            session.event(type="assistant.turn_start", data={"turnId": "0"}),
            session.event(type="tool.execution_start", data=called),
        ]
    )
    os.utime(session.path, (time.time() - age_seconds,) * 2)


def ended(session: SessionFile) -> None:
    """What follows once the tool has ended."""
    said: list[tuple[str, dict[str, Any]]] = [
        ("tool.execution_complete", {"toolCallId": "call-1", "success": True}),
        ("assistant.message", {"model": "model-x", "outputTokens": 3}),
        ("assistant.turn_end", {"turnId": "0"}),
    ]
    session.append([session.event(type=type, data=data) for type, data in said])


def spans_of(receiver: Receiver, session: SessionFile) -> dict[str, str | None]:
    """The spans of a session: what each did, and its error type."""
    spans = [span for span in receiver.spans() if text_of(span, "gen_ai.conversation.id") == session.id]
    errors = [
        next((one.value.string_value for one in span.attributes if one.key == "error.type"), None) for span in spans
    ]
    found = dict(zip((span.name.split()[0] for span in spans), errors, strict=True))
    assert len(found) == len(spans), spans
    return found


def shown(client: httpx.Client, session: SessionFile) -> tuple[str | None, str | None]:
    """What a Mission Control says of a session."""
    found = client.get(f"/api/v1/sessions/{session.id}").json()
    return found.get("state"), found.get("liveness")


def test_a_sidecar_does_not_know_whether_a_session_it_cannot_see_lives(machine: Machine, receiver: Receiver) -> None:
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    living, left = machine.session(), machine.session()
    at_work(left, age_seconds=2 * 86_400)
    at_work(living, age_seconds=60)
    with held(living), held(left), up(machine, _ALONE) as here:
        until(lambda: shown(here, living) == ("idle", "unknown"), "that nobody can tell", seconds=60)
        listed = {one["id"]: one for one in machine.json("sessions", "list")["sessions"]}
        # Both were looked at in the same round.
        until(lambda: bool(spans_of(receiver, left)), "what was given up", seconds=60)
        before = spans_of(receiver, living)
        ended(living)
        until(lambda: len(spans_of(receiver, living)) == 3, "the end of what lives", seconds=60)

        assert (listed[living.id]["state"], listed[living.id]["liveness"]) == ("idle", "unknown")
        assert spans_of(receiver, left) == {"execute_tool": "session_abandoned", "invoke_agent": "session_abandoned"}
        assert not before
        assert spans_of(receiver, living) == {"execute_tool": None, "chat": None, "invoke_agent": None}
        living.append([living.event(type="session.shutdown", data={})])
        until(lambda: shown(here, living) == ("ended", None), "the end")


def test_a_sidecar_knows_what_the_kernel_tells_of_a_holder(machine: Machine, receiver: Receiver) -> None:
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    session = machine.session()
    at_work(session, age_seconds=60)
    with held(session, hold=True) as process, up(machine, _ALONE) as here:
        until(lambda: shown(here, session) == ("working", None), "the session at work")
        process.kill()
        process.wait()

        until(lambda: shown(here, session) == ("crashed", None), "the crash", seconds=60)
        until(lambda: bool(spans_of(receiver, session)), "what the crash cut off", seconds=60)
        assert set(spans_of(receiver, session).values()) == {"process_crash"}


def test_a_holder_in_the_namespace_of_the_exporter_is_seen_there(machine: Machine, receiver: Receiver) -> None:
    machine.environment["EXPORTER_OTEL__ENDPOINT"] = receiver.url
    machine.environment["EXPORTER_OTEL__HISTORY_DAYS"] = "36500"
    session = machine.session()
    machine.environment["SESSION"] = str(session.directory)
    with up(machine, [*_ALONE, "bash", "-c", _BESIDE, "bash"]) as here:
        at_work(session)
        until(lambda: shown(here, session) == ("working", None), "the session at work")
        (session.directory / "kill").touch()

        until(lambda: shown(here, session) == ("crashed", None), "the crash", seconds=60)
        until(lambda: bool(spans_of(receiver, session)), "what the crash cut off", seconds=60)
        assert set(spans_of(receiver, session).values()) == {"process_crash"}

    # Where a holder was seen once, another one that is not there is dead.
    with up(machine, _ALONE) as elsewhere:
        until(lambda: shown(elsewhere, session)[1] == "unknown", "another namespace, which has seen none", seconds=60)
