"""Asking for what a state only refers to: pages of older turns, and content that is held beside it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from exporter.core.ahp import errors, requests
from exporter.core.ahp.chat import Chat
from exporter.core.ahp.dialect import CLASSIC, Dialect
from exporter.core.ahp.drafts import Draft, moment
from exporter.core.ahp.messages import ErrorResponse
from exporter.core.ahp.resources import Resources
from exporter.core.ahp.session import Session
from exporter.core.ahp.values import Json

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
