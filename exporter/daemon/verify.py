"""Proving that a Mission Control holds exactly what the files hold, and repairing what it lacks."""

from exporter.core.digest import total
from exporter.core.position import START
from exporter.daemon.lane import Lane
from exporter.sinks.sink import Registered
from exporter.status import VerifyRow


class _Everything:
    """Holds every id, so that a reader takes no event up."""

    def __contains__(self, _: object) -> bool:
        return True


async def ids_in_file(lane: Lane) -> set[str]:
    """Return the ids of the durable events of a session file, from whole lines, read without being redacted.

    Of a journal, whose front may be cut off, those that were delivered are taken to have been in it.
    """
    outlet, session = lane.outlet, lane.file.session
    seen = set(outlet.store.delivered(session, outlet.sink_id)) if lane.file.is_journal else set()
    position = START
    while True:
        segment = await lane.outlet.road.segment(lane.file, position, None, skip=_Everything(), seen=seen)
        if segment is None:
            return seen
        position = segment.end


def _differ(at_receiver: bytes, remembered: bytes) -> bool:
    """Tell whether an event has other bytes there; what was remembered at the floor of the wire cannot tell."""
    return len(remembered) == len(at_receiver) and remembered != at_receiver


async def verify(lane: Lane, *, repair: bool) -> VerifyRow:
    """Compare file, our memory and the receiver for one session; with `repair` begin to send what is missing."""
    outlet, session = lane.outlet, lane.file.session
    in_file = await ids_in_file(lane)
    delivered = outlet.store.delivered(session, outlet.sink_id)
    quarantined = outlet.quarantine.ids(session, outlet.sink.name)
    wanted = in_file - quarantined
    missing, extra, different = sorted(wanted - delivered.keys()), sorted(delivered.keys() - in_file), []
    receiver, detail = None, None
    mark = outlet.store.mark(session, outlet.sink_id)
    if mark is None or mark.remote_id is None:
        detail = "never delivered" if wanted else None
    else:
        answer = await outlet.sink.register(session, mark.remote_id)
        if not isinstance(answer, Registered):
            detail = f"the receiver cannot be asked: {type(answer).__name__.lower()}"
        elif answer.ack is None:
            detail = "this receiver cannot say what it holds; compared with what it accepted"
        else:
            receiver = answer.ack.count
            if answer.ack.digest != total(delivered.items()) or answer.ack.count != len(delivered):
                items = await outlet.sink.items(mark.remote_id)
                if isinstance(items, dict):
                    missing = sorted(wanted - items.keys())
                    extra = sorted(items.keys() - in_file)
                    different = sorted(
                        one for one in items.keys() & delivered.keys() if _differ(items[one], delivered[one])
                    )
                    if not missing and not extra and different and not delivered.keys() - items.keys():
                        detail = "same ids, other bytes"
                else:
                    detail = f"the receiver cannot be asked: {type(items).__name__.lower()}"
    asked = detail is None or "cannot be asked" not in detail
    equal = asked and not missing and not extra and not different
    if repair and not equal and asked:
        await lane.repair(different)
    return VerifyRow(
        session, outlet.sink.name, equal, len(in_file), len(delivered), receiver, missing, extra, different,
        len(quarantined & in_file), detail,
    )  # fmt: skip
