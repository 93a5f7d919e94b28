"""The reference peer for telemetry: agent-session-otel from PyPI, in an environment of its own and never installed.

It reads logs of Claude Code, so it is given the same conversations as Claude Code would have written them.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from tests.bench.conversations import TURNS
from tests.bench.generate import FIRST_TIMESTAMP, cache_directory, corpora

VERSION = "0.2.0"
_PACKAGE = f"agent-session-otel[otlp]=={VERSION}"
_SPANS_OF_A_TURN = 3
_USAGE = {"input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0}


def find() -> Path | None:
    """The program, fetched on first use; None where it cannot be had."""
    root = cache_directory() / f"agent-session-otel-{VERSION}"
    program = root / "bin" / "agent-session-otel"
    if not program.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", root], check=True, capture_output=True)
            subprocess.run([root / "bin" / "pip", "install", "--quiet", _PACKAGE], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            shutil.rmtree(root, ignore_errors=True)
            return None
    return program


def command(program: Path, root: Path, url: str) -> list[str]:
    """Export everything below a directory of Claude Code's projects, the way its manual shows it."""
    where = ["--vendor", "claude-code", "--claude-code-root", str(root)]
    return [str(program), "export", "--format", "otlp", "--endpoint", f"{url}/v1/traces", *where]


def write(root: Path, spans: int) -> int:
    """Write one session that becomes about so many spans; returns how many."""
    source = random.Random(spans)
    now, written, made, parent = FIRST_TIMESTAMP, [], 1, None
    session = str(_uuid(source))
    prose, output = corpora()[0], corpora()[2]

    def line(kind: str, message: Mapping[str, object]) -> None:
        nonlocal now, parent
        now += timedelta(milliseconds=250)
        identity = _uuid(source)
        written.append(
            json.dumps(
                {
                    "type": kind,
                    "uuid": identity,
                    "parentUuid": parent,
                    "sessionId": session,
                    "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                    "cwd": "/home/dev/work",
                    "version": "2.0.0",
                    "gitBranch": "main",
                    "message": {"role": kind, **message},
                }
            )
        )
        parent = identity

    while made < spans:
        line("user", {"content": prose.text(source, 150)})
        made += 1
        for _ in range(TURNS):
            call = f"toolu_{source.getrandbits(64):016x}"
            used = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "make test ARGS=tests/core"}}
            said = {"type": "text", "text": prose.text(source, 120)}
            answer = {"model": "claude-bench", "stop_reason": "tool_use", "usage": _USAGE, "content": [said, used]}
            line("assistant", answer)
            result = output.text(source, int(source.expovariate(1 / 300)) + 10)
            line("user", {"content": [{"type": "tool_result", "tool_use_id": call, "content": result}]})
            made += _SPANS_OF_A_TURN
    directory = root / "-home-dev-work"
    directory.mkdir(parents=True)
    (directory / f"{session}.jsonl").write_text("\n".join(written) + "\n")
    return made


def _uuid(source: random.Random) -> str:
    digits = f"{source.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
