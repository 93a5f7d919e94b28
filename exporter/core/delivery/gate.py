"""Whether a sink may be sent to: open, waiting after a failure, or closed until its token changes.

While a sink is failing only one request at a time probes it, so that a thousand sessions do not send at once.
All times are of a monotonic clock that the caller reads.
"""

import math


class Gate:
    """The state of one sink between requests. While it is `closed` nothing is sent until the token changes."""

    def __init__(self) -> None:
        self.failures = 0
        self.closed_for_token: str | None = None
        self.closed = False
        self.alarm = False
        self._closed_until = math.inf
        self._hold_until = 0.0
        self._probing = False

    def ready(self, now: float) -> float | None:
        """Return None when a request may start, else the time before which none may.

        When the sink is failing, one caller at a time gets None. The time is infinite while that probe is under way,
        and while the gate is closed, unless it is closed for a time.
        """
        if self.closed and now < self._closed_until:
            return self._closed_until
        self.closed = False
        if self.failures == 0:
            return None
        if self._probing or now < self._hold_until:
            return float("inf") if self._probing else self._hold_until
        self._probing = True
        return None

    def succeeded(self) -> None:
        """Note an answer that shows a healthy sink."""
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
        """Note that the caller who was let through had nothing to send after all."""
        self._probing = False

    def unauthorized(self, token: str | None, until: float = math.inf) -> None:
        """Close the gate: the sink refused this token, or has no room until then."""
        self.closed = True
        self._closed_until = until
        self.closed_for_token = token
        self._probing = False

    def token_is(self, token: str | None) -> None:
        """Open the gate again when the token is another than the one that was refused."""
        if self.closed and token != self.closed_for_token:
            self.closed = False
            self.failures = 0
            self.closed_for_token = None
