"""Interactions: each is a trace, whose root is the main agent, linked to the interaction before it.

A forked session begins with a copy of another one's events, under the same ids and older than its own start. They
give spans here too, and their roots link to those of the original session.
"""

import re
from typing import Final, Literal

from otel import ids, names
from otel.event import Event, payload
from otel.machines.traces.chats import Chats
from otel.machines.traces.invocation import Invocation
from otel.machines.traces.spans import Spans, cut, fill, link, parse_traceparent
from otel.model import Attributes, Context, Kind, Link, Span
from otel.name_types import Content as Level
from otel.payloads.events import Began, ChangePayload, MessagePayload, Subagent, Where

_FORKED: Final = re.compile(r"Forked from .*\(([0-9a-fA-F-]{36})\) as ", re.DOTALL)
_HELD_MAX: Final = 16


class Interactions:
    """The open root, if any, and the links of the next one."""

    __slots__ = (
        "_chats",
        "_copied_until_ns",
        "_held",
        "_links",
        "_mode",
        "_origin",
        "_previous",
        "_spans",
        "_why",
        "agent_name",
        "external_parent",
        "last",
        "model",
        "place",
        "root",
        "version",
    )  # fmt: skip

    def __init__(
        self, spans: Spans, chats: Chats, traceparent: str | None, parent_mode: Literal["link", "child"]
    ) -> None:
        self._spans = spans
        self._chats = chats
        self._mode = parent_mode
        self.external_parent = parse_traceparent(traceparent)
        self.root: Invocation | None = None
        self.last: Context | None = None
        self.agent_name: str | None = None
        self.model: str | None = None
        self.version: str | None = None
        self.place: Attributes = {}
        self._origin: str | None = None
        self._copied_until_ns = 0
        self._previous: str | None = None
        self._why = "previous_interaction"
        self._links: list[Link] = []
        self._held: list[tuple[Event, int]] = []

    def open(self, event: Event, now: int) -> Invocation:
        """Begin an interaction with an event. The caller has closed the one before."""
        parent = self.external_parent if self._mode == "child" else None
        kind = Kind.CLIENT if self._spans.legacy else Kind.INTERNAL
        target = cut(self.agent_name) if self.agent_name else None
        span = self._spans.begin(names.INVOKE_AGENT, event.id, now, parent, target, Level.METADATA, kind)
        span.attributes.update(self.place)
        fill(
            span.attributes,
            (names.PROVIDER, self._chats.provider),
            (names.AGENT_ID, names.MAIN_AGENT),
            (names.AGENT_NAME, self.agent_name),
            (names.AGENT_VERSION, self.version),
            (names.REQUEST_MODEL, self.model),
        )
        if self.external_parent is not None and self._mode == "link":
            span.links.append(link(self.external_parent, "traceparent"))
        if self.last is not None:
            span.links.append(link(self.last, self._why))
        span.links += self._links
        self._links, self._why = [], "previous_interaction"
        self._previous, self.last = event.id, span.context
        self.root = Invocation(span, name=self.agent_name)
        return self.root

    def close(self, now: int) -> Span | None:
        """End the interaction; returns its span, or None when none is open."""
        root, self.root = self.root, None
        if root is None:
            return None
        self._chats.finish_open(root, now)
        root.span.attributes[names.PROVIDER] = self._chats.provider
        if self._origin is not None and root.span.start_ns < self._copied_until_ns:
            root.span.links.append(self._in_origin(self._origin, root.span.opened_by))
        return root.end(now, caches=self._spans.legacy)

    def began(self, event: Event) -> Began:
        """The session begins or goes on."""
        data = payload(event, Began)
        self.version = data.copilot_version or self.version
        self.model = data.selected_model or self.model
        self._locate(data.context)
        if event.type == "session.resume":
            self._why = "resume"
        else:
            self._copied_until_ns = event.time_ns
        return data

    def handed_off(self, event: Event) -> None:
        """The session comes from somewhere else: the next interaction says so."""
        self._why = "handoff"
        remote = payload(event, ChangePayload).remote_session_id
        fill(self.place, (names.REMOTE_SESSION_ID, remote))

    def forked(self, event: Event) -> None:
        """The session is a copy of another one up to here: the next interaction refers to where the other one was."""
        data = payload(event, MessagePayload)
        found = _FORKED.match(data.message or "")
        source = found[1].lower() if found is not None else self._origin if data.info_type == "fork" else None
        if source is not None and source != self._spans.session and self._previous is not None:
            self._links = [self._in_origin(source, self._previous)]

    def record_call_session(self, session: str | None) -> None:
        """The main agent called a model, in a session that may be the one that this is a copy of."""
        self._origin = session if session != self._spans.session else None

    def changed(self, event: Event) -> None:
        """Another model or agent answers from now on, or the session is somewhere else."""
        if event.type == "session.model_change":
            self.model = payload(event, ChangePayload).new_model or self.model
        elif event.type == "session.context_changed":
            self._locate(payload(event, Where))
        else:
            self.agent_name = payload(event, Subagent).agent_name if event.type == "subagent.selected" else None

    def hold(self, event: Event, now: int) -> None:
        """Hold an event that occurred between interactions, for the next interaction."""
        self._held.append((event, now))
        del self._held[:-_HELD_MAX]

    def pop_held(self) -> list[tuple[Event, int]]:
        """Return and clear the held events."""
        held, self._held = self._held, []
        return held

    @staticmethod
    def _in_origin(session: str, opened_by: str) -> Link:
        """Return a reference to the root that an event opened in the session that it was copied from."""
        context = Context(ids.trace_id(session, opened_by), ids.span_id(names.INVOKE_AGENT, session, opened_by))
        return link(context, "fork")

    def _locate(self, where: Where) -> None:
        fill(
            self.place,
            (names.CWD, where.cwd),
            (names.GIT_ROOT, where.git_root),
            (names.GIT_REPOSITORY, where.repository),
            (names.GIT_BRANCH, where.branch),
            (names.GIT_COMMIT, where.head_commit),
        )
