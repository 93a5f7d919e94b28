"""The reference peer: syslog-ng from Debian's packages, unpacked beside the bench and never installed.

It follows the same file, drops the ephemeral events by a text search (cheaper than reading the envelope) and posts the
same JSON bodies to the same receiver. Its settings are the fastest of those tried; `python -m tests.bench tune` repeats
the trial. Smaller bodies suit it, and a small window (`log-iw-size`) slows it, because flow control stops the reader.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bench import measure
from tests.bench.generate import SessionFile, cache_directory, cached
from tests.bench.receiver import Receiver, Summary

PACKAGES = ("syslog-ng-core", "syslog-ng-mod-http", "libivykis0", "libnet1", "libpcre3", "libwrap0")
TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Tuning:
    """The settings that decide its speed."""

    fetch_limit: int = 1000
    window: int = 100_000
    workers: int = 1
    batch_lines: int = 5000
    batch_bytes: int = 250_000
    batch_timeout_ms: int = 100
    source: str = "file"

    def __str__(self) -> str:
        return (
            f"{self.source}, fetch {self.fetch_limit}, window {self.window}, workers {self.workers}, "
            f"batch {self.batch_lines} lines / {self.batch_bytes} bytes / {self.batch_timeout_ms} ms"
        )


BEST = Tuning()
TRIALS = (
    BEST,
    replace(BEST, source="wildcard-file"),
    replace(BEST, workers=2),
    replace(BEST, workers=4),
    replace(BEST, fetch_limit=100),
    replace(BEST, fetch_limit=10_000),
    replace(BEST, window=10_000),
    replace(BEST, window=1_000),
    replace(BEST, batch_lines=500),
    replace(BEST, batch_bytes=4_000_000, batch_lines=20_000),
    replace(BEST, batch_bytes=1_000_000),
    replace(BEST, batch_bytes=500_000, fetch_limit=100),
    replace(BEST, batch_bytes=1_000_000, source="wildcard-file"),
    replace(BEST, fetch_limit=100, window=10_000),
    replace(BEST, batch_bytes=100_000, fetch_limit=100),
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One peer's delivery of one file, from the start of its process to the last event's answer."""

    megabytes_per_second: float
    cpu_seconds_per_gigabyte: float
    seconds: float
    first_event_seconds: float
    steady_megabytes_per_second: float
    """From the first event to the last, without the start of the process."""
    cpu_seconds: float
    rss_max_bytes: int
    requests: int
    receiver_cpu_seconds: float


def delivery(file: SessionFile, summary: Summary, finished: measure.Finished, started: float) -> Delivery:
    """Turns one run into figures; raises when the receiver did not end with exactly the file's durable events."""
    if not summary.complete or summary.ids_digest != file.ids_digest:
        raise RuntimeError(f"{summary.distinct} of {file.durable} events arrived ({summary.events} with repeats)")
    seconds = summary.last_at - started
    return Delivery(
        file.size_bytes / 1e6 / seconds,
        finished.cpu_seconds / file.size_bytes * 1e9,
        seconds,
        summary.first_at - started,
        file.size_bytes / 1e6 / max(summary.last_at - summary.first_at, 1e-6),
        finished.cpu_seconds,
        finished.rss_max_bytes,
        summary.requests,
        summary.cpu_seconds,
    )


