"""Every answer means something, and a Retry-After header of any form never leads astray."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.core.delivery.verdict import (
    ALARM_WAIT_SECONDS,
    RETRY_AFTER_SECONDS_MAX,
    Accepted,
    Conflict,
    Deleted,
    Foreign,
    Gone,
    Later,
    LessCompression,
    Missing,
    Smaller,
    Suspect,
    Unauthorized,
    Unrestorable,
    Verdict,
    acceptance_fault,
    retry_after_seconds,
    verdict,
)
from tests.rows import each

NOW: Final = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
SPECIAL: Final[dict[int, Verdict]] = {
    400: Suspect(400),
    401: Unauthorized(401),
    403: Unauthorized(403),
    404: Missing(),
    409: Conflict(),
    410: Deleted(),
    413: Smaller(),
    415: LessCompression(),
    422: Suspect(422),
}
TRANSIENT: Final = {408, 425, 429} | set(range(500, 600)) - {501, 505}


DATE: Final = "Mon, {} Jan {} {}:{}:00 {}{}"
NUMBERS: Final = st.integers(0, 99) | st.integers(0, 10**30)


def expected(status: int) -> Verdict:
    if status in range(200, 300):
        return Accepted()
    if status in SPECIAL:
        return SPECIAL[status]
    if status in TRANSIENT:
        return Later(f"answered {status}")
    return Later(f"answered {status}", ALARM_WAIT_SECONDS, alarm=True)


@each(range(100, 600))
def test_every_status_has_its_verdict(status: int) -> None:
    assert verdict(status, None, NOW) == expected(status)


@pytest.mark.parametrize("status", [*sorted(TRANSIENT), 301, 302, 406, 501, 505])
def test_a_named_time_is_obeyed_whenever_it_is_later(status: int) -> None:
    judged = verdict(status, "7", NOW)

    assert isinstance(judged, Later)
    assert judged.after_seconds == 7.0


@pytest.mark.parametrize("status", [*sorted(SPECIAL), 200, 204])
def test_a_named_time_changes_no_other_verdict(status: int) -> None:
    assert verdict(status, "7", NOW) == expected(status)


@pytest.mark.parametrize(
    "header, seconds",
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("1, 2", None),
        ("3", 3.0),
        (" 3 ", 3.0),
        ("0", None),
        ("0.5", 0.5),
        ("-5", None),
        ("1e9", RETRY_AFTER_SECONDS_MAX),
        ("inf", RETRY_AFTER_SECONDS_MAX),
        ("9" * 400, RETRY_AFTER_SECONDS_MAX),
        ("Wed, 18 Nov 2026 12:00:03 GMT", 3.0),
        ("Wed, 18 Nov 2026 14:00:03 +0200", 3.0),
        ("Wed, 18 Nov 2026 12:00:03 -0000", 3.0),
        ("Wednesday, 18-Nov-26 12:00:03 GMT", 3.0),
        ("Wed Nov 18 12:00:03 2026", 3.0),
        ("Wed, 18 Nov 2026 11:59:00 GMT", None),
        ("Wed, 18 Nov 2099 12:00:00 GMT", RETRY_AFTER_SECONDS_MAX),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("Wed, 99 Nov 2026 12:00:03 GMT", None),
        ("Fri, 31 Dec 99999999999999999999 23:59:59 GMT", None),
        ("Wed, 18 Nov 2026 12:00:03 +99999999999999", None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds


@given(
    st.text() | st.builds(DATE.format, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["GMT", "+", "-"]), NUMBERS)
)
@example("Mon, 1 Jan 1 0:0:0 +9999")
@example("1 Jan 9999 24:00:00 -9999")
def test_no_header_makes_it_raise_or_wait_for_ever(header: str) -> None:
    seconds = retry_after_seconds(header, NOW)

    assert seconds is None or 0 < seconds <= RETRY_AFTER_SECONDS_MAX


@given(st.integers(-1000, 1000))
def test_a_date_is_the_time_until_then(seconds: int) -> None:
    header = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)

    assert retry_after_seconds(header, NOW) == (min(seconds, RETRY_AFTER_SECONDS_MAX) if seconds > 0 else None)


def test_410_of_a_receiver_that_has_not_declared_it_ends_nothing() -> None:
    assert verdict(410, None, NOW, deletes=False) == Gone()
    assert [verdict(status, None, NOW, deletes=False) for status in sorted({*SPECIAL} - {410})] == [
        SPECIAL[status] for status in sorted({*SPECIAL} - {410})
    ]


ACCEPTANCES: Final = [
    (200, "", b""),
    (201, "text/html", b""),
    (204, "application/json", b""),
    (200, "application/json", b'{"id":"a"}'),
    (200, "application/problem+json", b"[]"),
    (200, "text/plain", b' {"a": [1]}\n'),
    (202, "", b"[]"),
]
NO_ACCEPTANCES: Final = [
    (200, "text/html", b"<html>sign in</html>"),
    (200, "Text/HTML; charset=utf-8", b"{}"),
    (200, "application/json", b"<html>"),
    (200, "application/json", b'{"id":"a"'),
    (200, "application/json", b'{"id":"a"}{}'),
    (200, "application/json", b'"ok"'),
    (200, "application/json", b"1"),
    (200, "application/json", b"null"),
    (200, "text/plain", b"OK"),
    (200, "", b"\xff\xfe"),
    (200, "", b"[" * 100_000),
    (206, "application/json", b"{}"),
    (206, "", b""),
]


@each(ACCEPTANCES)
def test_an_empty_or_a_json_body_is_an_acceptance(answer: tuple[int, str, bytes]) -> None:
    assert acceptance_fault(*answer) is None


@each(NO_ACCEPTANCES)
def test_anything_else_is_none_and_alarms(answer: tuple[int, str, bytes]) -> None:
    fault = acceptance_fault(*answer)

    assert fault is not None
    assert verdict(answer[0], None, NOW, fault=fault) == Later(fault, ALARM_WAIT_SECONDS, alarm=True)


def test_a_body_that_does_not_end_is_no_acceptance() -> None:
    assert acceptance_fault(200, "application/json", b"{}", whole=False) is not None


@given(st.binary(max_size=200), st.sampled_from(["", "text/html", "application/json", "text/plain"]))
def test_no_body_makes_it_raise(body: bytes, content_type: str) -> None:
    acceptance_fault(200, content_type, body)


@pytest.mark.parametrize(
    ("status", "kind", "meant"),
    [
        (409, "session_of_another_token", Foreign()),
        (409, "something_else", Conflict()),
        (403, "restore_needs_admin", Unrestorable()),
        (403, "read_only", Unauthorized(403)),
        (403, "quota_exceeded", Unauthorized(403, 3600.0)),
        (400, "restore_needs_admin", Suspect(400)),
    ],
)
def test_the_name_of_an_error_says_that_it_concerns_the_session_alone(status: int, kind: str, meant: Verdict) -> None:
    assert verdict(status, None, NOW, kind=kind) == meant
