"""Whether one session's events go to a sink now, or gather first, as the sink asks for."""

import time

from exporter.core.delivery.gathering import Gathering
from exporter.core.events.envelope import Envelope, decode
from exporter.sources.files.session_file import SessionFile

_LAST_LINE_BYTES_MAX = 64 << 10
_END = "session.shutdown"


class Gather:
    """Follows how a session's file grows, for one lane. Without a `policy` nothing is ever waited for."""

    def __init__(self, file: SessionFile, policy: Gathering | None) -> None:
        self.until = 0.0
        """When to look again, of the monotonic clock; in the past where nothing is waited for."""
        self._file = file
        self._policy = policy
        self._hurried = False
        self._seen: tuple[int, int] | None = None
        self._quiet_since = 0.0
        self._ended = False

    def waits(self, offset: int) -> bool:
        """Tell whether what stands after the offset is to gather on; `until` says how long."""
        self.until = 0.0
        pending = self._file.size - offset
        if self._policy is None or self._hurried or self._file.gone or pending <= 0:
            return False
        self._look()
        now = time.monotonic()
        wait = self._policy.wait_seconds(pending, now - self._quiet_since, ended=self._ended)
        self.until = now + wait if wait else 0.0
        return wait > 0

    def hurry(self) -> bool:
        """Wait for no more until the end of the file is reached; return whether something was waited for."""
        waited, self.until = self.until > time.monotonic(), 0.0
        self._hurried = self._policy is not None
        return waited

    def settled(self) -> None:
        """Note that the end of the file was reached: what comes now gathers again."""
        self.until, self._hurried = 0.0, False

    def _look(self) -> None:
        """Note when the file grew last: by the monotonic clock once it is watched, by the file's own time before."""
        seen = (self._file.generation, self._file.size)
        if seen == self._seen:
            return
        age = max(0.0, time.time() - self._file.modified)
        self._seen, self._quiet_since, self._ended = seen, time.monotonic() - age, self._last_type() == _END

    def _last_type(self) -> str:
        """Return the type of the last event, if the file ends with a whole line that is not very long."""
        try:
            with self._file.path.open("rb") as file:
                file.seek(max(0, self._file.size - _LAST_LINE_BYTES_MAX))
                lines = file.read(_LAST_LINE_BYTES_MAX).split(b"\n")
        except OSError:
            return ""
        last = decode(lines[-2]) if len(lines) > 1 and not lines[-1] else None
        return last.type if isinstance(last, Envelope) else ""
