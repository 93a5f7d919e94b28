"""Requests for what a state only refers to: pages of older turns, and referenced content."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from exporter.core.ahp import errors, requests
from exporter.core.ahp.chat import Chat
from exporter.core.ahp.dialect import CLASSIC, Dialect
from exporter.core.ahp.drafts import Draft, id_of, moment
from exporter.core.ahp.messages import ErrorResponse
from exporter.core.ahp.session import Session
from exporter.core.ahp.values import Json, mapping, number, objects, text

BYTES_MAX: Final = 256 << 10
REFERENCES_MAX: Final = 256


class Resources:
    """The references in a session's state; each is read once."""

    def __init__(self) -> None:
        self._found: dict[str, Json] = {}

    def find(self, turns: list[Json]) -> list[str]:
        """Return the references in turns that are new and not too large."""
        new = []
        for turn in turns:
            for part in objects(turn, "responseParts"):
                refers = [part] if part.get("kind") == "contentRef" else []
                refers += [
                    each for each in objects(mapping(part, "toolCall"), "content") if each.get("type") == "resource"
                ]
                new += [text(each, "uri") for each in refers if self._is_new(each)]
        return new

    def _is_new(self, reference: Json) -> bool:
        uri = text(reference, "uri")
        # A file: address could name any file of this machine.
        if not uri or uri in self._found or uri.lower().startswith("file:") or len(self._found) >= REFERENCES_MAX:
            return False
        if (number(reference, "sizeHint") or 0) > BYTES_MAX:
            return False
        self._found[uri] = {"contentType": text(reference, "contentType")}
        return True

    def is_found(self, uri: str) -> bool:
        """Tell whether a state referred to the address; no other content may be read."""
        return uri in self._found

    def read(self, uri: str, result: Any) -> tuple[str, Json]:
        """Return the id and the data of the event for fetched content."""
        given = result if isinstance(result, dict) else {}
        content = text(given, "data")
        data: Json = {
            "uri": uri,
            "contentType": text(given, "contentType") or text(self._found.get(uri), "contentType"),
            "encoding": text(given, "encoding"),
            "isTruncated": len(content) > BYTES_MAX,
            "data": content if len(content) <= BYTES_MAX else "",
        }
        return self.id_of(uri), data

    def id_of(self, uri: str) -> str:
        """Return the id of the event about a reference."""
        return id_of("resource", uri)


def turns_in(action: Json) -> list[Json]:
    """Return the parts of an action that may hold references, as turns."""
    kind = text(action, "type")
    if kind == "chat/turnsLoaded":
        return objects(action, "turns")
    if kind == "chat/responsePart":
        return [{"responseParts": [mapping(action, "part")]}]
    if kind in ("chat/toolCallContentChanged", "chat/toolCallComplete"):
        call = {**(mapping(action, "result") or action), "toolCallId": action.get("toolCallId")}
        return [{"responseParts": [{"kind": "toolCall", "toolCall": call}]}]
    return []


PAGE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A message to the host and the callbacks for its response; a notification has no response."""

    write: Callable[[int], str]
    on_result: Callable[[Any, float], None]
    on_error: Callable[[ErrorResponse, float], None]
    is_notification: bool = False


@dataclass(slots=True)
class Fetcher:
    """Adds requests to `pending`; calls `on_change` for a session that a response changed."""

    on_change: Callable[[Session, float], None]
    pending: list[PendingRequest] = field(default_factory=list)
    dialect: Dialect = CLASSIC
    reads_resources: bool = True
    _requested_at: dict[str, float] = field(default_factory=dict)

    def stop(self) -> None:
        """Drop all requests: the connection is closed."""
        self.pending.clear()
        self._requested_at.clear()

    def fetch_page(self, session: Session, chat: Chat, now: float) -> None:
        """Request the next page of a conversation's history, if one is needed."""
        uri = chat.owner.chat
        if chat.history is None:
            self._requested_at.pop(uri, None)
        if not chat.wants_page or chat.history is None:
            return
        chat.wants_page = False
        self._requested_at[uri] = now
        dialect, before, cursor = self.dialect, chat.history.before, chat.history.cursor

        def on_result(result: Any, at: float) -> None:
            if chat.is_known:
                session.add_drafts(chat, chat.add_page(result, at), at)
                self.on_change(session, at)
                self.fetch_page(session, chat, at)

        def on_error(failure: ErrorResponse, at: float) -> None:
            if chat.is_known:
                reason = "the host does not give older turns: " + errors.explain(failure.code)
                session.add_drafts(chat, chat.abandon_history(reason, at), at)
                self.on_change(session, at)

        write = lambda id: requests.fetch_turns(id, dialect, uri, before=before, cursor=cursor)  # noqa: E731
        self.pending.append(PendingRequest(write, on_result, on_error))

    def has_timed_out(self, uri: str, now: float) -> bool:
        """Tell whether a page request has timed out; if so, stop waiting for it."""
        if now - self._requested_at.get(uri, now) <= PAGE_SECONDS:
            return False
        del self._requested_at[uri]
        return True

    def fetch_references(self, session: Session, resources: Resources, turns: list[Json]) -> None:
        """Request the content that turns refer to."""
        if not self.reads_resources or session.is_live_only:
            return
        for uri in resources.find(turns):
            self._read(session, resources, uri)

    def _read(self, session: Session, resources: Resources, uri: str) -> None:
        assert resources.is_found(uri)
        dialect = self.dialect

        def on_result(result: Any, at: float) -> None:
            identity, data = resources.read(uri, result)
            session.emit([Draft(identity, "exporter.content", moment(at), data)])
            self.on_change(session, at)

        def on_error(failure: ErrorResponse, at: float) -> None:
            data: Json = {"uri": uri, "error": errors.explain(failure.code)}
            session.emit([Draft(resources.id_of(uri), "exporter.content", moment(at), data)])
            self.on_change(session, at)

        write = lambda id: requests.read_resource(id, dialect, session.uri, uri)  # noqa: E731
        self.pending.append(PendingRequest(write, on_result, on_error))

    def unsubscribe(self, uri: str) -> None:
        """Unsubscribe from an address."""
        dialect = self.dialect
        self.pending.append(
            PendingRequest(lambda _: requests.unsubscribe(dialect, uri), ignore, ignore, is_notification=True)
        )

    def subscribe(
        self, uri: str, on_result: Callable[[Any, float], None], on_error: Callable[[ErrorResponse, float], None]
    ) -> None:
        """Subscribe to an address; the response holds its state."""
        dialect = self.dialect
        self.pending.append(PendingRequest(lambda id: requests.subscribe(id, dialect, uri), on_result, on_error))


def ignore(answer: Any, now: float) -> None:
    """Ignore a response."""
