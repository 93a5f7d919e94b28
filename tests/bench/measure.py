"""Reads what a tree of processes costs (CPU, memory, descriptors) from /proc, and describes the machine."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

PROC = Path("/proc")
Sample = TypeVar("Sample")


@dataclass(frozen=True, slots=True)
class Finished:
    """How a process ended; `cpu_seconds` is user plus system of itself and of every child it waited for."""

    exit_code: int
    cpu_seconds: float
    wall_seconds: float
    rss_max_bytes: int


def tree(root: int) -> list[int]:
    """The process and its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) is not None:
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found.extend(children.get(process, []))
    return found


def cpu_seconds(root: int) -> float:
    """User plus system seconds of the living processes of the tree, exact to microseconds, ended threads included."""
    return sum(_cpu_clock(process) for process in tree(root))


def cpu_seconds_in_all(root: int) -> float:
    """As `cpu_seconds`, with the children that the process has waited for, in steps of 10 ms."""
    stat = _stat(root)
    waited = 0 if stat is None else int(stat[13]) + int(stat[14])
    return cpu_seconds(root) + waited / os.sysconf("SC_CLK_TCK")


def pss_bytes(root: int) -> int:
    """Proportional set size of the tree: memory shared with others is counted by its share."""
    return sum(_pss(process) for process in tree(root))


def largest_rss_bytes(root: int) -> int:
    """The most memory that a living process of the tree has had; unlike what `wait` tells, since it became itself.

    The kernel counts what the process that started it had at that moment to what a child is told to have had.
    """
    return max(_status_bytes(process, "VmHWM:") for process in tree(root))


def descriptors(root: int) -> int:
    """Open file descriptors of the tree."""
    total = 0
    for process in tree(root):
        try:
            total += len(list((PROC / str(process) / "fd").iterdir()))
        except OSError:
            continue
    return total


@contextmanager
def sampled(seconds: float, look: Callable[[], Sample]) -> Iterator[list[Sample]]:
    """Look at once, and then again and again in a thread until the block ends; the list grows meanwhile."""
    samples, over = [look()], threading.Event()

    def sample() -> None:
        while not over.wait(seconds):
            samples.append(look())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield samples
    finally:
        over.set()
        sampler.join()


def stop(process: subprocess.Popen[bytes], started: float) -> Finished:
    """Asks for the end, waits for it and returns what the kernel accounted; `started` is a `time.monotonic()`."""
    os.kill(process.pid, signal.SIGTERM)
    return wait(process, started)


def wait(process: subprocess.Popen[bytes], started: float) -> Finished:
    """Waits for the end without asking for it; see `stop`."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Finished(
        process.returncode, usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss * 1024
    )


def wait_until(condition: Callable[[], bool], timeout_seconds: float, what: str) -> None:
    """Returns when the condition holds; raises TimeoutError naming `what` when it never does."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_seconds:.0f} s")
        time.sleep(0.002)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, int(len(ordered) * share + 0.999999) - 1))]


def machine() -> dict[str, str]:
    """What a reader must know of the machine to compare figures."""
    memory = next(line for line in (PROC / "meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    processors = (PROC / "cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in processors if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{int(memory.split()[1]) / 1024**2:.0f} GiB",
        "system": f"{_distribution()}, Linux {platform.release()}",
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def _stat(process: int) -> list[str] | None:
    """The fields after the command name, which may itself hold spaces and brackets: index 0 is the state."""
    try:
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _cpu_clock(process: int) -> float:
    """Reads the clock behind clock_getcpuclockid(3), which Python has no function for; /proc only has 10 ms steps."""
    try:
        return time.clock_gettime((~process << 3) | 2)
    except OSError:
        return 0.0


def _status_bytes(process: int, field: str) -> int:
    try:
        status = (PROC / str(process) / "status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(field)), 0)


def _pss(process: int) -> int:
    try:
        rollup = (PROC / str(process) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")), 0)
