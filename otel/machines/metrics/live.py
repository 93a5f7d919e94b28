"""Metrics of ephemeral events: counts and times, none of their content.

Ephemeral events cannot be read again, so they give no spans and no log records. They are not redacted here, so only
known types, numbers and words from a fixed list are used.
"""

import re
from collections import OrderedDict
from typing import Final

import msgspec

from otel import instruments
from otel.event import nanoseconds
from otel.machines.metrics.measurements import Meter
from otel.model import Measurement
from otel.projection import is_known

OTHER: Final = "other"
_WAITS_MAX: Final = 1024
_SECONDS_MAX: Final = 7 * 86_400
# How the types of events end that begin and end a wait; what stands before is its kind.
_BEGINNINGS: Final = (".requested", "_required")
_ENDS: Final = (".completed", "_completed")
_USAGE: Final = "session.usage_info"
_CALL_RESULT: Final = "model.call_final_result"
_RESULTS: Final = frozenset(
    ("success", "http_400", "http_413", "http_429", "http_4xx", "http_5xx", "transport_error", "other_error")
)
_MCP: Final = "session.mcp_server_status_changed"
_CONNECTED: Final = {"connected": "success", "failed": "failure"}
_SANDBOX: Final = "sandbox.decision"
_SANDBOX_WORDS: Final = frozenset(
    (
        *("policy_resolved", "spawn_completed", "enforcement_state", "access_denied", "access_recorded"),
        *("bypass_decided", "permissive_retry_decided", "permissive_retry_completed"),
        *("process", "filesystem", "network", "routing", "bypass", "credentials", "platform"),
        *("resolved", "inactive", "engaged", "succeeded", "failed", "degraded", "denied", "approved", "declined"),
        *("allowed", "shell", "builtin_filesystem", "search", "web_fetch", "mcp", "lsp"),
        *("macos", "linux", "windows"),
    )
)
_ID_LENGTH_MAX: Final = 256
_TYPE: Final = re.compile(r"[A-Za-z_.]{1,80}")


class _Data(msgspec.Struct, gc=False):
    requestId: str = ""  # noqa: N815  the wire's own name
    result: str = ""
    tokenLimit: float = 0  # noqa: N815  the wire's own name
    currentTokens: float = 0  # noqa: N815  the wire's own name


class _Change(msgspec.Struct, gc=False):
    """What a server or the sandbox of a command came to."""

    status: str = ""
    kind: str = ""
    control: str = ""
    outcome: str = ""
    enforcementPoint: str = ""  # noqa: N815  the wire's own name
    platform: str = ""


_read: Final = msgspec.json.Decoder(_Data).decode
_read_change: Final = msgspec.json.Decoder(_Change).decode


class LiveMetering:
    """Measures ephemeral events; the caller passes each once, as it happens."""

    def __init__(self) -> None:
        self._pending: OrderedDict[tuple[str, str, str], int] = OrderedDict()

    def measure(self, session: str, type: str, data: bytes, timestamp: str, now_ns: int) -> list[Measurement]:
        """Return the measurements of an event; `now_ns` replaces an unreadable timestamp. Never raises."""
        time_ns = nanoseconds(timestamp) or now_ns
        shown_type = type if is_known(type) and _TYPE.fullmatch(type) else OTHER
        meter = Meter((None, session, None, None), time_ns)
        meter.note(instruments.LIVE_EVENTS, 1, shown_type)
        if type in (_MCP, _SANDBOX):
            _measure_change(type, data, meter)
            return meter.found
        requested, completed = _wait_kind(type, _BEGINNINGS), _wait_kind(type, _ENDS)
        if not requested and not completed and type not in (_USAGE, _CALL_RESULT):
            return meter.found
        try:
            facts = _read(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return meter.found
        if requested and 0 < len(facts.requestId) <= _ID_LENGTH_MAX:
            self._pending[session, requested, facts.requestId] = time_ns
            if len(self._pending) > _WAITS_MAX:
                self._pending.popitem(last=False)
        elif completed and (since := self._pending.pop((session, completed, facts.requestId), None)) is not None:
            seconds = (time_ns - since) / 1e9
            if 0 <= seconds <= _SECONDS_MAX:
                meter.note(instruments.LIVE_WAIT, seconds, completed)
        elif type == _USAGE and 0 < facts.currentTokens <= facts.tokenLimit:
            share = facts.currentTokens / facts.tokenLimit
            meter.note(instruments.LIVE_CONTEXT, share)
        elif type == _CALL_RESULT:
            result = facts.result if facts.result in _RESULTS else OTHER
            meter.note(instruments.LIVE_MODEL_CALLS, 1, result)
        return meter.found


def _measure_change(type: str, data: bytes, meter: Meter) -> None:
    try:
        change = _read_change(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    if type == _SANDBOX:
        told = (change.kind, change.control, change.outcome, change.enforcementPoint, change.platform)
        words = (word if word in _SANDBOX_WORDS else OTHER for word in told)
        meter.note(instruments.SANDBOX_OPERATIONS, 1, *words)
    elif change.status in _CONNECTED:
        meter.note(instruments.MCP_CONNECTIONS, 1, _CONNECTED[change.status])


def _wait_kind(type: str, endings: tuple[str, ...]) -> str:
    """Return the kind of wait that an event of this type begins, or ends; empty when it does not."""
    ending = next((one for one in endings if type.endswith(one)), "")
    return type.removesuffix(ending) if ending and is_known(type) else ""
