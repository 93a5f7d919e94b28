"""How long a sink that keeps whole pieces lets the events of a session gather before it is sent any."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gathering:
    """Send once so many bytes are there, or nothing came for so many seconds, or the session has ended."""

    bytes_min: int
    seconds: float

    def wait_seconds(self, pending_bytes: int, quiet_seconds: float, *, ended: bool) -> float:
        """Return how long to wait for more; 0.0 when it is time to send."""
        if ended or pending_bytes >= self.bytes_min:
            return 0.0
        return max(0.0, self.seconds - quiet_seconds)
