"""The API of share links, and what such a link shows: read only, and redacted once more on its way out."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from exporter.core.events.envelope import REFUSALS, Envelope, decode
from exporter.missioncontrol.http.audited import who_asks
from exporter.missioncontrol.http.guard import SHARED
from exporter.missioncontrol.http.responses import ApiError, json_answer
from exporter.missioncontrol.http.upload_api import checked_id
from exporter.missioncontrol.pages.export import told
from exporter.missioncontrol.pages.formats import local
from exporter.missioncontrol.pages.rendering import style_hash
from exporter.missioncontrol.pages.timeline.windows import TimelineRow
from exporter.missioncontrol.receiver import Receiver, receiver_of
from exporter.missioncontrol.store import audit, queries, shares
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.shares import DAYS_MAX, Share

_BODY_BYTES_MAX: Final = 4096
_HEADERS: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"}


class _Wanted(msgspec.Struct):
    session: str
    event: str | None = None
    days: Annotated[int, Meta(ge=1, le=DAYS_MAX)] = 7


async def create(request: Request) -> Response:
    """Make a link; its address is in this answer only."""
    receiver, who = receiver_of(request), who_asks(request)
    try:
        wanted = msgspec.json.decode(await receiver.intake.read_body(request, _BODY_BYTES_MAX), type=_Wanted)
    except REFUSALS as error:
        hint = f'Send {{"session": "…", "event": "…", "days": 7}}, at most {DAYS_MAX} days.'
        raise ApiError(400, "bad_body", f"The body cannot be read: {error}.", hint=hint) from error
    session_id, now = checked_id(wanted.session), receiver.now()
    end = datetime.fromisoformat(now) + timedelta(days=wanted.days)
    expires = end.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def make(database: Database) -> str:
        if wanted.event is not None and queries.event(database, session_id, wanted.event) is None:
            raise ApiError(404, "unknown_event", "The session has no such event.", hint="It may have been rewound.")
        audit.add(database, now, who, "share", session_id, f"until {expires[:10]}")
        return shares.create(database, session_id, wanted.event, who, now, expires, receiver.tenant)

    await receiver.floor()  # without a redactor nothing is shared
    secret = await receiver.write(make)
    return json_answer({"path": local(f"{SHARED}{secret}"), "session": session_id, "expires": expires})


async def listed(request: Request) -> Response:
    """List the links with how often each was opened, and how many there are."""
    return json_answer({**await read_shares(request), "next": None})


async def read_shares(request: Request) -> dict[str, Any]:
    """Return the links, of one session only if one is asked for, and the counts of all."""
    receiver, session_id = receiver_of(request), request.query_params.get("session") or None
    now = receiver.now()
    found, counts = await receiver.read(
        lambda database: (shares.listed(database, session_id), shares.counted(database, now))
    )
    return {"shares": found, "counts": counts}


async def revoke(request: Request) -> Response:
    """Make a link worthless at once."""
    await end_share(request)
    return Response(status_code=204)


async def end_share(request: Request) -> None:
    """Make the link that the path names worthless; raise `ApiError` when there is none in force."""
    receiver = receiver_of(request)
    job = partial(shares.end, n=request.path_params["n"], now=receiver.now(), who=who_asks(request))
    if not await receiver.write(job):
        raise ApiError(404, "unknown_share", "No such link is in force.", hint="GET /api/v1/shares lists them.")


async def shared(request: Request) -> Response:
    """Show what a link is for."""
    receiver, share = receiver_of(request), request.state.share
    redact = await receiver.redact_again()
    if share.event is not None:
        return await _event(receiver, share, redact)
    await receiver.read(partial(queries.session, session_id=share.session))
    policy = f"default-src 'none'; style-src 'sha256-{style_hash('style.css')}'; base-uri 'none'; form-action 'none'"
    content = told(receiver, share.session, "html", partial(_cleaned, redact))
    headers = {**_HEADERS, "Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}
    return StreamingResponse(content, media_type="text/html", headers=headers)


async def _event(receiver: Receiver, share: Share, redact: Callable[[bytes], bytes | None]) -> Response:
    def read(database: Database) -> bytes | None:
        body = queries.event(database, share.session, share.event or "")
        return None if body is None else redact(body)

    if (body := await receiver.read(read)) is None:
        raise ApiError(404, "unknown_event", "The event is not there any more.", hint="Ask who sent you the link.")
    return Response(body, media_type="application/json", headers=_HEADERS)


def _cleaned(redact: Callable[[bytes], bytes | None], rows: Iterable[TimelineRow]) -> list[TimelineRow]:
    """Return rows redacted once more; what the redactor refuses is left out."""
    kept = []
    for row in rows:
        envelope = row.envelope
        fields: dict[str, Any] = {"type": envelope.type, "id": envelope.id, "timestamp": envelope.timestamp}
        line = redact(msgspec.json.encode({**fields, "data": msgspec.Raw(bytes(envelope.data))}))
        found = decode(line) if line is not None else None
        if isinstance(found, Envelope):
            kept.append(row._replace(envelope=msgspec.structs.replace(envelope, data=found.data)))
    return kept


ROUTES: Final = (
    Route("/api/v1/shares", listed, methods=["GET"]),
    Route("/api/v1/shares", create, methods=["POST"]),
    Route("/api/v1/shares/{n:int}", revoke, methods=["DELETE"]),
    Route(SHARED + "{secret}", shared, methods=["GET"]),
)
