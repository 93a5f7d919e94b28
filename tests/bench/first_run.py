"""What a person waits for who starts `exporter up` for the first time, beside agentsview on the same sessions."""

from __future__ import annotations

import http.client
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from exporter.core.names import RECEIVER
from tests.bench import first_run_data, measure
from tests.bench.first_run_data import Sessions
from tests.bench.generate import cache_directory
from tests.bench.product import Home, Running, home
from tests.bench.report import Row

LIST_MAX_SECONDS = 3
ALL_MAX_SECONDS = 20
PSS_MAX_MB = 200
PEER_VERSION = "0.46.0"
_TIMEOUT_SECONDS = 600
_SAMPLE_SECONDS = 0.2
_ROWS_OF_A_PAGE = 60


@dataclass(frozen=True, slots=True)
class FirstRun:
    """Seconds since the start of the program."""

    listed: float
    stored: float
    searchable: float
    cpu_seconds: float
    pss_max_bytes: int


def rows(*, quick: bool) -> list[Row]:
    """Three for us, one for the peer."""
    made = first_run_data.cached(100 if quick else 1000)
    ours = _ours(made)
    peer = _peer(made)
    size = f"{len(made.ids):,} sessions, {made.size_bytes / 1e6:.0f} MB, {made.events:,} events"
    told = "not measured" if peer is None else f"{peer[0]:.1f} s, {peer[1]:.0f} s of CPU"
    return [
        Row(
            "first run: list on screen",
            f"≤ {LIST_MAX_SECONDS} s",
            f"{ours.listed:.1f} s",
            ours.listed <= LIST_MAX_SECONDS,
            {"seconds": round(ours.listed, 2)},
        ),
        Row(
            f"first run: {size} stored, redacted and searchable (agentsview {PEER_VERSION}, without redaction)",
            f"≤ {ALL_MAX_SECONDS} s",
            f"{ours.searchable:.1f} s, {ours.cpu_seconds:.0f} s of CPU ({told})",
            ours.searchable <= ALL_MAX_SECONDS,
            {
                "seconds": round(ours.searchable, 2),
                "stored_seconds": round(ours.stored, 2),
                "cpu_seconds": round(ours.cpu_seconds, 2),
                "peer_seconds": peer and round(peer[0], 2),
                "peer_cpu_seconds": peer and round(peer[1], 2),
            },
        ),
        Row(
            "first run: memory (PSS, largest, all processes)",
            f"≤ {PSS_MAX_MB} MB",
            f"{ours.pss_max_bytes / 1e6:.0f} MB",
            ours.pss_max_bytes <= PSS_MAX_MB * 1e6,
            {"pss_max_bytes": ours.pss_max_bytes},
        ),
    ]


def _ours(made: Sessions) -> FirstRun:
    with home() as place:
        place.sessions.rmdir()
        first_run_data.place(made, place.sessions)
        with place.running("up", "--no-open") as program, Sampled(program.pid) as sampled:
            page = _Page(page_port(place, program), program)
            listed = _when(program, lambda: page.rows() >= min(_ROWS_OF_A_PAGE, len(made.ids)))
            stored = _when(program, lambda: page.stored() >= made.events)
            searchable = _when(program, lambda: _indexed(place.directory / "state"))
            cpu_seconds = measure.cpu_seconds_in_all(program.pid)
            _check(page, made)
        return FirstRun(listed, stored, searchable, cpu_seconds, max(sampled.found))


def _check(page: _Page, made: Sessions) -> None:
    """Raises unless the last event of sessions is found, and no secret."""
    for word in made.last_words[:: max(1, len(made.ids) // 50)]:
        if len(page.search(word)) != 1:
            raise RuntimeError(f"the last event of a session is not found: {word}")
    for secret in made.secrets[::5]:
        if any(secret in str(found) for found in page.search(f'"{secret}"')):
            raise RuntimeError(f"a secret was stored: {secret}")


class _Page:
    """What the program serves."""

    def __init__(self, port: int, program: Running) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._program = program

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return content

    def rows(self) -> int:
        """How many sessions the first page shows."""
        return self.get("/").count(b"<tr") - 1

    def stored(self) -> int:
        found = [
            line for line in self.get("/metrics").decode().splitlines() if line.startswith("exporter_receiver_events ")
        ]
        return int(float(found[0].split()[1]))

    def search(self, words: str) -> list[object]:
        found = json.loads(self.get(f"/api/v1/search?q={quote(words)}"))["results"]
        assert isinstance(found, list)
        return found


class Sampled:
    """Samples the memory of a tree of processes while in the block."""

    def __init__(self, pid: int) -> None:
        self.found: list[int] = []
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Sampled:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            self.found.append(measure.pss_bytes(self._pid))


def _when(program: Running, holds: Callable[[], bool]) -> float:
    while not holds():
        program.check()
        if time.monotonic() - program.started > _TIMEOUT_SECONDS:
            raise TimeoutError(f"the first run: not within {_TIMEOUT_SECONDS} s")
        time.sleep(_SAMPLE_SECONDS)
    return time.monotonic() - program.started


def page_port(place: Home, program: Running) -> int:
    """The port of the page, asked at the control socket as soon as it is there."""
    found: list[int] = []

    def answered() -> bool:
        program.check()
        answer = place.ask("url")
        url = answer.get("url") if answer else None
        if isinstance(url, str):
            found.append(int(url.rstrip("/").rpartition(":")[2]))
        return bool(found)

    measure.wait_until(answered, 30, "the page")
    return found[0]


def _indexed(state: Path) -> bool:
    store = state / RECEIVER
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        (newest,) = database.execute("SELECT max(n) FROM events").fetchone()
    index = store.with_name(f"{store.stem}-search{store.suffix}")
    with closing(sqlite3.connect(f"file:{index}?mode=ro", uri=True)) as database:
        (until,) = database.execute("SELECT until FROM indexed").fetchone()
    return bool(until >= newest)


def find_peer() -> Path | None:
    """The peer's program, fetched on first use into an environment of its own; None where it cannot be had."""
    root = cache_directory() / f"agentsview-{PEER_VERSION}"
    program = root / "bin" / "agentsview"
    if not program.exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", root], check=True, capture_output=True)
            package = f"agentsview=={PEER_VERSION}"
            subprocess.run([root / "bin" / "pip", "install", "--quiet", package], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            shutil.rmtree(root, ignore_errors=True)
            return None
    return program


def _peer(made: Sessions) -> tuple[float, float] | None:
    """Seconds and CPU seconds until the peer has read the same sessions; None where it cannot be had."""
    program = find_peer()
    if program is None:
        return None
    with tempfile.TemporaryDirectory(prefix="bench-peer-") as directory:
        first_run_data.place(made, Path(directory) / ".copilot" / "session-state")
        environ = {"HOME": directory, "PATH": "/usr/bin:/bin", "DO_NOT_TRACK": "1", "AGENTSVIEW_NO_DAEMON": "1"}
        started = time.monotonic()
        process = subprocess.Popen(
            [program, "sync"], env=environ, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert process.stdout is not None
        said = process.stdout.read().decode()
        finished = measure.wait(process, started)
        if finished.exit_code:
            raise RuntimeError(f"agentsview: {said[-500:]}")
    return finished.wall_seconds, finished.cpu_seconds
