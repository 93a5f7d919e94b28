"""The feed of one OTLP signal: records of the events, made once for all the signals of an endpoint."""

import os
import time
from collections.abc import Sequence

import pytest

from exporter.core.delivery.position import Mark
from exporter.core.delivery.reconcile import Reconciliation, Walk
from exporter.pipeline.metric_sender import MetricSender
from exporter.pipeline.record_feed import Mapper, RecordFeed, has_ended
from otel.bridge import Bridge, SignalOptions
from otel.machines.metrics.measurements import pack
from otel.model import Measurement
from tests.daemon.telemetry import DEMO
from tests.pipeline.parts import LIMITS, Parts

pytestmark = pytest.mark.anyio
_OPEN = 22
"""So many events of the demo's session leave an interaction, a turn and a tool open."""


def _pack(measured: Sequence[list[Measurement]]) -> bytes:
    return pack([one for some in measured for one in some])


def _mapper(parts: Parts) -> Mapper:
    return Mapper(parts.reader, lambda session: Bridge(session, SignalOptions()))


async def test_signals_share_one_reading(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO)
    file.refresh(parts.files)
    mapper = _mapper(parts)
    traces, logs = RecordFeed(mapper, "traces"), RecordFeed(mapper, "logs", repeats=False)

    spans = await traces.next(file, Walk(file.generation), None, LIMITS)
    records = await logs.next(file, Walk(file.generation), None, LIMITS)

    assert spans is not None and records is not None
    assert len(records.ids) == len(DEMO) > len(spans.ids) > 0
    assert parts.reader.events_read == len(DEMO)
    assert traces.reads_with is logs.reads_with is mapper
    assert await traces.next(file, Walk(file.generation), spans, LIMITS) is None


async def test_what_was_sent_is_left_out_and_seen(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO)
    file.refresh(parts.files)
    feed = RecordFeed(_mapper(parts), "traces")
    whole = await feed.next(file, Walk(file.generation), None, LIMITS)
    assert whole is not None
    compared = Reconciliation(dict.fromkeys(whole.ids[:2], b""), ())

    rest = await feed.next(file, Walk(file.generation, skip=compared.skip), None, LIMITS)

    assert rest is not None
    assert (rest.ids, rest.seen) == (whole.ids[2:], set(whole.ids))


async def test_what_it_means_to_the_sink(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO)
    file.refresh(parts.files)
    mapper = _mapper(parts)
    traces, logs = RecordFeed(mapper, "traces"), RecordFeed(mapper, "logs", repeats=False)
    segment = await traces.next(file, Walk(file.generation), None, LIMITS)
    assert segment is not None

    # The mark counts events, however many records they have led to.
    assert traces.taken(segment, []) == (len(DEMO), segment.last_id)
    assert not traces.holds_events
    assert traces.known({"a": b"x"}) == {"a": b"x"}
    assert (traces.skip(lambda: {"a"}), logs.skip(lambda: {"a"})) == ({"a"}, None)
    assert traces.stream("s", Mark(remote_id="r")) == "r"


async def test_metrics_are_packed_to_be_counted(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO)
    file.refresh(parts.files)

    def no_sums(_: bytes | None) -> None:
        raise AssertionError("nothing is summed up here")

    sender = MetricSender(no_sums, 5.0)  # type: ignore[arg-type]
    feed = RecordFeed(_mapper(parts), "metrics", pack=_pack, sums=sender)
    segment = await feed.next(file, Walk(file.generation), None, LIMITS)
    assert segment is not None

    assert [bool(line) for line in segment.lines] == [True] + [False] * (len(segment.ids) - 1)
    assert feed.sums.counts
    assert feed.sums.of(segment) == segment.lines[:1]
    assert feed.stream("run-1", None) == "run-1"


async def test_a_session_that_was_left_open_has_an_ending_once(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO[:_OPEN])
    file.refresh(parts.files)
    feed = RecordFeed(_mapper(parts), "traces")
    walk = Walk(file.generation)
    segment = await feed.next(file, walk, None, LIMITS)
    assert segment is not None
    walk.advance(segment)
    assert await feed.ending(file, walk) is None  # it was written just now
    assert not feed.is_left_open(file)

    long_ago = time.time() - 3_600
    os.utime(written.path, (long_ago, long_ago))
    file.refresh(parts.files)

    assert has_ended(file) and feed.is_left_open(file)
    ending = await feed.ending(file, walk)
    assert ending is not None and ending.ids
    assert await feed.ending(file, walk) is None
    feed.forget(file)
