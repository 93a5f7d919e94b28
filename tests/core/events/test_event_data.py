"""Reading an event's data, whatever is in it."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.agents.registry import read_claim
from exporter.core.events.envelope import Envelope, read_object
from exporter.core.events.summary import Summary

DEEP = b"[" * 5_000 + b"]" * 5_000


ODD = (rb'"\ud83d"', rb'"\udc00 \ud83d\ud83d\ude00"', b"1e400", b"-" + b"9" * 5000, DEEP)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb'{"a":"x \ud83d","b":1}', {"a": "x \ufffd", "b": 1}),
        (rb'{"a":"\udc00\ud83d\ud83d\ude00\uD83D"}', {"a": "\ufffd\ufffd😀\ufffd"}),
        (rb'{"a":"\\ud83d \\\ud83d"}', {"a": "\\ud83d \\\ufffd"}),
        (rb'{"\ud83d":1,"b":2}', {"\ufffd": 1, "b": 2}),
        (b'{"a":1e400,"b":[-1e400,2.5]}', {"a": None, "b": [None, 2.5]}),
        (b'{"a":%b,"b":1}' % (b"9" * 5000), {"a": None, "b": 1}),
        (b'{"a":1,"b":1e400,"a":2}', {"a": 2, "b": None}),
        (b'{"a":%b,"b":{"c":{"d":%b},"e":1}}' % (DEEP, DEEP), {"a": None, "b": {"c": {"d": None}, "e": 1}}),
        (b' \n{"a":1e400} ', {"a": None}),
        (b"", {}),
        (b"null", {}),
        (b'[1e400,"a"]', {}),
        (b'{"a":', {}),
        (b'{"a":%b' % DEEP, {}),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        (b'{"a":NaN,"b":1}', {"a": None, "b": 1}),
    ],
)
def test_what_can_be_read_is_read(written: bytes, read: dict[str, Any]) -> None:
    assert read_object(written) == read


@given(st.dictionaries(st.text(), VALUES), st.sampled_from(ODD))
def test_odd_values_hide_nothing_beside_them(data: dict[str, Any], odd: bytes) -> None:
    written = json.dumps(data).encode()
    separator = b"," if data else b""

    read = read_object(b'{"odd one":%b%b%b' % (odd, separator, written[1:]))

    assert {name: value for name, value in read.items() if name != "odd one"} == json.loads(written)


@given(st.binary() | st.text().map(str.encode) | st.builds(lambda odd: b'{"a":' + odd + b"}", st.binary()))
def test_it_never_raises(written: bytes) -> None:
    assert isinstance(read_object(written), dict)


@pytest.mark.parametrize("odd", ODD)
def test_a_summary_sees_an_answer_title_and_usage_beside_odd_values(odd: bytes) -> None:
    summary = Summary()
    for type, data in (
        ("permission.requested", b'{"requestId":"r"}'),
        ("permission.completed", b'{"requestId":"r","x":%b}'),
        ("session.title_changed", b'{"title":"Otters","x":%b}'),
        ("session.usage_record", b'{"usage":{"inputTokens":5,"cost":1},"x":%b}'),
    ):
        summary.add(Envelope("e", type, data=msgspec.Raw(data.replace(b"%b", odd))))

    assert (summary.state, summary.waiting, summary.title) == ("working", [], "Otters")
    assert summary.recorded == {"input": 5, "cost": 1}


@pytest.mark.parametrize("odd", ODD)
def test_an_agent_is_known_beside_odd_values(odd: bytes) -> None:
    data = msgspec.Raw(b'{"agentName":"diver","toolCallId":"c","x":%b}' % odd)

    claim = read_claim(Envelope("e", "subagent.started", data=data))

    assert (claim.agent, claim.name) == ("c", "diver")
