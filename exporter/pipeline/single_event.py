"""One event out of quarantine, sent by itself."""

import hashlib

import xxhash

from exporter.core.delivery.segment import Unsendable
from exporter.core.delivery.verdict import Accepted, Later
from exporter.pipeline.outcome import Delivered
from exporter.pipeline.sink_session import SinkSession
from exporter.sinks.sink import Sent


async def send_one(handover: SinkSession, event: Unsendable) -> str | None:
    """Send an event of the handover's session; return why the sink has it not, None when it has."""
    assert event.id is not None
    sink_state = handover.sink_state
    if not isinstance(await handover.prepare(), Delivered):
        return sink_state.last_error or "the sink does not take it now"
    assert handover.mark.remote_id is not None
    sent = await sink_state.sink.send(handover.mark.remote_id, [event.id], [event.raw])
    if (why := refusal(sent)) is not None:
        return why
    if event.id not in handover.delivered():
        proves = sink_state.sink.capabilities.digest
        digest = hashlib.sha256(event.raw).digest() if proves else xxhash.xxh3_128_digest(event.raw)
        await handover.commit(handover.mark, [event.id], [digest])
    return None


def refusal(sent: Sent) -> str | None:
    """Return why a sink has not all that it was sent, None when it has."""
    verdict = sent.verdict
    if isinstance(verdict, Later):
        return f"the sink does not take it now: {verdict.reason}"
    if not isinstance(verdict, Accepted):
        return f"the sink refuses it: {type(verdict).__name__.lower()}"
    if not sent.rejected and not sent.unnamed:
        return None
    some = f"{sent.unnamed} of it" if sent.unnamed else "it"
    return f"the sink rejects {some}{': ' if sent.told else ''}{sent.told}"
