"""Tokens of a tenant: one per exporter or person, shown once, kept as a keyed hash, and revoked by name.

A token names its tenant, unless it is the default one. It has 256 random bits, so its hash cannot be guessed by trying;
the key, which never leaves the store, makes hashes of two stores differ. Whoever presents a token is looked up in the
store, so a revocation holds at once.
"""

import secrets
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Literal

from exporter.missioncontrol.store.port import DEFAULT_TENANT, Database

PREFIX: Final = "xmc_"
NAME_LENGTH_MAX: Final = 100
Scope = Literal["all", "read", "upload", "auditor", "operator"]
"""What a token permits: everything, reading, uploading, seeing figures without content, or to manage tenants."""

_NEWER: Final = ("auditor", "operator")
"""Scopes that are in the column `role`: what does not know it takes such a token for one that uploads."""


class TokenError(Exception):
    """The name is in use, unknown or invalid."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a token, what it permits, and in which tenant.

    `hash` is the token's own: a later token of the same name has another.
    """

    name: str
    scope: Scope
    hash: bytes
    tenant: str = DEFAULT_TENANT


OWNER: Final = Holder("", "all", b"")
"""Who needs no token of the store: the same user, this process, and who has the receiver's own token."""


def tenant_in(token: str) -> str | None:
    """Return the name of the tenant that a token says it is of; None for what is no token of a store."""
    if not token.startswith(PREFIX) or not token.isascii():
        return None
    tenant, separator, _ = token.removeprefix(PREFIX).rpartition(".")
    return tenant if separator else DEFAULT_TENANT


def create(database: Database, name: str, now: str, *, scope: Scope = "all", tenant: str = DEFAULT_TENANT) -> str:
    """Return a new token under this name; it cannot be shown again. Raises `TokenError`."""
    if scope == "operator" and tenant != DEFAULT_TENANT:
        raise TokenError(f"An operator manages all tenants, so its token is of the tenant {DEFAULT_TENANT}.")
    if not (0 < len(name) <= NAME_LENGTH_MAX and name.isprintable() and name.strip() == name):
        raise TokenError(f"A name is 1 to {NAME_LENGTH_MAX} printable characters.")
    if database.execute("SELECT 1 FROM tokens WHERE name = ? AND revoked IS NULL", (name,)).fetchone():
        raise TokenError(f"A token named {name} already exists.")
    token = PREFIX + ("" if tenant == DEFAULT_TENANT else f"{tenant}.") + secrets.token_urlsafe(32)
    database.execute("DELETE FROM tokens WHERE name = ?", (name,))
    known, role = ("upload", scope) if scope in _NEWER else (scope, None)
    database.execute(
        "INSERT INTO tokens (name, hash, scope, role, created) VALUES (?, ?, ?, ?, ?)",
        (name, keyed_hash(database, token), known, role, now),
    )
    return token


def revoke(database: Database, name: str, now: str) -> None:
    """Revoke the token of this name; raises `TokenError` when there is none in force."""
    changed = database.execute("UPDATE tokens SET revoked = ? WHERE name = ? AND revoked IS NULL", (now, name))
    if changed.rowcount == 0:
        raise TokenError(f"No active token is named {name}.")


def listed(database: Database) -> list[dict[str, Any]]:
    """Return every token without its secret, newest first."""
    names = ("name", "scope", "created", "last_used", "revoked")
    rows = database.execute(
        "SELECT name, coalesce(role, scope), created, last_used, revoked FROM tokens ORDER BY created DESC, name"
    )
    return [dict(zip(names, row, strict=True)) for row in rows]


def any_in_force(database: Database) -> bool:
    """Tell whether any token is in force."""
    return database.execute("SELECT 1 FROM tokens WHERE revoked IS NULL LIMIT 1").fetchone() is not None


def holder(database: Database, token: str) -> Holder | None:
    """Return who has this token of the tenant whose store this is, or None."""
    tenant = tenant_in(token)
    if tenant is None:
        return None
    return hashed_holder(database, keyed_hash(database, token), tenant)


def hashed_holder(database: Database, hashed: bytes, tenant: str) -> Holder | None:
    """Return who has the token of this hash in the tenant whose store this is, None once it is not in force."""
    row = database.execute(
        "SELECT name, coalesce(role, scope) FROM tokens WHERE hash = ? AND revoked IS NULL", (hashed,)
    ).fetchone()
    return None if row is None else Holder(row[0], row[1], hashed, tenant)


def cookie_key(database: Database) -> bytes:
    """Return with what receivers of the store seal the cookies of browsers."""
    return keyed_hash(database, "cookies of browsers")


def used(database: Database, name: str, now: str) -> None:
    """Record when a token was last used."""
    database.execute("UPDATE tokens SET last_used = ? WHERE name = ?", (now, name))


def redaction_key(database: Database) -> bytes:
    """Return the tenant's key of the tags in what is redacted here."""
    (key,) = database.execute("SELECT value FROM secrets WHERE name = 'redaction'").fetchone()
    return bytes(key)


def rotate_redaction_key(database: Database) -> None:
    """Make a new key: from now on the same secret gets another tag than before, at every receiver."""
    database.execute("UPDATE secrets SET value = ? WHERE name = 'redaction'", (secrets.token_bytes(32),))


def settings_salt(database: Database) -> str:
    """Return with what the exporters of the tenant hash their settings before they tell them."""
    return keyed_hash(database, "settings of exporters")[:16].hex()


def keyed_hash(database: Database, secret: str) -> bytes:
    """Return what is kept of a secret that is shown once."""
    (key,) = database.execute("SELECT value FROM secrets WHERE name = 'tokens'").fetchone()
    return blake2b(secret.encode(), key=key, digest_size=32).digest()
