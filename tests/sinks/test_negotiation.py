"""What one request may hold, as the floor of the wire, the receiver's offer and a refusal have it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from exporter.core.delivery.verdict import Accepted, Deleted, Gone, Later, LessCompression, Verdict
from exporter.sinks.mission_control import MissionControlSink
from exporter.sinks.sink import Registered
from exporter.sinks.transport import HttpAnswer

pytestmark = pytest.mark.anyio


class Scripted:
    """A transport that gives the next of its answers and remembers what was asked."""

    def __init__(self, *answers: HttpAnswer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    async def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, *, answer_bytes_max: int = 1 << 20
    ) -> HttpAnswer:
        self.asked.append((method, path, dict(headers), body))
        return self.answers.pop(0)

    async def close(self) -> None:
        pass


def _sink(*answers: HttpAnswer, **options: Any) -> tuple[MissionControlSink, Scripted]:
    transport = Scripted(*answers)
    return MissionControlSink("mc", "https://mc.example/agents", transport, token=lambda: None, **options), transport


def _registered(**capabilities: Any) -> HttpAnswer:
    body: dict[str, Any] = {"id": "r", "task_id": "t"}
    if capabilities:
        body["capabilities"] = capabilities
    return HttpAnswer(200, {}, json.dumps(body).encode())


async def test_at_the_floor_500_events_a_megabyte_and_8_megabytes_for_one_event() -> None:
    sink, _ = _sink(_registered())

    await sink.register("s", None)

    limits = sink.limits()
    assert limits.events_max == 500
    assert 900_000 <= limits.bytes_max <= 1_100_000
    assert limits.event_bytes_max == 8 << 20


async def test_a_receiver_may_offer_less() -> None:
    sink, _ = _sink(_registered(max_body=100_000, max_events=7, max_event_bytes=50_000))

    await sink.register("s", None)

    limits = sink.limits()
    assert (limits.events_max, limits.event_bytes_max) == (7, 50_000)
    assert limits.bytes_max <= 100_000


async def test_a_receiver_may_offer_more_and_larger_events() -> None:
    sink, _ = _sink(_registered(max_body=64 << 20, max_events=100_000, max_event_bytes=16 << 20))

    await sink.register("s", None)

    limits = sink.limits()
    assert limits.event_bytes_max == 16 << 20
    assert limits.bytes_max < 64 << 20, "one batch must not fill the memory whatever is offered"


async def test_a_body_that_was_refused_makes_the_next_ones_smaller_for_good() -> None:
    sink, _ = _sink(_registered())
    await sink.register("s", None)

    sink.body_refused(1_000_000)
    first = sink.limits().bytes_max
    sink.body_refused(first)

    assert first <= 500_000
    assert sink.limits().bytes_max <= 250_000


async def test_the_words_of_a_newer_receiver_are_passed_over() -> None:
    sink, _ = _sink(_registered(ack=True, telepathy={"range": 3}))

    answer = await sink.register("s", None)

    assert isinstance(answer, Registered)
    assert sink.capabilities.ack


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"id":7}', b'{"id":"r","capabilities":{"ack":"yes"}}']
)
async def test_an_answer_to_a_registration_that_names_no_session_waits_for_a_person(body: bytes) -> None:
    sink, _ = _sink(HttpAnswer(200, {}, body))

    answer = await sink.register("s", None)

    assert isinstance(answer, Later)
    assert answer.alarm


async def test_an_empty_id_is_no_id() -> None:
    sink, _ = _sink(HttpAnswer(200, {}, b'{"id":""}'))

    assert isinstance(await sink.register("s", None), Later)


async def test_the_returned_id_is_quoted_in_paths() -> None:
    sink, transport = _sink(HttpAnswer(200, {}, b""))

    await sink.send("a/b ?#é", ["e"], [b'{"id":"e"}'])

    assert transport.asked[0][1] == "/sessions/a%2Fb%20%3F%23%C3%A9/events"


@pytest.mark.parametrize(
    ("ack", "trusted", "rejected"),
    [
        ({"accepted": 2, "duplicates": 0, "rejected": [], "count": 2, "digest": "0"}, True, ()),
        ({"accepted": 0, "duplicates": 2, "rejected": [], "count": 2, "digest": "0"}, True, ()),
        ({"accepted": 1, "duplicates": 0, "rejected": ["b"], "count": 1, "digest": "0"}, True, ("b",)),
        ({"accepted": 0, "duplicates": 0, "rejected": [], "count": 0, "digest": "0"}, False, ()),
        ({"accepted": 5, "duplicates": 0, "rejected": [], "count": 5, "digest": "0"}, False, ()),
    ],
)
async def test_an_acknowledgement_must_account_for_every_event(
    ack: dict[str, Any], trusted: bool, rejected: tuple[str, ...]
) -> None:
    sink, _ = _sink(_registered(ack=True), HttpAnswer(200, {}, json.dumps({"ack": ack}).encode()))
    await sink.register("s", None)

    sent = await sink.send("r", ["a", "b"], [b'{"id":"a"}', b'{"id":"b"}'])

    assert (sent.verdict, sent.trusted, sent.rejected) == (Accepted(), trusted, rejected)


async def test_without_the_capability_an_empty_or_a_json_answer_is_an_acceptance_and_no_other() -> None:
    answers = (HttpAnswer(204, {}, b""), HttpAnswer(200, {}, b'{"ok":true}'), HttpAnswer(200, {}, b"<html>"))
    sink, transport = _sink(_registered(), *answers)
    await sink.register("s", None)

    sent = [await sink.send("r", ["a"], [b'{"id":"a"}']) for _ in range(3)]

    assert [(one.verdict, one.trusted) for one in sent[:2]] == [(Accepted(), True)] * 2
    assert isinstance(sent[2].verdict, Later) and sent[2].verdict.alarm
    assert all("Idempotency-Key" not in headers for _, _, headers, _ in transport.asked)


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"ack":{}}'])
async def test_with_the_capability_what_is_not_named_is_not_taken(body: bytes) -> None:
    sink, _ = _sink(_registered(ack=True), HttpAnswer(200, {}, body))
    await sink.register("s", None)

    sent = await sink.send("r", ["a"], [b'{"id":"a"}'])

    assert not sent.trusted


@pytest.mark.parametrize(
    ("capabilities", "body", "verdict"),
    [
        ({}, b"", Gone()),
        ({}, b"<html>gone</html>", Gone()),
        ({"ack": True}, b'{"error":{"kind":"no_such_page"}}', Gone()),
        ({"deletes": True}, b"", Deleted()),
        ({}, b'{"error":{"kind":"deleted_session"}}', Deleted()),
        ({}, b'{"error":{"kind":"expired_session"}}', Deleted()),
    ],
)
async def test_410_ends_a_session_where_the_receiver_declared_that(
    capabilities: dict[str, bool], body: bytes, verdict: Verdict
) -> None:
    sink, _ = _sink(_registered(**capabilities), HttpAnswer(410, {}, body))
    await sink.register("s", None)

    assert (await sink.send("r", ["a"], [b'{"id":"a"}'])).verdict == verdict


async def test_encodings_are_tried_from_the_best_to_none_and_refusals_are_remembered() -> None:
    refusal, fine = HttpAnswer(415, {}, b""), HttpAnswer(200, {}, b"")
    sink, transport = _sink(_registered(encodings=["gzip", "zstd", "br"]), refusal, refusal, fine, fine)
    await sink.register("s", None)
    line = b'{"id":"a","data":"%s"}' % (b"x" * 5_000)

    verdicts = [(await sink.send("r", ["a"], [line])).verdict for _ in range(4)]

    assert verdicts == [LessCompression(), LessCompression(), Accepted(), Accepted()]
    assert [asked[2].get("Content-Encoding") for asked in transport.asked[1:]] == ["zstd", "gzip", None, None]


async def test_415_to_a_body_that_was_not_compressed_waits_for_a_person() -> None:
    sink, _ = _sink(_registered(), HttpAnswer(415, {}, b""))
    await sink.register("s", None)

    sent = await sink.send("r", ["a"], [b'{"id":"a"}'])

    assert isinstance(sent.verdict, Later)
    assert sent.verdict.alarm


async def test_reports_and_live_events_go_only_where_they_are_taken() -> None:
    sink, transport = _sink(_registered(ack=True))
    await sink.register("s", None)

    await sink.report("/sessions/r", "PUT", {"title": "x"})
    await sink.live("r", [b'{"id":"a"}'])

    assert len(transport.asked) == 1
