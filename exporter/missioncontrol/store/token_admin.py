"""What an administrator does to a store from the command line, beside a receiver that may be running on it."""

from pathlib import Path
from typing import Any

from exporter.errors import StateError, UsageError
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.receiver import utc_now
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import Database, Job, Result, StoreError
from exporter.missioncontrol.store.session_row import DeletedSessionError, UnknownSessionError, number_of


def create_token(store: str | Path, name: str, *, upload_only: bool, read_only: bool = False) -> dict[str, Any]:
    """Make a token and return it with its name; this is the only time that it can be seen."""
    scope: tokens.Scope = "upload" if upload_only else "read" if read_only else "all"
    token = _do(store, lambda database: tokens.create(database, name, _now(), scope=scope))
    return {"name": name, "scope": scope, "token": token}


def revoke_token(store: str | Path, name: str) -> dict[str, Any]:
    """Make a token worthless."""
    now = _now()
    _do(store, lambda database: tokens.revoke(database, name, now))
    return {"name": name, "revoked": now}


def list_tokens(store: str | Path) -> dict[str, Any]:
    """Return every token that was made, without its secret."""
    return {"tokens": _do(store, tokens.listed), "next": None}


def restore_session(store: str | Path, session_id: str) -> dict[str, Any]:
    """Make a deleted session known again, for its owner, without its events."""

    def restore(database: Database) -> None:
        try:
            number_of(database, session_id)
        except DeletedSessionError:
            write_jobs.register(database, session_id, session_id, _now(), restore=True)
        except UnknownSessionError:
            raise UsageError(f"There is no session {session_id} in the store.", hint="give the whole id") from None
        else:
            raise UsageError(f"The session {session_id} is not deleted.", hint="nothing is to be restored")

    _do(store, restore)
    return {"restored": session_id}


def _do(store: str | Path, job: Job[Result]) -> Result:
    with open_store(store) as opened:
        try:
            return opened.do(job)
        except StoreError as error:
            raise StateError(f"The store did not take it: {error}.", hint="Nothing was changed; try again.") from error
        except tokens.TokenError as error:
            raise UsageError(str(error), hint="exporter mission-control token list shows them") from error


def _now() -> str:
    return utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
