"""An event comes out of the receiver byte for byte as it went in, whatever JSON it is."""

import json
from collections.abc import Callable
from hashlib import sha256

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.events import digest
from exporter.missioncontrol.ingest.batch import read_elements

pytestmark = pytest.mark.anyio

ODD = {
    "number beyond 64 bits": b'{"type":"x","id":"e","data":{"n":9223372036854775809}}',
    "number beyond a double": b'{"type":"x","id":"e","data":{"n":1e400}}',
    "long fraction": b'{"type":"x","id":"e","data":{"n":0.1000000000000000055511151231257827}}',
    "duplicate keys": b'{"type":"x","id":"e","data":{"a":1,"a":2},"data":{"b":1}}',
    "line separator": '{"type":"x","id":"e","data":{"t":"a\u2028b\u2029c"}}'.encode(),
    "lone surrogate": b'{"type":"x","id":"e","data":{"t":"\\ud83d","u":"\\udc00\\ud800"}}',
    "lone surrogate in a key": b'{"type":"x","id":"e","data":{"\\ud83d":1}}',
    "lone surrogate in the agent": b'{"type":"x","id":"e","agentId":"\\ud83d","timestamp":"\\ud83d"}',
    "escaped and plain text": '{"type":"x","id":"e","data":{"t":"\\u00e9é\\/\\u0000"}}'.encode(),
    "deep arrays": b'{"type":"x","id":"e","data":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "deep objects": b'{"type":"x","id":"e","data":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
    "odd whitespace": b'{ "type" :\t"x",\r\n  "id" : "e" , "data" : { } }',
    "envelope fields of other types": b'{"type":7,"id":"e","timestamp":[],"agentId":{},"ephemeral":"yes","parentId":1}',
    "unknown fields": b'{"zzz":{"a":[null]},"type":"no.such.type","id":"e","version":3}',
    "id last": b'{"data":{"id":"inner"},"type":"x","id":"e"}',
}


@pytest.mark.parametrize("event", ODD.values(), ids=ODD.keys())
async def test_an_odd_event_comes_out_as_it_went_in(client: httpx.AsyncClient, event: bytes) -> None:
    body = b' { "other": [1], "events" : [ ' + event + b"\n,\t" + b'{"type":"y","id":"after"}' + b' ] , "more":{} } '

    answer = await client.post("/agents/sessions/s/events", content=body)

    ack = answer.json()["ack"]
    assert (ack["count"], ack["rejected"]) == (2, [])
    after = b'{"type":"y","id":"after"}'
    content = (await client.get("/api/v1/sessions/s/events")).content
    assert content == b'{"events":[' + event + b"," + after + b'],"next":null}'
    assert ack["digest"] == digest.total([("e", sha256(event).digest()), ("after", sha256(after).digest())])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
separators = st.sampled_from([b"", b" ", b"\n", b"\t\r\n "])


@given(st.lists(json_values, max_size=6), separators, st.booleans(), st.booleans())
def test_the_elements_are_the_exact_slices(values: list[object], gap: bytes, ascii: bool, scanned: bool) -> None:
    slices = [json.dumps(value, ensure_ascii=ascii).encode("utf-8", "surrogatepass") for value in values]
    spoiler = b',"x":"\\ud800"' if scanned else b""

    body = gap + b'{"events"' + gap + b":[" + gap + (gap + b"," + gap).join(slices) + gap + b"]" + spoiler + b"}" + gap

    assert read_elements(body).events == slices


async def test_a_session_of_many_pages_is_the_same_bytes(
    client: httpx.AsyncClient, make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    events = [make_event(f"e{number}", data={"n": number}) for number in range(57)]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    pages, after = [], ""
    while True:
        content = (await client.get(f"/api/v1/sessions/s/events?limit=10{after}")).content
        pages += read_elements(content).events
        following = json.loads(content)["next"]
        if following is None:
            break
        after = f"&after={following}"

    assert pages == events
