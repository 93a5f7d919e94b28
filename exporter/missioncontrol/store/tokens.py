"""Tokens of a receiver: one per exporter or person, shown once, kept as a keyed hash, and revoked by name.

A token is 256 random bits, so its hash cannot be guessed by trying; the key, which never leaves the store, makes
hashes of two stores differ. Whoever presents a token is looked up in the store, so a revocation holds at once.
"""

import secrets
from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final, Literal

from exporter.missioncontrol.store.port import Database

PREFIX: Final = "xmc_"
NAME_LENGTH_MAX: Final = 100
Scope = Literal["all", "read", "upload"]


class TokenError(Exception):
    """The name is in use, unknown or invalid."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a token, and what it permits: everything, only reading, or only uploading sessions of its own.

    `hash` is the token's own: a later token of the same name has another.
    """

    name: str
    scope: Scope
    hash: bytes


OWNER: Final = Holder("", "all", b"")
"""Who needs no token of the store: the same user, this process, and who has the receiver's own token."""


def create(database: Database, name: str, now: str, *, scope: Scope = "all") -> str:
    """Return a new token under this name; it cannot be shown again. Raises `TokenError`."""
    if not (0 < len(name) <= NAME_LENGTH_MAX and name.isprintable() and name.strip() == name):
        raise TokenError(f"A name is 1 to {NAME_LENGTH_MAX} printable characters.")
    if database.execute("SELECT 1 FROM tokens WHERE name = ? AND revoked IS NULL", (name,)).fetchone():
        raise TokenError(f"A token named {name} already exists.")
    token = PREFIX + secrets.token_urlsafe(32)
    database.execute("DELETE FROM tokens WHERE name = ?", (name,))
    database.execute(
        "INSERT INTO tokens (name, hash, scope, created) VALUES (?, ?, ?, ?)",
        (name, _hash(database, token), scope, now),
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
    rows = database.execute(f"SELECT {', '.join(names)} FROM tokens ORDER BY created DESC, name")  # noqa: S608
    return [dict(zip(names, row, strict=True)) for row in rows]


def any_in_force(database: Database) -> bool:
    """Tell whether any token is in force."""
    return database.execute("SELECT 1 FROM tokens WHERE revoked IS NULL LIMIT 1").fetchone() is not None


def holder(database: Database, token: str) -> Holder | None:
    """Return who has this token, or None."""
    if not token.startswith(PREFIX) or not token.isascii():
        return None
    hashed = _hash(database, token)
    row = database.execute(
        "SELECT hash, name, scope FROM tokens WHERE hash = ? AND revoked IS NULL", (hashed,)
    ).fetchone()
    return Holder(row[1], row[2], hashed) if row is not None and compare_digest(row[0], hashed) else None


def is_in_force(database: Database, hashed: bytes) -> bool:
    """Tell whether the token of this hash is still in force."""
    return database.execute("SELECT 1 FROM tokens WHERE hash = ? AND revoked IS NULL", (hashed,)).fetchone() is not None


def used(database: Database, name: str, now: str) -> None:
    """Record when a token was last used."""
    database.execute("UPDATE tokens SET last_used = ? WHERE name = ?", (now, name))


def _hash(database: Database, token: str) -> bytes:
    (key,) = database.execute("SELECT value FROM secrets WHERE name = 'tokens'").fetchone()
    return blake2b(token.encode(), key=key, digest_size=32).digest()
