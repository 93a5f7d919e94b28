"""A shipper, its sessions and a receiver that nothing but loopback reaches; counts what is lost and what came twice."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.faults.receiver import Receiver
from tests.faults.shippers import Place, Shipper
from tests.program.session_files import SessionFile, event_id
from tests.program.waiting import until
from tests.queued import Stopwatch
from tests.real.cage import Cage, kill

PATIENCE_SECONDS: Final = 12.0
"""How long the last event is waited for; a shipper that needs longer is counted as it stands then."""
START_SECONDS: Final = 15.0
DETACH: Final = 2


class Lab:
    """What a fault is done to."""

    def __init__(self, root: Path, cage: Cage, shipper: Shipper, name: str) -> None:
        self.cage, self.shipper, self.name = cage, shipper, name
        self.home, self.state = root / "copilot", root / "state"
        (self.home / "session-state").mkdir(parents=True)
        self.state.mkdir(mode=0o700)
        self.receiver = Receiver(cage.listen())
        self.place = Place(self.home, self.state, root, self.receiver.port)
        self.expected: list[str] = []
        """What must arrive, in the order in which it was written."""
        self.facts: dict[str, object] = {}
        self.programs: list[subprocess.Popen[bytes]] = []
        self.mounted = False

    @property
    def ours(self) -> bool:
        """Whether it is the exporter, of which promises are demanded."""
        return self.name == "exporter"

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────────────────────
    def session(self, count: int = 0, *, words: str | None = None) -> SessionFile:
        """A new session with so many durable events."""
        session = SessionFile(self.home, seed=len(list((self.home / "session-state").iterdir()))).create()
        session.append_bytes(b"")
        if count:
            self.write(session, count, words=words)
        return session

    def write(self, session: SessionFile, count: int, *, words: str | None = None) -> list[bytes]:
        """Append durable events, which must arrive."""
        lines = [session.event(text=words) for _ in range(count)]
        session.append(lines)
        self.expect(lines)
        return lines

    def expect(self, lines: Sequence[bytes]) -> None:
        """Count on these too."""
        self.expected += [event_id(line) for line in lines]

    # ── the shipper ───────────────────────────────────────────────────────────────────────────────────────────────
    def start(self, *, second: bool = False) -> subprocess.Popen[bytes]:
        """Start it; it may need a while to be ready."""
        launch = self.shipper.launch(self.place, second=second)
        with (self.place.scratch / f"said-{len(self.programs)}").open("wb") as said:
            self.programs.append(
                self.cage.start(
                    launch.command,
                    environment=launch.environment,
                    directory=self.place.scratch,
                    stdout=said,
                    stderr=said,
                )
            )
        return self.programs[-1]

    @property
    def program(self) -> subprocess.Popen[bytes]:
        """The one that was started last."""
        return self.programs[-1]

    def kill(self) -> None:
        """SIGKILL."""
        kill(self.program)

    def stop(self, seconds_max: float = 15) -> float:
        """SIGTERM; the seconds until it was gone, after `seconds_max` by SIGKILL; without those of a busy machine."""
        watch = Stopwatch(self.program.pid)
        self.program.send_signal(signal.SIGTERM)
        while self.program.poll() is None:
            watch.look()
            if watch.seconds() > seconds_max:
                kill(self.program)
            time.sleep(0.005)
        return watch.seconds()

    def ready(self) -> None:
        """Deliver a first session, so that the shipper is known to run and to follow."""
        self.session(1)
        until(lambda: not self.missing(), f"the first event of {self.name}: {self.said()}", seconds=START_SECONDS)

    def said(self) -> str:
        """The end of what it printed."""
        return (self.place.scratch / f"said-{len(self.programs) - 1}").read_text(errors="replace")[-2000:]

    # ── the disk ──────────────────────────────────────────────────────────────────────────────────────────────────
    def small_disk(self, size: str) -> None:
        """Give the state directory a file system of its own."""
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(self.state)], check=True)
        self.mounted = True

    def fill_disk(self) -> Path:
        """Leave no byte free on it; removing what is returned gives the room back."""
        ballast = self.state / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(b"\0" * 4096):
                    pass
            except OSError:
                return ballast
        return ballast

    # ── what arrived ──────────────────────────────────────────────────────────────────────────────────────────────
    def missing(self) -> list[str]:
        """What should have arrived and has not."""
        with self.receiver.lock:
            return [one for one in self.expected if one not in self.receiver.stored]

    def settle(self, seconds_max: float = PATIENCE_SECONDS) -> float:
        """Wait until everything arrived, or for so long; the seconds that took."""
        started = time.monotonic()
        while time.monotonic() - started < seconds_max:
            with self.receiver.lock:
                done = len(self.receiver.stored) >= len(set(self.expected))
            if done and not self.missing():
                break
            time.sleep(0.02)
        return time.monotonic() - started

    def requests(self, number: int, seconds_max: float = START_SECONDS) -> None:
        """Wait until so many deliveries have come."""
        until(lambda: len(self.receiver.deliveries) >= number, f"delivery {number} of {self.name}", seconds=seconds_max)

    @property
    def lost(self) -> int:
        return len(self.missing())

    @property
    def duplicates(self) -> int:
        with self.receiver.lock:
            return sum(times - 1 for times in self.receiver.stored.values())

    def close(self) -> None:
        """End what was started here."""
        for program in self.programs:
            kill(program)
        self.receiver.shut()
        if self.mounted:
            ctypes.CDLL(None).umount2(os.fsencode(self.state), DETACH)
