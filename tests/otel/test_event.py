"""Reading events: what is well formed at once, what is not as far as it goes, and never an exception."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel.event import nanoseconds, payload, read
from otel.payloads import Notification, Turn, UsageRecord, UserMessage

LINE = (
    b'{"type":"assistant.turn_start","data":{"turnId":"0","more":[1]},"id":"e-1",'
    b'"timestamp":"2026-11-18T09:58:14.340Z","parentId":"e-0","agentId":"a-1","extra":true}'
)


def test_an_event_has_its_envelope_and_its_data_raw() -> None:
    event = read(LINE)

    assert event is not None
    assert (event.type, event.id, event.parent_id, event.agent_id) == ("assistant.turn_start", "e-1", "e-0", "a-1")
    assert event.time_ns == 1_794_995_894_340_000_000
    assert json.loads(bytes(event.data)) == {"turnId": "0", "more": [1]}
    assert payload(event, Turn).turn_id == "0"


@pytest.mark.parametrize(
    "line",
    [b"", b"x", b"[]", b"7", b"{}", b'{"type":"a"}', b'{"id":"a"}', b'{"type":"a","id":""}', b'{"type":1,"id":"a"}',
     b'{"type":"a","id":"b"', b"\0\0\0", b'{"type":"\xff","id":"b"}'],
)  # fmt: skip
def test_what_is_no_event_reads_as_none(line: bytes) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (b'{"type":"a","id":"b","timestamp":7,"agentId":[],"data":5}', ("a", "b", 0, None)),
        (b'{"type":"a","id":"b","data":{"x":"\\ud800"},"agentId":"c"}', ("a", "b", 0, "c")),
        (b'{"type":"","id":"b","data":{},"agentId":"c"}', ("", "b", 0, "c")),
        (b'{"type":"","id":"b","data":{"x":"\\ud800"},"agentId":"c"}', ("", "b", 0, "c")),
        (b'{"type":"a","data":{"x":' + b"[" * 9999 + b"]" * 9999 + b'},"id":"b","agentId":"c"}', ("a", "b", 0, "c")),
    ],
)
def test_what_is_odd_reads_as_far_as_it_goes(line: bytes, kept: tuple[object, ...]) -> None:
    event = read(line)

    assert event is not None
    assert (event.type, event.id, event.time_ns, event.agent_id) == kept


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2026-11-18T09:58:14.340Z", 1_794_995_894_340_000_000),
        ("2026-11-18T09:58:14Z", 1_794_995_894_000_000_000),
        ("2026-11-18T10:58:14.340+01:00", 1_794_995_894_340_000_000),
        ("2026-11-18T09:58:14.340123Z", 1_794_995_894_340_123_000),
        ("1969-12-31T23:59:59.000Z", 0),
        ("9999-12-31T23:59:59.999Z", 2**63 - 1),
        ("yesterday", 0),
        ("", 0),
        ("2026-11-18T09:58:14.\u0969\u096a\u0966Z", 0),
    ],
)
def test_timestamps_are_nanoseconds_or_nothing(timestamp: str, expected: int) -> None:
    assert [nanoseconds(timestamp), nanoseconds(timestamp)] == [expected, expected]


def test_a_field_of_another_type_has_its_default_and_the_others_stay() -> None:
    event = read(b'{"type":"t","id":"i","data":{"source":7,"delivery":"idle","turnId":null,"agentMode":{"x":1}}}')
    assert event is not None

    said = payload(event, UserMessage)

    assert (said.source, said.delivery, said.turn_id, said.agent_mode) == (None, "idle", None, None)


def test_a_nested_field_of_another_type_leaves_its_neighbours() -> None:
    event = read(b'{"type":"t","id":"i","data":{"kind":{"type":"shell_completed","exitCode":"no","shellId":"s"}}}')
    assert event is not None

    kind = payload(event, Notification).kind

    assert (kind.type, kind.exit_code, kind.shell_id) == ("shell_completed", None, "s")


@pytest.mark.parametrize("data", [b"5", b"null", b"[]", b'"x"', b'{"usage":[]}', b'{"usage":{"model":{}}}'])
def test_data_of_another_shape_is_all_defaults(data: bytes) -> None:
    event = read(b'{"type":"t","id":"i","data":' + data + b"}")
    assert event is not None

    assert payload(event, UsageRecord) == UsageRecord()


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(alphabet=st.characters())),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["type", "id", "timestamp", "parentId", "agentId", "data", "time_ns"]), _JSON))
def test_any_object_reads_without_an_exception(fields: dict[str, object]) -> None:
    event = read(json.dumps(fields).encode())

    if event is not None:
        assert event.id == fields["id"] or max(event.id) >= "\ud800"
        msgspec.json.encode(payload(event, UserMessage))


@given(st.binary())
def test_any_bytes_read_without_an_exception(line: bytes) -> None:
    assert read(line) is None or line.lstrip().startswith(b"{")
