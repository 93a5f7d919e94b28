"""Whose session it is: that of the token that registered it, by the token's name, also once it is deleted.

Uploaders with a token for uploading have their own sessions only; everybody else has all. A session that was stored
before sessions had owners becomes that of the first who uploads to it. The same holds for exporters that report.
"""

import msgspec

from exporter.missioncontrol.store.port import Database, Job, Result
from exporter.missioncontrol.store.session_row import ForeignExporterError, ForeignSessionError, UnknownSessionError
from exporter.missioncontrol.store.tokens import Holder


def owner_of(database: Database, session_id: str) -> str | None:
    """Return whose session this is or was: the name of a token, "" for who needs none; None while it is nobody's."""
    row = database.execute(
        "SELECT owner FROM sessions WHERE id = ? UNION ALL SELECT owner FROM deleted_sessions WHERE id = ?",
        (session_id, session_id),
    ).fetchone()
    return None if row is None else row[0]


def refuse_foreign(database: Database, session_id: str, holder: Holder) -> None:
    """Raise `ForeignSessionError` when the session is another's and the holder has only his own."""
    if holder.scope == "upload" and owner_of(database, session_id) not in (None, holder.name):
        raise ForeignSessionError(session_id)


def reading(session_id: str, holder: Holder, job: Job[Result]) -> Job[Result]:
    """Return the job of an uploader's question: a foreign session is unknown to him."""

    def read(database: Database) -> Result:
        try:
            refuse_foreign(database, session_id, holder)
        except ForeignSessionError:
            raise UnknownSessionError(session_id) from None
        return job(database)

    return read


def uploading(session_id: str, holder: Holder, job: Job[Result]) -> Job[Result]:
    """Return the job of an upload: it is refused for a foreign session, and takes one that is nobody's."""

    def upload(database: Database) -> Result:
        database.lock_session(session_id)
        refuse_foreign(database, session_id, holder)
        result = job(database)
        database.execute("UPDATE sessions SET owner = ? WHERE id = ? AND owner IS NULL", (holder.name, session_id))
        return result

    return upload


def uploading_exporter(database: Database, exporter_id: str, holder: Holder) -> str:
    """Return whose exporter this is from this report on; raise `ForeignExporterError` when it is another's."""
    row = database.execute("SELECT report FROM exporters WHERE id = ?", (exporter_id,)).fetchone()
    owner: str = msgspec.json.decode(row[0]).get("owner", holder.name) if row else holder.name
    if holder.scope == "upload" and owner != holder.name:
        raise ForeignExporterError(exporter_id)
    return owner
