"""Interactions: each is a trace, whose root is the main agent, linked to the interaction before it.

A forked session begins with a copy of another one's events, under the same ids and older than its own start. They
give spans here too, and their roots link to those of the original session.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from otel import names
from otel.event import Event, payload
from otel.machines.traces.chats import Chats, Invocation
from otel.machines.traces.spans import Spans, cut, fill, link, span_id, trace_id
from otel.machines.traces.workflows import Workflows
from otel.model import Attributes, Context, Kind, Link
from otel.payloads import Began, ChangePayload, MessagePayload, Subagent, Where

_FORKED: Final = re.compile(r"Forked from .*\(([0-9a-fA-F-]{36})\) as ", re.DOTALL)
_HELD_MAX: Final = 16


@dataclass(slots=True)
class Interactions:
    """The open root, if any, and the links of the next one. `previous` is the event that opened the latest one,
    `version` that of the CLI.
    """

    spans: Spans
    chats: Chats
    workflows: Workflows
    external_parent: Context | None
    root: Invocation | None = None
    last: Context | None = None
    _agent_name: str | None = None
    _model: str | None = None
    version: str | None = None
    _place: Attributes = field(default_factory=dict)
    _origin: str | None = None
    _copied_until_ns: int = 0
    previous: str | None = None
    _why: str = "previous_interaction"
    _links: list[Link] = field(default_factory=list)
    _held: list[tuple[Event, int]] = field(default_factory=list)

    def open(self, event: Event, now: int) -> Invocation:
        """Begin an interaction with an event. The caller has closed the one before."""
        kind = Kind.CLIENT if self.spans.legacy else Kind.INTERNAL
        target = cut(self._agent_name) if self._agent_name else None
        span = self.spans.begin(names.INVOKE_AGENT, event.id, now, None, target, kind)
        span.attributes.update(self._place)
        fill(
            span.attributes,
            (names.PROVIDER, self.chats.provider_of_agent),
            (names.AGENT_ID, names.MAIN_AGENT),
            (names.AGENT_NAME, self._agent_name),
            (names.AGENT_VERSION, self.version),
            (names.REQUEST_MODEL, self._model),
        )
        if self.external_parent is not None:
            span.links.append(link(self.external_parent, "traceparent"))
        if self.last is not None:
            span.links.append(link(self.last, self._why))
        span.links += self._links
        self._links, self._why = [], "previous_interaction"
        self.previous, self.last = event.id, span.context
        self.root = Invocation(span, name=self._agent_name)
        return self.root

    def close(self, root: Invocation, now: int) -> None:
        """End the interaction that is open."""
        self.root = None
        self.chats.finish_open(root, now)
        fill(root.span.attributes, (names.PROVIDER, self.chats.provider_of_agent))
        if self._origin is not None and root.span.start_ns < self._copied_until_ns:
            root.span.links.append(self._in_origin(self._origin, root.span.opened_by))
        self.spans.done.append(root.end(now, caches=self.spans.legacy))
        if root.workflow is not None:
            self.workflows.around(root.span, root.workflow)

    def began(self, event: Event) -> Began:
        """The session begins or goes on."""
        data = payload(event, Began)
        self.version = data.copilot_version or self.version
        self._model = data.selected_model or self._model
        self._locate(data.context)
        if event.type == "session.resume":
            self._why = "resume"
        else:
            self._copied_until_ns = event.time_ns
        return data

    def forked(self, event: Event) -> None:
        """The session is a copy of another one up to here: the next interaction refers to where the other one was."""
        data = payload(event, MessagePayload)
        found = _FORKED.match(data.message or "")
        source = found[1].lower() if found is not None else self._origin if data.info_type == "fork" else None
        if source is not None and source != self.spans.session and self.previous is not None:
            self._links = [self._in_origin(source, self.previous)]

    def record_call_session(self, session: str | None) -> None:
        """The main agent called a model, in a session that may be the one that this is a copy of."""
        self._origin = session if session != self.spans.session else None

    def changed(self, event: Event) -> None:
        """Another model or agent answers from now on, or the session is or was somewhere else."""
        if event.type == "session.model_change":
            self._model = payload(event, ChangePayload).new_model or self._model
        elif event.type == "session.context_changed":
            self._locate(payload(event, Where))
        elif event.type == "session.handoff":
            self._why = "handoff"
            fill(self._place, (names.REMOTE_SESSION_ID, payload(event, ChangePayload).remote_session_id))
        else:
            self._agent_name = payload(event, Subagent).agent_name if event.type == "subagent.selected" else None

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
        context = Context(trace_id(session, opened_by), span_id(names.INVOKE_AGENT, session, opened_by))
        return link(context, "fork")

    def _locate(self, where: Where) -> None:
        fill(
            self._place,
            (names.CWD, where.cwd),
            (names.GIT_ROOT, where.git_root),
            (names.GIT_REPOSITORY, where.repository),
            (names.GIT_BRANCH, where.branch),
            (names.GIT_COMMIT, where.head_commit),
        )
