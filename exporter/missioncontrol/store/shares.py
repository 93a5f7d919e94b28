"""Links to one session, or one event of it, for people without a token: they expire, and can be revoked."""

import secrets
from dataclasses import dataclass
from typing import Any, Final

from exporter.missioncontrol.store import audit
from exporter.missioncontrol.store.port import DEFAULT_TENANT, Database
from exporter.missioncontrol.store.session_row import number_of
from exporter.missioncontrol.store.tokens import keyed_hash

DAYS_MAX: Final = 90
_COLUMNS: Final = ("n", "session", "event", "creator", "created", "expires", "revoked", "opened", "last_opened")


@dataclass(frozen=True, slots=True)
class Share:
    """What a link shows; without an event the whole session."""

    n: int
    session: str
    event: str | None


def create(
    database: Database, session: str, event: str | None, creator: str, now: str, expires: str, tenant: str
) -> str:
    """Return the secret of a new link; raises what an unknown session does. It cannot be shown again."""
    number_of(database, session)
    secret = ("" if tenant == DEFAULT_TENANT else f"{tenant}.") + secrets.token_urlsafe(32)
    row = (keyed_hash(database, secret), session, event, creator, now, expires)
    database.insert("shares", "hash, session, event, creator, created, expires", [row])
    return secret


def tenant_in(secret: str) -> str:
    """Return the tenant that a link says it is of."""
    return secret.rpartition(".")[0] or DEFAULT_TENANT


def opened(database: Database, secret: str, now: str) -> Share | None:
    """Count that a link is opened and return what it shows; None for one that is wrong, revoked or past its time."""
    row = database.execute(
        "SELECT n, session, event FROM shares WHERE hash = ? AND revoked IS NULL AND expires > ?",
        (keyed_hash(database, secret), now),
    ).fetchone()
    if row is None:
        return None
    database.execute("UPDATE shares SET opened = opened + 1, last_opened = ? WHERE n = ?", (now, row[0]))
    return Share(*row)


def listed(database: Database, session: str | None = None) -> list[dict[str, Any]]:
    """Return the links, the newest first, without their secrets; of one session only."""
    condition, values = ("", ()) if session is None else (" WHERE session = ?", (session,))
    rows = database.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM shares{condition} ORDER BY n DESC LIMIT 1000",  # noqa: S608  constants only
        values,
    )
    return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]


def counted(database: Database, now: str) -> dict[str, int]:
    """Return how many links are in force, how many ended, and how often all of them were opened."""
    row = database.execute(
        "SELECT count(*), coalesce(sum(CASE WHEN revoked IS NULL AND expires > ? THEN 1 ELSE 0 END), 0),"
        " coalesce(sum(opened), 0) FROM shares",
        (now,),
    ).fetchone()
    total, in_force, opened = map(int, row)
    return {"in_force": in_force, "ended": total - in_force, "opened": opened}


def end(database: Database, n: int, now: str, who: str) -> bool:
    """Make a link worthless and note it in the audit log; False when there is none in force."""
    session = revoke(database, n, now)
    if session is not None:
        audit.add(database, now, who, "unshare", session)
    return session is not None


def revoke(database: Database, n: int, now: str) -> str | None:
    """Make a link worthless, and return its session; None when there is none in force."""
    row = database.execute("SELECT session FROM shares WHERE n = ? AND revoked IS NULL", (n,)).fetchone()
    database.execute("UPDATE shares SET revoked = ? WHERE n = ? AND revoked IS NULL", (now, n))
    return None if row is None else str(row[0])
