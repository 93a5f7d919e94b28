"""Whether a sink may be sent to: open, waiting after a failure, or closed until its token changes.

While a sink is failing only one request at a time probes it, so that a thousand sessions do not knock together.
All times are of a monotonic clock that the caller reads.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Go:
    """Send now."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Do not send before this time; it may be far away while a probe is under way."""

    until: float


@dataclass(frozen=True, slots=True)
class Closed:
    """Do not send until the token changes."""


Readiness: TypeAlias = Go | Hold | Closed


class Gate:
    """The state of one sink between requests."""

    def __init__(self) -> None:
        self.failures = 0
        self.closed_for_token: str | None = None
        self.closed = False
        self.alarm = False
        self._hold_until = 0.0
        self._probing = False

    def ready(self, now: float) -> Readiness:
        """Say whether a request may start. When the sink is failing, `Go` is said to one caller at a time."""
        if self.closed:
            return Closed()
        if self.failures == 0:
            return Go()
        if self._probing:
            return Hold(float("inf"))
        if now < self._hold_until:
            return Hold(self._hold_until)
        self._probing = True
        return Go()

    def succeeded(self) -> None:
        """Note an answer that shows the sink is well."""
        self.failures = 0
        self.alarm = False
        self._probing = False

    def failed(self, now: float, delay_seconds: float, *, alarm: bool = False) -> None:
        """Note a failure after which nothing is sent for `delay_seconds`."""
        self.failures += 1
        self.alarm = alarm
        self._probing = False
        self._hold_until = now + delay_seconds

    def unused(self) -> None:
        """Note that the caller who was told `Go` had nothing to send after all."""
        self._probing = False

    def unauthorized(self, token: str | None) -> None:
        """Close the gate: the sink refused this token."""
        self.closed = True
        self.closed_for_token = token
        self._probing = False

    def token_is(self, token: str | None) -> None:
        """Open the gate again when the token is another than the one that was refused."""
        if self.closed and token != self.closed_for_token:
            self.closed = False
            self.failures = 0
            self.closed_for_token = None
