"""The response of an OTLP endpoint, in the same form for HTTP and gRPC, without secrets."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from otel.encode.varint import INT64_MAX, fields, is_message

Signal: TypeAlias = Literal["traces", "logs", "metrics"]

MESSAGE_CHARACTERS_MAX: Final = 300
_SECRET_CHARACTERS_MIN: Final = 6
_HIDDEN: Final = "[hidden]"
_DATA: Final = (5, 7, 9)
"""The numbers of a metric's fields for a gauge, a sum and a histogram, in which the points are."""
_POINT: Final = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `status` is an HTTP status; gRPC codes are mapped to one.

    `retry_after` is the text of that header. `rejected` is how many records, or points, an endpoint did not take of a
    request that it accepted otherwise, and `message` is what it said: short, printable, without our secrets. `fault` is
    why a 2xx is no acceptance.
    """

    status: int
    retry_after: str | None = None
    rejected: int = 0
    message: str = ""
    fault: str | None = None


class NoAnswer(Exception):
    """No answer came: refused, reset, timed out, not resolved.

    `unsent` says that nothing of the request left, else nobody knows whether it was carried out.
    """

    def __init__(self, why: str, *, unsent: bool = False) -> None:
        super().__init__(why)
        self.unsent = unsent


def read_answer(
    status: int,
    retry_after: str | None,
    body: bytes,
    content_type: str,
    secrets: Iterable[str] = (),
    *,
    whole: bool = True,
) -> Answer:
    """Read an HTTP answer: the response of OTLP when it was accepted, else its status message; both may be JSON.

    A 2xx is an acceptance only when its body is empty or the response of OTLP: a sign-in page takes no spans. The body
    of any other answer never changes the meaning of the status. `whole` is False for a body that is too large or cannot
    be decoded.
    """
    kind = content_type.partition(";")[0].strip().lower()
    is_json = kind == "application/json"
    if not 200 <= status < 300:
        message = (_json(body) or {}).get("message") if is_json else _text(body, 2)
        return Answer(status, retry_after, 0, _message(message, secrets))
    is_response = not is_json and is_message(body) and is_message(_part(body, 1))
    if not is_response:  # JSON, whatever its type says
        is_response = is_json = _json(body) is not None
    if status == 206 or not whole or not is_response or (body and kind == "text/html"):
        return Answer(status, retry_after, fault=f"answered {status} with a body that is no response of OTLP")
    rejected, message = _json_success(body) if is_json else _success(body)
    return Answer(status, retry_after, rejected, _message(message, secrets))


def _message(found: object, secrets: Iterable[str]) -> str:
    return readable(found, secrets) if isinstance(found, str) else ""


def weight(signal: Signal, records: bytes) -> int:
    """Return how many spans, log records or points an endpoint counts in records of a request, as it rejects them."""
    each = [record for _, record in fields(records) if isinstance(record, bytes)]
    if signal != "metrics":
        return len(each)
    data = [value for metric in each for number, value in fields(metric) if number in _DATA]
    return sum(number == _POINT for one in data if isinstance(one, bytes) for number, _ in fields(one))


def readable(text: str, secrets: Iterable[str] = ()) -> str:
    """Return text that may go into a log: bounded, printable, and without these secrets or words of them."""
    for secret in secrets:
        for word in (secret, *secret.split()):
            if len(word) >= _SECRET_CHARACTERS_MIN:
                text = text.replace(word, _HIDDEN)
    text = "".join(character if character.isprintable() else " " for character in text[: 4 * MESSAGE_CHARACTERS_MAX])
    text = " ".join(text.split())
    return text if len(text) <= MESSAGE_CHARACTERS_MAX else text[: MESSAGE_CHARACTERS_MAX - 1] + "…"


def retry_delay(details: bytes) -> str | None:
    """Return the delay in the RetryInfo of a google.rpc.Status, in seconds as text, if it has one."""
    for number, detail in fields(details):
        if number != 3 or not isinstance(detail, bytes) or not _text(detail, 1).endswith("/google.rpc.RetryInfo"):
            continue
        delay = dict(fields(_part(_part(detail, 2), 1)))
        seconds, nanoseconds = delay.get(1, 0), delay.get(2, 0)
        if isinstance(seconds, int) and isinstance(nanoseconds, int) and seconds <= INT64_MAX:
            return f"{seconds + min(nanoseconds, 10**9) / 1e9:g}"
    return None


def _success(body: bytes) -> tuple[int, str]:
    """Read an Export…ServiceResponse, which is the same for all signals."""
    partial = _part(body, 1)
    rejected = next((value for number, value in fields(partial) if number == 1), 0)
    return (rejected if isinstance(rejected, int) and rejected <= INT64_MAX else 0), _text(partial, 2)


def _part(message: bytes, number: int) -> bytes:
    return next((value for found, value in fields(message) if found == number and isinstance(value, bytes)), b"")


def _text(message: bytes, number: int) -> str:
    return _part(message, number).decode("utf-8", "replace")


def _json_success(body: bytes) -> tuple[int, object]:
    partial = (_json(body) or {}).get("partialSuccess")
    if not isinstance(partial, dict):
        return 0, ""
    rejected = 0
    for key in ("rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"):
        count = partial.get(key, 0)
        if isinstance(count, str) and count.isascii() and count.isdigit() and len(count) < 20:
            count = int(count)  # JSON of protobuf writes 64 bits as text
        if isinstance(count, int):
            rejected = max(rejected, int(count))
    return rejected, partial.get("errorMessage")


def _json(body: bytes) -> dict[str, object] | None:
    """Return the object of a JSON body, an empty one of an empty body, None of any other."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
