"""Everything that changes the store, each as one write job: register, store, hide, report, forget."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from exporter.core.events import digest
from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.summary import SUMMARY_TYPES, Summary
from exporter.missioncontrol.ingest import agent_attribution
from exporter.missioncontrol.ingest.answers import mask_answers
from exporter.missioncontrol.ingest.batch import Batch, UploadedEvent, key_of
from exporter.missioncontrol.ingest.event_order import known, last_shown, note_hidden_parents, place_new
from exporter.missioncontrol.live import feed
from exporter.missioncontrol.store import payloads, redactions
from exporter.missioncontrol.store.fleet import settings_told
from exporter.missioncontrol.store.ownership import owner_of, uploading_exporter
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import (
    SessionAck,
    SessionRow,
    UnknownSessionError,
    load,
    save,
    shown_events,
)
from exporter.missioncontrol.store.tokens import Holder

_COLUMNS: Final = "n, session, hidden, key, id, type, timestamp, agent_id, sha256, body, cuts, place, parent, sender"

_INSTALLATION: Final = re.compile("[0-9a-f]{16}")
_INSTALLATIONS_MAX: Final = 20
_HEARD_LATELY: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of one batch, its new events, and how many changes the store has accepted with it."""

    ack: SessionAck
    duplicates: int
    new: list[UploadedEvent]
    batch: Batch
    """The batch with what the job found out about it; the one that it was given is as it was, for another run."""
    changes: int = 0
    first: int = 0
    """The row number of the first new event; those of the others follow."""


def register(database: Database, session_id: str, task_id: str, now: str, *, restore: bool = False) -> SessionAck:
    """Make the session known, once; the same call again changes nothing.

    A deleted session raises `DeletedSessionError`, unless `restore` says that it is sent again on purpose; it is its
    owner's again.
    """
    owner = owner_of(database, session_id)
    if restore:
        database.execute("DELETE FROM deleted_sessions WHERE id = ?", (session_id,))
    try:
        return load(database, session_id).ack
    except UnknownSessionError:
        database.execute(
            "INSERT INTO sessions (n, id, task_id, registered, count, digest, summary, masked, revision,"
            " state, last_activity, haystack, owner) VALUES (?, ?, ?, ?, 0, ?, '{}', 0, 0, 'idle', ?, ?, ?)",
            (database.allocate("sessions"), session_id, task_id, now, bytes(32), now, session_id.casefold(), owner),
        )
        database.count_change()
        return SessionAck(0, digest.to_hex(digest.EMPTY), None)


def store_batch(database: Database, session_id: str, batch: Batch, now: str) -> Stored:
    """Hide what was rewound, then store what is new, in order; the first bytes of an id win unless it was hidden."""
    batch = replace(batch, rejected=[*batch.rejected])
    session = load(database, session_id)
    must_rebuild = _hide(database, session, batch.rewound, now) > 0
    once: dict[str, UploadedEvent] = {}
    for event in batch.durable:
        once.setdefault(event.envelope.id, event)
    sequence = list(once.values())
    new = _new_events(database, session, sequence)
    if not new and not must_rebuild:
        mask_answers(database, session.n, batch, [], [])
        return Stored(session.ack, len(batch.durable), [], batch, database.changes())
    database.count_change()
    placed, follows_on = place_new(database, session, sequence, new) if new else ([], True)
    events, placed = mask_answers(database, session.n, batch, list(new.values()), placed)
    first = database.allocate("events", len(events)) if events else 0
    if must_rebuild or not follows_on:
        agents = [agent_attribution.named_agent(event) for event in events]
    else:
        agents = agent_attribution.attribute(database, session.n, session.id, events)
    blobs = payloads.keep(database, session.n, ((event.body, event.large) for event in events))
    rows = [
        (*_row(n, session.n, event, agent, place, blobs), batch.sender)
        for n, (event, agent, place) in enumerate(zip(events, agents, placed, strict=True), first)
    ]
    database.insert("events", _COLUMNS, rows)
    session.count += len(events)
    session.digest = digest.add(session.digest, (event.item for event in events))
    session.masked += sum(bool(event.rules) for event in events)
    redactions.add(database, session.n, ((_day(event, now), rule) for event in events for rule in event.rules))
    if must_rebuild or not follows_on:
        _rebuild(database, session, now)
    else:
        _append(database, session, zip(events, agents, strict=True), first, now)
    # A reported state is valid until the next events arrive.
    session.report.pop("state", None)
    save(database, session, now, "stored_at")
    return Stored(session.ack, len(batch.durable) - len(new), events, batch, database.changes(), first)


