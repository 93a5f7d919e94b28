"""One event out of quarantine, sent by itself."""

import hashlib

import xxhash

from exporter.core.segment import Unsendable
from exporter.core.verdict import Accepted
from exporter.daemon.dealt import Handed
from exporter.daemon.handover import Handover


async def send_one(handover: Handover, event: Unsendable) -> str | None:
    """Send an event of the handover's session; return why the sink has it not, None when it has."""
    assert event.id is not None
    outlet = handover.outlet
    if not isinstance(await handover.prepare(), Handed):
        return outlet.last_error or "the sink does not take it now"
    assert handover.mark.remote_id is not None
    sent = await outlet.sink.send(handover.mark.remote_id, [event.id], [event.raw])
    if not isinstance(sent.verdict, Accepted) or sent.rejected:
        return f"the sink refuses it: {type(sent.verdict).__name__.lower()}"
    if event.id not in handover.delivered():
        proves = outlet.sink.capabilities.digest
        digest = hashlib.sha256(event.raw).digest() if proves else xxhash.xxh3_128_digest(event.raw)
        await handover.commit(handover.mark, [event.id], [digest])
    return None
