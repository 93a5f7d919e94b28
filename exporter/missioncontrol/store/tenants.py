"""Tenants: teams that share receivers and see nothing of each other; each has sessions, tokens and keys of its own.

The list of them is in the store of the tenant `default`, which always exists.
"""

import re
from typing import Any, Final

from exporter.missioncontrol.store import audit
from exporter.missioncontrol.store.port import DEFAULT_NUMBER, DEFAULT_TENANT, Database, Store

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


class TenantError(Exception):
    """There is no such tenant, or there is one already, or the name is none."""


def listed(database: Database) -> list[dict[str, Any]]:
    """Return every tenant by its name, the default first."""
    rows = database.execute("SELECT name, created FROM tenants ORDER BY n").fetchall()
    return [{"name": name, "created": created} for name, created in rows]


def number_of(database: Database, name: str) -> int | None:
    """Return the number of a tenant, None when there is none of this name."""
    if name == DEFAULT_TENANT:
        return DEFAULT_NUMBER
    row = database.execute("SELECT n FROM tenants WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def create(store: Store, name: str, now: str, who: str | None = None) -> int:
    """Make a tenant and return its number; raises `TenantError`. Not for use on an event loop.

    With `who` it is first noted in the audit log of the default tenant.
    """
    if not _NAME.fullmatch(name):
        raise TenantError(f"{name!r} is no name of a tenant: 1 to 40 of a-z, 0-9 and, inside, the sign -.")
    if store.read_now(lambda database: number_of(database, name)) is not None:
        raise TenantError(f"A tenant {name} already exists.")
    if who is not None:
        store.do(lambda database: audit.add(database, now, who, "create tenant", detail=name))
    return store.add_tenant(name, now)


def store_of(store: Store, name: str) -> Store:
    """Return the store of a tenant; raises `TenantError`. Not for use on an event loop."""
    number = store.read_now(lambda database: number_of(database, name))
    if number is None:
        raise TenantError(f"There is no tenant {name}.")
    return store.tenant(number)
