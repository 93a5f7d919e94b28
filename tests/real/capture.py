"""Make the session fixtures of the other tests from real runs: `python -m tests.real.capture [DIRECTORY]`.

GitHub's licence forbids to pass on parts of the CLI, and its logs hold its prompts. So the texts in them that are not
from our own scripts are cut to `<removed N chars>`; paths and names of this machine are replaced too.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.real import install
from tests.real.cage import Cage
from tests.real.cli import Copilot, wait_until
from tests.real.model import Model
from tests.real.rpc import Server

FIXTURES = Path(__file__).parents[1] / "fixtures/sessions"
TOTAL_BYTES_MAX = 300_000
# Nothing that our scripts say or run in these sessions is longer; notices and results of tools that are, are prompts.
OWN_TEXT_CHARACTERS_MAX = 160
MODEL_TEXT_CHARACTERS_MAX = 48


def without_prompts(line: bytes) -> bytes:
    """The same event with every text that may be the CLI's own prompt removed; byte for byte if there is none."""
    event = json.loads(line)
    longest = MODEL_TEXT_CHARACTERS_MAX if event["type"].startswith("model.") else OWN_TEXT_CHARACTERS_MAX
    if event["type"] == "system.message":
        longest = MODEL_TEXT_CHARACTERS_MAX
    cleaned = {**event, "data": _cut(event["data"], longest)}
    if cleaned == event:
        return line
    return json.dumps(cleaned, ensure_ascii=False, separators=(",", ":")).encode()


def _cut(value: object, longest: int) -> object:
    if isinstance(value, dict):
        return {name: _cut(inner, longest) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cut(inner, longest) for inner in value]
    if isinstance(value, str) and len(value) > longest:
        return f"<removed {len(value)} chars>"
    return value


class Capture:
    """Runs sessions of one version and writes what they leave behind, cleaned, into a directory."""

    def __init__(self, copilot: Copilot, directory: Path) -> None:
        self.copilot = copilot
        self._directory = directory

    def keep(self, name: str, session_id: str) -> None:
        """Write the session's files as they are now, as the fixture `name`."""
        source = self.copilot.sessions() / session_id
        place = self._directory / name
        place.mkdir(parents=True, exist_ok=True)
        lines = (source / "events.jsonl").read_bytes().splitlines()
        log = b"".join(self._without_places(without_prompts(line)) + b"\n" for line in lines)
        (place / "events.jsonl").write_bytes(log)
        (place / "workspace.yaml").write_bytes(self._without_places((source / "workspace.yaml").read_bytes()))

    def _without_places(self, text: bytes) -> bytes:
        work = re.escape(str(self.copilot.scratch).encode()) + rb"/work-\w+"
        text = re.sub(work, b"/home/dev/work", text)
        text = text.replace(str(self.copilot.home).encode(), b"/home/dev/.copilot")
        return re.sub(rb"\b" + re.escape(socket.gethostname().encode()) + rb"\b", b"dev-machine", text)


def capture_runs(capture: Capture, suffix: str = "") -> None:
    """Sessions that are one run of the CLI."""
    for scenario in ("hello", "bash", "sub_bg"):
        capture.keep(scenario + suffix, capture.copilot.play(scenario).session_id)


def capture_resume(capture: Capture) -> None:
    """A session that goes on after its shutdown."""
    first = capture.copilot.play("hello")
    capture.copilot.play("bash", resume=first.session_id)
    capture.keep("resume", first.session_id)


def capture_rewind(capture: Capture) -> None:
    """A session before and after a truncate took its second turn away, and compacted in the end."""
    with Server(capture.copilot) as server:
        session_id = server.create()
        log = server.events(session_id)
        server.turn(session_id, "bash")
        server.turn(session_id, "hello")
        _wait_for(log, lambda types: types[-1] == "assistant.turn_end" and types.count("user.message") == 2)
        capture.keep("rewind_before", session_id)
        events = [json.loads(line) for line in log.read_bytes().splitlines()]
        server.truncate(session_id, [event["id"] for event in events if event["type"] == "user.message"][1])
        server.turn(session_id, "bash")
        _wait_for(log, lambda types: types[-1] == "assistant.turn_end" and types.count("user.message") == 2)
        capture.keep("rewind_after", session_id)
        server.compact(session_id)
        _wait_for(log, lambda types: "session.compaction_complete" in types)
        server.close(session_id)
        capture.keep("compact", session_id)


def _wait_for(log: Path, complete: Callable[[list[str]], bool]) -> None:
    def reached() -> bool:
        lines = log.read_bytes().splitlines() if log.exists() else []
        return bool(lines) and complete([json.loads(line)["type"] for line in lines])

    wait_until(reached, f"the turns in {log}", 20)


def main() -> int:
    """Make all fixtures anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=FIXTURES)
    directory = parser.parse_args().directory
    scratch = Path(tempfile.mkdtemp(prefix="capture-"))
    try:
        with Cage() as cage, Model(cage.listen()) as model:

            def capture(version: str) -> Capture:
                root = scratch / version
                (root / "home").mkdir(parents=True)
                return Capture(Copilot(cage, model.port, root / "home", root / "scratch", version), directory)

            newest = capture(install.NEW)
            capture_runs(newest)
            capture_resume(newest)
            capture_rewind(newest)
            capture_runs(capture(install.OLD), suffix=f"_{install.OLD}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    total = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    print(f"{total} bytes in {directory}")
    return 0 if total <= TOTAL_BYTES_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