class SyslogNg:
    """An unpacked syslog-ng that can be run any number of times."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._program = root / "usr/sbin/syslog-ng"
        self._modules = next((root / "usr/lib/syslog-ng").glob("[0-9]*"))
        triplet = f"{platform.machine()}-linux-gnu"
        libraries = (root / "usr/lib/syslog-ng", root / "usr/lib" / triplet, root / "lib" / triplet)
        self._environ = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}

    def version(self) -> str:
        """Such as `3.38.1`; raises OSError or CalledProcessError when it cannot run here."""
        printed = subprocess.run(
            [self._program, "--version"], env=self._environ, capture_output=True, check=True, text=True
        ).stdout
        return printed.split("(")[1].split(")")[0]

    def deliver(self, file: SessionFile, receiver: Receiver, tuning: Tuning = BEST) -> Delivery:
        """Ships the whole file from a fresh state and stops."""
        receiver.reset(file.durable)
        with tempfile.TemporaryDirectory(prefix="bench-syslog-ng-") as scratch:
            directory = Path(scratch)
            followed = directory / "session" / "events.jsonl"
            followed.parent.mkdir()
            followed.symlink_to(file.path) if tuning.source == "file" else os.link(file.path, followed)
            (directory / "syslog-ng.conf").write_text(configuration(followed, receiver.url, file.session_id, tuning))
            started = time.monotonic()
            process = subprocess.Popen(
                [
                    self._program,
                    "--foreground",
                    "--no-caps",
                    "--stderr",
                    f"--module-path={self._modules}",
                    f"--cfgfile={directory / 'syslog-ng.conf'}",
                    f"--persist-file={directory / 'persist'}",
                    f"--pidfile={directory / 'pid'}",
                    f"--control={directory / 'control'}",
                ],
                env=self._environ,
                stderr=(directory / "log").open("wb"),
            )
            try:
                summary = receiver.summary(TIMEOUT_SECONDS)
            finally:
                finished = measure.stop(process, started)
            return delivery(file, summary, finished, started)


def configuration(followed: Path, url: str, session_id: str, tuning: Tuning) -> str:
    """The whole configuration file; nothing of the machine's own is included."""
    if tuning.source == "file":
        place = f'file("{followed}"'
    else:
        place = f'wildcard-file(base-dir("{followed.parent}") filename-pattern("events.jsonl") max-files(16)'
    return f"""@version: 3.38
options {{
    threaded(yes); stats-freq(0); use-dns(no); dns-cache(no); keep-hostname(yes); chain-hostnames(no);
    log-msg-size(8388608); log-fifo-size({max(tuning.window * 2, 20_000)}); keep-timestamp(no); mark-freq(0);
}};
source session {{
    {place} flags(no-parse, no-hostname) follow-freq(0.1) log-fetch-limit({tuning.fetch_limit})
        log-iw-size({tuning.window}));
}};
filter durable {{ not match('"ephemeral":true' value("MESSAGE") type(string) flags(substring)); }};
destination receiver {{
    http(url("{url}/sessions/{session_id}/events") method("POST") headers("Content-Type: application/json")
        body-prefix('{{"events":[') body("$MESSAGE") delimiter(",") body-suffix("]}}")
        batch-lines({tuning.batch_lines}) batch-bytes({tuning.batch_bytes}) batch-timeout({tuning.batch_timeout_ms})
        workers({tuning.workers}));
}};
log {{ source(session); filter(durable); destination(receiver); flags(flow-control); }};
"""


def find() -> SyslogNg | None:
    """The peer, fetched on first use; None where Debian's packages cannot be had or run."""
    root = cache_directory() / "syslog-ng"
    try:
        if not root.exists():
            _fetch(root)
        peer = SyslogNg(root)
        peer.version()
    except (OSError, StopIteration, subprocess.CalledProcessError):
        return None
    return peer


def _fetch(root: Path) -> None:
    """Downloads and unpacks; nothing is installed, and a half-done unpacking is not left behind."""
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        unpacked = Path(scratch) / "root"
        if os.getuid() == 0:
            subprocess.run(["apt-get", "update", "--quiet"], check=True, capture_output=True)
        subprocess.run(["apt-get", "download", "--quiet", *PACKAGES], cwd=scratch, check=True, capture_output=True)
        for package in sorted(Path(scratch).glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, unpacked], check=True)
        shutil.move(unpacked, root)


def tune(size_bytes: int, rounds: int) -> int:
    """Prints what each setting of `TRIALS` reaches; the first is the one in use."""
    peer = find()
    if peer is None:
        print("syslog-ng cannot be had here")
        return 1
    file = cached(size_bytes)
    with Receiver() as receiver:
        for _ in range(rounds):
            for tuning in TRIALS:
                run = peer.deliver(file, receiver, tuning)
                print(f"{run.megabytes_per_second:6.0f} MB/s {run.cpu_seconds_per_gigabyte:6.2f} CPU s/GB  {tuning}")
    return 0
