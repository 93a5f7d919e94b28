"""Receivers in memory: one with every capability, and one at the floor, which keeps whatever it is sent."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from exporter.core.events.digest import EMPTY, add, item, to_hex
from exporter.core.names import STORE_HEADER
from exporter.sinks.transport import HttpAnswer

EVENTS_MAX: Final = 3
"""How many events a request may hold, so that a short file takes several."""
POISON: Final = "poison"
"""How the id of an event begins that a receiver refuses."""


class _Event(msgspec.Struct):
    id: str


_EVENT: Final = msgspec.json.Decoder(_Event)


class Upload(msgspec.Struct):
    """The body of a request with events."""

    events: list[msgspec.Raw] = []
    rewound: list[str] = []

    def ids(self) -> list[str]:
        """Return the ids of its events."""
        return [_EVENT.decode(raw).id for raw in self.events]


UPLOAD: Final = msgspec.json.Decoder(Upload)


@dataclass(slots=True)
class Held:
    """One session: the events in the order in which they came, those hidden, and how often each was stored."""

    bodies: dict[str, bytes] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    copies: int = 0

    def visible(self) -> list[str]:
        """Return the ids of the events that are not hidden."""
        return [one for one in self.bodies if one not in self.hidden]

    def copied(self) -> "Held":
        """Return the same again, which can be changed."""
        return Held(self.bodies.copy(), self.hidden.copy(), self.copies)


@lru_cache(4096)
def _hashes(identity: str, body: bytes) -> tuple[str, int]:
    """Return the hash of an event's bytes, and what it adds to the digest; schedules have the same few events."""
    found = sha256(body)
    return found.hexdigest(), item(identity, found.digest())


class Receiver:
    """A receiver. `is_full` says that it has capabilities, `declares` that it says what it means by 410."""

    def __init__(self, *, is_full: bool, declares: bool) -> None:
        self.is_full, self.declares = is_full, declares
        self.sessions: dict[str, Held] = {}
        self.deleted: set[str] = set()
        self.ever: dict[str, set[str]] = {}
        """The events that were stored at any time."""
        self.token = 1
        self.store = self.epoch = 1
        self.changes = self.names = 0
        self._backup: tuple[dict[str, Held], set[str], int] | None = None

    # ---- what happens to it

    def keep_backup(self) -> None:
        self._backup = self._copied(self.sessions), self.deleted.copy(), self.changes

    @staticmethod
    def _copied(sessions: dict[str, Held]) -> dict[str, Held]:
        return {name: held.copied() for name, held in sessions.items()}

    def restore_backup(self, *, keeps_epoch: bool) -> bool:
        """Go back to the backup, with the same store id and perhaps epoch; return whether there was one."""
        if self._backup is None:
            return False
        sessions, deleted, self.changes = self._backup
        self.sessions, self.deleted = self._copied(sessions), deleted.copy()
        self.epoch += not keeps_epoch
        return True

    def reset(self) -> None:
        """Begin with an empty store, which has another id."""
        self.sessions, self.deleted, self.store, self.epoch = {}, set(), self.store + 1, self.epoch + 1

    def delete(self, session: str) -> None:
        for name in [one for one in self.sessions if one.partition("~")[0] == session]:
            del self.sessions[name]
            self.deleted.add(name)

    def held(self, session: str) -> Held:
        """Return what it has of a session, under whatever name it gave it last."""
        names = [name for name in self.sessions if name.partition("~")[0] == session]
        return self.sessions[names[-1]] if names else Held()

    # ---- requests

    def answer(self, method: str, path: str, body: bytes, token: str, *, part: bool = False) -> HttpAnswer:
        """Answer a request; with `part` only the first half of the events is stored, and the answer is an error."""
        if token != f"Bearer {self.token}":
            return HttpAnswer(401, {}, b"")
        name, _, rest = path.removeprefix("/sessions").removeprefix("/").partition("/")
        name, _, query = name.partition("?")
        if not name:
            return self._register(msgspec.json.decode(body))
        if name in self.deleted:
            return HttpAnswer(410, {}, b'{"error":{"kind":"deleted_session"}}')
        held = self.sessions.get(name)
        if held is None:
            return HttpAnswer(404, {}, b"{}")
        if rest == "events":
            return self._events(name, held, UPLOAD.decode(body), part)
        if query:
            items = [(one, _hashes(one, held.bodies[one])[0]) for one in held.visible()]
            return self._ok({"items": items})
        return self._ok(self._session(name, held))

    def _register(self, asked: dict[str, object]) -> HttpAnswer:
        session = name = str(asked["id"])
        if not self.is_full:
            self.names += 1
            known = [one for one in self.sessions if one.partition("~")[0] == session]
            name = known[0] if known else f"{session}~{self.names}"
        if asked.get("restore"):
            self.deleted.discard(name)
        if name in self.deleted:
            return HttpAnswer(410, {}, b'{"error":{"kind":"deleted_session"}}')
        return self._ok(self._session(name, self.sessions.setdefault(name, Held())))

    def _session(self, name: str, held: Held) -> dict[str, object]:
        able = self.is_full
        offer = {"ack": able, "digest": able, "rewound": able, "deletes": able and self.declares}
        return {"id": name, "capabilities": {**offer, "max_events": EVENTS_MAX}, "ack": self._ack(held)}

    def _events(self, name: str, held: Held, upload: Upload, part: bool) -> HttpAnswer:
        ids = upload.ids()
        if any(one.startswith(POISON) for one in ids):
            return HttpAnswer(400, {}, b"{}")
        if len(ids) > EVENTS_MAX:
            return HttpAnswer(413, {}, b"{}")
        self.changes += 1
        if self.changes % 2:
            self.keep_backup()
        before, taken = len(held.visible()), len(ids) // 2 if part else len(ids)
        for identity, raw in list(zip(ids, upload.events, strict=True))[:taken]:
            held.copies += not self.is_full or identity not in held.bodies
            held.bodies.setdefault(identity, bytes(raw))
            held.hidden.discard(identity)
        self.ever.setdefault(name.partition("~")[0], set()).update(ids[:taken])
        accepted = len(held.visible()) - before
        if self.is_full:
            held.hidden.update(one for one in upload.rewound if one in held.bodies)
        if part:
            return HttpAnswer(500, {}, b"")
        ack = self._ack(held)
        return self._ok({"ack": {**ack, "accepted": accepted, "duplicates": len(ids) - accepted}} if ack else {})

    def _ack(self, held: Held) -> dict[str, object] | None:
        if not self.is_full:
            return None
        digest = to_hex(add(EMPTY, (_hashes(one, held.bodies[one])[1] for one in held.visible())))
        return {"count": len(held.visible()), "digest": digest, "epoch": str(self.epoch), "changes": self.changes}

    def _ok(self, what: object) -> HttpAnswer:
        headers = {STORE_HEADER: str(self.store)} if self.is_full else {}
        return HttpAnswer(200, {**headers, "content-type": "application/json"}, msgspec.json.encode(what))


def common_order(wanted: Iterable[str], seen: Iterable[str]) -> bool:
    """Tell whether the ids that both have stand in the same order."""
    wanted, seen = list(wanted), list(dict.fromkeys(seen))
    both = set(wanted) & set(seen)
    return [one for one in wanted if one in both] == [one for one in seen if one in both]