def report_session(database: Database, session_id: str, report: dict[str, Any], now: str) -> None:
    """Store what an exporter reports about a session; fields that it omits keep their values."""
    session = load(database, session_id)
    session.report = {**session.report, **report}
    by_events = session.summary.state
    if by_events == "ended" and report.get("state") == "crashed":
        del session.report["state"]  # the process left its lock, but ended the session
    elif by_events != "working" and (report.get("state"), report.get("liveness")) == ("idle", "unknown"):
        del session.report["state"]  # a silent process works no more, but a question stays one
    save(database, session, now, "reported_at")
    redactions.report(database, session.n, session.report.get("redactions") or {})


def heard_since(now: str) -> str:
    """Return the moment since which an installation was heard of lately."""
    lately = datetime.fromisoformat(now) - _HEARD_LATELY
    return lately.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def report_exporter(
    database: Database, exporter_id: str, report: dict[str, Any], now: str, holder: Holder
) -> tuple[int, bool]:
    """Keep the newest report of an exporter, with who sent it and whose the exporter is.

    Returns how many other installations report under its id, and whether its settings are unknown.

    A copied state directory has its id. An installation that was moved reports no more, so another one counts only if
    it was heard of after this one began, and lately.
    """
    # First, so that its row is locked: another receiver may be told of the same exporter.
    is_known = database.execute("UPDATE exporters SET reported_at = ? WHERE id = ?", (now, exporter_id)).rowcount > 0
    owner, own = uploading_exporter(database, exporter_id, holder), report.get("installation")
    row = database.execute("SELECT report FROM exporters WHERE id = ?", (exporter_id,)).fetchone()
    before = msgspec.json.decode(row[0]) if row is not None else {}
    known = before.get("installations", {})
    recent = heard_since(now)
    heard = {name: one for name, one in known.items() if one["last"] >= recent and name != own}
    copies = 0
    is_named = isinstance(own, str) and _INSTALLATION.fullmatch(own)
    if is_named and len(heard) >= _INSTALLATIONS_MAX:  # no directory is moved so often
        copies = len(heard)
    elif is_named:
        first = known[own]["first"] if own in known and known[own]["last"] >= recent else now
        copies = sum(one["last"] > first for one in heard.values())
        heard[own] = {"first": first, "last": now, "host": report.get("host")}
    report = {**report, "token": holder.name or None, "owner": owner, "installations": heard, "copies": copies}
    report["settings"] = settings_told(report, before)
    written = msgspec.json.encode(report).decode()
    if is_known:
        database.execute("UPDATE exporters SET report = ? WHERE id = ?", (written, exporter_id))
    else:
        database.insert("exporters", "id, report, reported_at", [(exporter_id, written, now)])
    return copies, report["settings"] is None


def forget_session(database: Database, session_id: str, now: str, *, reason: str = "deleted") -> None:
    """Delete a session with all that was derived from it; only its id, its owner, the time and the reason stay."""
    session = load(database, session_id)
    database.count_change()
    database.forget_text_of(session.n)
    for table in ("events", "rewinds", "orphans", "notices", "redactions", "families"):
        database.execute(f"DELETE FROM {table} WHERE session = ?", (session.n,))  # noqa: S608  constants
    payloads.forget(database, session.n)
    database.execute("DELETE FROM shares WHERE session = ?", (session_id,))
    owner = owner_of(database, session_id)
    database.execute("DELETE FROM sessions WHERE n = ?", (session.n,))
    database.execute("DELETE FROM deleted_sessions WHERE id = ?", (session_id,))
    database.insert("deleted_sessions", "id, deleted_at, reason, owner", [(session_id, now, reason, owner)])


