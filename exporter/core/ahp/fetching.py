"""Asking for what a state only refers to: pages of older turns, and content that is held beside it."""

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
    """The references found in a session's state, each to be read once."""

    def __init__(self) -> None:
        self._found: dict[str, Json] = {}

    def find(self, turns: list[Json]) -> list[str]:
        """Return the references in the answers of turns that are new and not too large."""
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
        # A file is no content of the host's, and whatever names one could name any.
        if not uri or uri in self._found or uri.lower().startswith("file:") or len(self._found) >= REFERENCES_MAX:
            return False
        if (number(reference, "sizeHint") or 0) > BYTES_MAX:
            return False
        self._found[uri] = {"contentType": text(reference, "contentType")}
        return True

    def is_found(self, uri: str) -> bool:
        """Tell whether a state referred to it: nothing else may be read, whatever a host would give."""
        return uri in self._found

    def read(self, uri: str, result: Any) -> tuple[str, Json]:
        """Return the id and the data of the event that holds what was read."""
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
    """Return what an action holds that may refer to something, as turns."""
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
class Ask:
    """A message to the host, and what is done with its answer; a notification has none."""

    write: Callable[[int], str]
    then: Callable[[Any, float], None]
    otherwise: Callable[[ErrorResponse, float], None]
    is_notification: bool = False


@dataclass(slots=True)
class Fetching:
    """Puts what is to be asked into `asks`; calls `touched` for a session that was told more of by an answer."""

    touched: Callable[[Session, float], None]
    asks: list[Ask] = field(default_factory=list)
    dialect: Dialect = CLASSIC
    reads_resources: bool = True
    _since: dict[str, float] = field(default_factory=dict)

    def stop(self) -> None:
        """Forget what was asked: the connection is gone."""
        self.asks.clear()
        self._since.clear()

    def page(self, session: Session, chat: Chat, now: float) -> None:
        """Ask for the next page of a conversation's history, if it wants one."""
        uri = chat.place.chat
        if chat.history is None:
            self._since.pop(uri, None)
        if not chat.asks or chat.history is None:
            return
        chat.asks = False
        self._since[uri] = now
        dialect, before, cursor = self.dialect, chat.history.before, chat.history.cursor

        def then(result: Any, at: float) -> None:
            if chat.is_known:
                session.told(chat, chat.fetched(result, at), at)
                self.touched(session, at)
                self.page(session, chat, at)

        def otherwise(failure: ErrorResponse, at: float) -> None:
            if chat.is_known:
                reason = "the host does not give older turns: " + errors.explain(failure.code)
                session.told(chat, chat.broke(reason, at), at)
                self.touched(session, at)

        write = lambda id: requests.fetch_turns(id, dialect, uri, before=before, cursor=cursor)  # noqa: E731
        self.asks.append(Ask(write, then, otherwise))

    def is_late(self, uri: str, now: float) -> bool:
        """Tell whether a page has been waited for too long; it is not waited for any more."""
        if now - self._since.get(uri, now) <= PAGE_SECONDS:
            return False
        del self._since[uri]
        return True

    def refer(self, session: Session, resources: Resources, turns: list[Json]) -> None:
        """Ask for what turns refer to."""
        if not self.reads_resources or session.is_live_only:
            return
        for uri in resources.find(turns):
            self._read(session, resources, uri)

    def _read(self, session: Session, resources: Resources, uri: str) -> None:
        assert resources.is_found(uri)
        dialect = self.dialect

        def then(result: Any, at: float) -> None:
            identity, data = resources.read(uri, result)
            session.emit([Draft(identity, "exporter.content", moment(at), data)])
            self.touched(session, at)

        def otherwise(failure: ErrorResponse, at: float) -> None:
            data: Json = {"uri": uri, "error": errors.explain(failure.code)}
            session.emit([Draft(resources.id_of(uri), "exporter.content", moment(at), data)])
            self.touched(session, at)

        write = lambda id: requests.read_resource(id, dialect, session.uri, uri)  # noqa: E731
        self.asks.append(Ask(write, then, otherwise))

    def leave(self, uri: str) -> None:
        """Ask not to be told of something any more."""
        dialect = self.dialect
        self.asks.append(Ask(lambda _: requests.unsubscribe(dialect, uri), ignore, ignore, is_notification=True))

    def subscribe(
        self, uri: str, then: Callable[[Any, float], None], otherwise: Callable[[ErrorResponse, float], None]
    ) -> None:
        """Ask for a state."""
        dialect = self.dialect
        self.asks.append(Ask(lambda id: requests.subscribe(id, dialect, uri), then, otherwise))


def ignore(answer: Any, now: float) -> None:
    """Do nothing with an answer."""
