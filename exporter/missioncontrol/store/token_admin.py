"""What an administrator does to a store from the command line, beside a receiver that may be running on it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from exporter.errors import StateError, UsageError
from exporter.missioncontrol.http.responses import ApiError, api_errors
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.receiver import Receiver, utc_now
from exporter.missioncontrol.receivers import Receivers
from exporter.missioncontrol.store import audit, shares, tenants, tokens
from exporter.missioncontrol.store.opening import open_store
from exporter.missioncontrol.store.port import DEFAULT_TENANT, Database, Job, Result, Store, StoreError
from exporter.missioncontrol.store.session_row import DeletedSessionError, UnknownSessionError, number_of

WHO: Final = "(command)"
"""Who the audit log names for what is done here."""


def create_token(store: str | Path, name: str, scope: tokens.Scope, tenant: str = DEFAULT_TENANT) -> dict[str, Any]:
    """Make a token and return it with its name; this is the only time that it can be seen."""

    def create(database: Database) -> str:
        made = tokens.create(database, name, _now(), scope=scope, tenant=tenant)
        audit.add(database, _now(), WHO, "token", detail=f"{name}: {scope}")
        return made

    return {"name": name, "scope": scope, "tenant": tenant, "token": _do(store, create, tenant)}


def revoke_token(store: str | Path, name: str, tenant: str = DEFAULT_TENANT) -> dict[str, Any]:
    """Make a token worthless."""
    now = _now()

    def revoke(database: Database) -> None:
        tokens.revoke(database, name, now)
        audit.add(database, now, WHO, "revoke", detail=name)

    _do(store, revoke, tenant)
    return {"name": name, "tenant": tenant, "revoked": now}


def list_tokens(store: str | Path, tenant: str = DEFAULT_TENANT) -> dict[str, Any]:
    """Return every token that was made, without its secret."""
    return {"tokens": _do(store, tokens.listed, tenant), "next": None}


def list_audit(store: str | Path, limit: int, tenant: str = DEFAULT_TENANT) -> dict[str, Any]:
    """Return the newest entries of the audit log."""
    entries, following = _do(store, partial(audit.entries, limit=limit), tenant)
    return {"entries": entries, "next": following}


def rotate_key(store: str | Path, tenant: str = DEFAULT_TENANT) -> dict[str, Any]:
    """Make a new key of redaction tags, which running receivers use from their next request on."""

    def rotate(database: Database) -> None:
        tokens.rotate_redaction_key(database)
        audit.add(database, _now(), WHO, "rotate key")

    _do(store, rotate, tenant)
    return {"tenant": tenant, "rotated": True}


def list_shares(store: str | Path, tenant: str = DEFAULT_TENANT) -> dict[str, Any]:
    """Return the share links without their secrets, and how many there are."""
    now = _now()
    found, counts = _do(store, lambda database: (shares.listed(database), shares.counted(database, now)), tenant)
    return {"shares": found, "counts": counts, "next": None}


def revoke_share(store: str | Path, number: int, tenant: str = DEFAULT_TENANT) -> dict[str, Any]:
    """Make a share link worthless."""
    if not _do(store, partial(shares.end, n=number, now=_now(), who=WHO), tenant):
        raise UsageError(f"No link {number} is in force.", hint="exporter mission-control share list shows them")
    return {"number": number, "tenant": tenant, "revoked": _now()}


def list_tenants(store: str | Path) -> dict[str, Any]:
    """Return every tenant."""
    return {"tenants": _do(store, tenants.listed), "next": None}


def create_tenant(store: str | Path, name: str) -> dict[str, Any]:
    """Make a tenant with a key of its own."""
    with _opened(store) as opened:
        tenants.create(opened, name, _now(), WHO)
    return {"name": name}


def remove_tenant(store: str | Path, name: str) -> dict[str, Any]:
    """Delete a tenant's sessions as forgetting does, and then all that is left of it."""
    if name == DEFAULT_TENANT:
        raise UsageError(f"The tenant {DEFAULT_TENANT} always exists.", hint="delete its sessions, or the store")

    async def remove(opened: Store) -> bool:
        receivers = Receivers(Receiver(opened))
        try:
            with api_errors():
                return await receivers.remove(name, WHO)
        except ApiError as error:
            raise StateError(error.message, hint=error.hint) from error
        finally:
            await receivers.stop()

    with _opened(store) as opened:
        if not asyncio.run(remove(opened)):
            raise tenants.TenantError(f"There is no tenant {name}.")
    return {"removed": name}


def restore_session(store: str | Path, session_id: str) -> dict[str, Any]:
    """Make a deleted session known again, for its owner, without its events."""

    def restore(database: Database) -> None:
        try:
            number_of(database, session_id)
        except DeletedSessionError:
            write_jobs.register(database, session_id, session_id, _now(), restore=True)
            audit.add(database, _now(), WHO, "restore", session_id)
        except UnknownSessionError:
            raise UsageError(f"There is no session {session_id} in the store.", hint="give the whole id") from None
        else:
            raise UsageError(f"The session {session_id} is not deleted.", hint="nothing is to be restored")

    _do(store, restore)
    return {"restored": session_id}


def _do(store: str | Path, job: Job[Result], tenant: str = DEFAULT_TENANT) -> Result:
    with _opened(store) as opened:
        return tenants.store_of(opened, tenant).do(job)


@contextmanager
def _opened(store: str | Path) -> Iterator[Store]:
    """Open a store for a command; what it refuses is an error that a person understands."""
    with open_store(store) as opened:
        try:
            yield opened
        except StoreError as error:
            raise StateError(f"The store did not take it: {error}.", hint="Nothing was changed; try again.") from error
        except tokens.TokenError as error:
            raise UsageError(str(error), hint="exporter mission-control token list shows them") from error
        except tenants.TenantError as error:
            raise UsageError(str(error), hint="exporter mission-control tenant list shows them") from error


def _now() -> str:
    return utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