def _day(event: UploadedEvent, now: str) -> str:
    timestamp = event.envelope.timestamp
    return (timestamp if timestamp[:2] == "20" else now)[:10]


def _row(
    n: int, session: int, event: UploadedEvent, agent: str | None, place: int, blobs: dict[bytes, int]
) -> tuple[Any, ...]:
    envelope = event.envelope
    columns = (n, session, 0, event.key, envelope.id, envelope.type, envelope.timestamp, agent, event.sha256)
    return (*columns, *payloads.cut_out(event.body, event.large, blobs), place, event.parent)


def _hide(database: Database, session: SessionRow, ids: list[str], now: str) -> int:
    """Hide the ids that the session shows, record it, and return how many they are."""
    if not ids:
        return 0
    shown = {id: row for id, row in known(database, session.n, {id: key_of(id) for id in ids}).items() if not row[1]}
    if not shown:
        return 0
    hidden = [(session.n, row[0]) for row in shown.values()]
    database.executemany("UPDATE events SET hidden = 1 WHERE session = ? AND n = ?", hidden)
    database.insert("rewinds", "session, id, rewound_at", [(session.n, id, now) for id in shown])
    if session.chained:
        note_hidden_parents(database, session.n, [key_of(id) for id in shown])
    session.count -= len(shown)
    session.digest = digest.remove(session.digest, (digest.item(id, row[2]) for id, row in shown.items()))
    session.last_event_id = last_shown(database, session.n)
    return len(shown)


def _new_events(database: Database, session: SessionRow, sequence: list[UploadedEvent]) -> dict[str, UploadedEvent]:
    """Return the events to insert, by id; what was hidden and comes again is new.

    The old row stays, where no id leads to it: the search index needs its words to remove them.
    """
    if session.last_place is None:
        return {event.envelope.id: event for event in sequence}
    here = known(database, session.n, {event.envelope.id: event.key for event in sequence})
    hidden = [(session.n, row) for row, is_hidden, _ in here.values() if is_hidden]
    database.executemany("UPDATE events SET hidden = 2, key = n WHERE session = ? AND n = ?", hidden)
    return {event.envelope.id: event for event in sequence if (row := here.get(event.envelope.id)) is None or row[1]}


def _append(
    database: Database, session: SessionRow, events: Iterable[tuple[UploadedEvent, str | None]], first: int, now: str
) -> None:
    """Add what follows from new events, with their agents, that come behind all that is shown."""
    envelopes = [agent_attribution.as_of(event.envelope, agent) for event, agent in events]
    session.last_event_id = envelopes[-1].id
    for envelope in envelopes:
        session.summary.add(envelope, now)
    feed.add_events(database, session.n, enumerate(envelopes, first))


def _rebuild(database: Database, session: SessionRow, now: str) -> None:
    """Derive again what depends on the order of the events, after some were rewound or arrived late."""
    session.last_event_id = last_shown(database, session.n)
    agent_attribution.attribute_again(database, session.n, session.id)
    session.summary = _rebuild_summary(database, session.n, now)
    feed.rebuild(database, session.n)


def _rebuild_summary(database: Database, n: int, now: str) -> Summary:
    """Derive the summary from the events shown."""
    summary = Summary()
    for row, type, timestamp, agent_id in shown_events(database, n, "n, type, timestamp, agent_id"):
        envelope = Envelope(id="", type=type, timestamp=timestamp, agentId=agent_id)
        if type in SUMMARY_TYPES:
            stored = database.execute("SELECT body, cuts FROM events WHERE session = ? AND n = ?", (n, row)).fetchone()
            decoded = decode(payloads.whole(database, *stored))
            envelope = agent_attribution.as_of(decoded, agent_id) if isinstance(decoded, Envelope) else envelope
        summary.add(envelope, now)
    return summary
