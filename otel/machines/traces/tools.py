"""The spans of tool calls, found by id, agent and order: the ids alone are not unique within a session."""

import re
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from otel import names
from otel.event import Event, payload
from otel.machines.traces.invocation import Invocation
from otel.machines.traces.spans import Spans, add_event, cut, fill, finish, link
from otel.model import Attributes, Context, Span
from otel.payloads.tools import (
    Arguments,
    ExternalTool,
    RawArguments,
    ToolArguments,
    ToolComplete,
    ToolResult,
    ToolStart,
)

OPEN_MAX: Final = 1_024
REMEMBERED_MAX: Final = 1_024
_SHELL: Final = "bash"
# How CLI 1.0.48 ends the result of a shell that ended; newer ones say it in a field.
_EXITED: Final = re.compile(rb'<exited with exit code (-?[0-9]{1,9})>"')


@dataclass(slots=True)
class Call:
    """A tool at work, on behalf of an agent."""

    span: Span
    call_id: str
    agent: str | None
    shell: bool
    external: Span | None = None


class Tools:
    """The tool calls of a session that have begun, and where those that ended were; finished spans go to `done`."""

    __slots__ = ("_contexts", "_done", "_requested", "_spans", "count", "open")

    def __init__(self, spans: Spans, done: list[Span]) -> None:
        self._spans = spans
        self._done = done
        self.open: dict[str, Call] = {}
        # Ordered, because the oldest of a dict is found the later the more have gone from its front.
        self._contexts: OrderedDict[str, tuple[Context, int, str | None]] = OrderedDict()
        self.count = 0
        self._requested: dict[str, None] = {}

    def started(self, event: Event, start: ToolStart, agent: Invocation, now: int) -> Context:
        """A tool begins."""
        call_id, name = start.tool_call_id or "", start.tool_name or "unknown"
        target = cut(name)
        span = self._spans.begin(names.EXECUTE_TOOL, event.id, now, agent.span.context, target)
        attributes = span.attributes
        attributes[names.TOOL_NAME] = target
        attributes[names.TOOL_TYPE] = "function"
        if name == _SHELL and not self._spans.legacy:
            span.target = f"{target} {self._shell(event, attributes)}"
        if call_id:
            attributes[names.TOOL_CALL_ID] = cut(call_id)
        if agent.agent is not None:
            fill(attributes, (names.AGENT_NAME, agent.name), (names.AGENT_INSTANCE_ID, agent.agent))
        if agent.skill or start.mcp_tool_name:
            fill(attributes, (names.SKILL_NAME, agent.skill), (names.MCP_TOOL_NAME, start.mcp_tool_name))
        if start.mcp_server_name:
            span.attributes[names.TOOL_TYPE] = "extension"
            hashed = sha256(start.mcp_server_name.encode("utf-8", "replace")).hexdigest()
            span.attributes[names.MCP_SERVER_HASH] = hashed
        if call_id in self._requested:
            del self._requested[call_id]
            span.attributes[names.TOOL_USER_REQUESTED] = True
        if self._spans.content:
            _add_arguments(span, event)
        self._remember(call_id, span.context, agent.agent)
        self.open[event.id] = Call(span, call_id, agent.agent, name == _SHELL)
        if len(self.open) > OPEN_MAX:
            self._end(self.open.pop(next(iter(self.open))), now, "never_completed")
        return span.context

    def completed(self, event: Event, complete: ToolComplete, now: int) -> Context | None:
        """A tool ends. A call that is not open (after a crash, its end is made up on resume) has only its place."""
        call_id = complete.tool_call_id or ""
        call = self._find(call_id, event.agent_id)
        if call is None:
            return self.context_of_call(call_id)
        del self.open[call.span.opened_by]
        span = call.span
        if complete.shell_execution is not None:
            fill(span.attributes, (names.EXIT_CODE, complete.shell_execution.exit_code))
        elif call.shell and (exited := _EXITED.search(bytes(event.data))) is not None:
            span.attributes[names.EXIT_CODE] = int(exited[1])
        if self._spans.content:
            fill(span.attributes, (names.TOOL_RESULT, payload(event, ToolResult).result.content))
        error = None
        if complete.success is False:
            failure = complete.error
            code = failure.code if failure is not None else None
            message = failure.message if failure is not None else None
            error = cut(code) if code and self._spans.legacy else "cancelled" if code == "cancelled" else "ToolError"
            said: Attributes = {names.EXCEPTION_TYPE: "ToolError"}
            fill(said, (names.EXCEPTION_MESSAGE, message), (names.ERROR_CODE, code))
            add_event(span, now, names.EXCEPTION, said)
        self._end(call, now, error)
        return span.context

    def requested(self, call_id: str | None) -> Context | None:
        """A person, not the model, asks for a tool."""
        call = self._find(call_id or "", None)
        if call is not None:
            call.span.attributes[names.TOOL_USER_REQUESTED] = True
            return call.span.context
        if call_id:
            self._requested[call_id] = None
            if len(self._requested) > REMEMBERED_MAX:
                del self._requested[next(iter(self._requested))]
        return None

    def external_requested(
        self, event: Event, asked: ExternalTool, above: Context, outside: Context | None, now: int
    ) -> Context:
        """A client is asked to do the work of a tool; `outside` is where the CLI's own telemetry is by then."""
        call = self._find(asked.tool_call_id or "", event.agent_id)
        parent = call.span.context if call is not None else above
        name = asked.tool_name or "unknown"
        span = self._spans.begin(names.EXTERNAL_TOOL, event.id, now, parent, cut(name))
        fill(span.attributes, (names.EXTERNAL_TOOL_NAME, name), (names.EXTERNAL_TOOL_CALL_ID, asked.tool_call_id))
        if outside is not None:
            span.links.append(link(outside, "cli_trace"))
        if call is not None and call.external is None:
            call.external = span
        else:
            self._done.append(finish(span, now))
        return span.context

    def context_of_call(self, call_id: str | None, count: int | None = None) -> Context | None:
        """Return where the latest call of an id is or was; only if it was among the first `count`, when that is given.

        What was there before something began cannot be below it.
        """
        known = self._contexts.get(call_id or "")
        if known is None or (count is not None and known[1] > count):
            return None
        return known[0]

    def caller_of(self, call_id: str) -> str | None:
        """Return the sub-agent that made the latest call of an id; None when it was the main agent, or is not known."""
        known = self._contexts.get(call_id)
        return known[2] if known is not None else None

    def context_of_open(self, call_id: str | None, agent: str | None) -> Context | None:
        """Return where the open call of an id is."""
        call = self._find(call_id or "", agent) if call_id else None
        return call.span.context if call is not None else None

    def cancel(self, agent: str | None, now: int, error: str) -> None:
        """End what an agent has open: it was stopped."""
        for call in [call for call in self.open.values() if call.agent == agent]:
            del self.open[call.span.opened_by]
            said: Attributes = {names.EXCEPTION_TYPE: "ToolError", names.ERROR_CODE: error}
            add_event(call.span, now, names.EXCEPTION, said)
            self._end(call, now, error)

    def pop_all(self) -> list[Span]:
        """Return every span that is still open, inner ones first, and forget them."""
        calls = list(self.open.values())
        self.open.clear()
        outer = [call.span for call in calls]
        return [call.external for call in calls if call.external is not None] + outer

    def _shell(self, event: Event, attributes: Attributes) -> str:
        """Return the program that runs a shell's command, as the CLI names it: a detached one has another."""
        detached = payload(event, ToolArguments).arguments.detach is True
        program = "sh" if detached else _SHELL
        attributes[names.EXECUTABLE_NAME] = program
        if not detached:
            attributes[names.EXECUTABLE_PATH] = "/bin/bash"
        return program

    def _find(self, call_id: str, agent: str | None) -> Call | None:
        """Return the open call of an id that began first, rather one of the same agent."""
        first = None
        for call in self.open.values():
            if call.call_id == call_id:
                if call.agent == agent:
                    return call
                first = first or call
        return first

    def _end(self, call: Call, now: int, error: str | None) -> None:
        if call.external is not None:
            self._done.append(finish(call.external, now, error))
        self._done.append(finish(call.span, now, error))

    def _remember(self, call_id: str, context: Context, agent: str | None) -> None:
        self.count += 1
        self._contexts.pop(call_id, None)
        self._contexts[call_id] = (context, self.count, agent)
        if len(self._contexts) > REMEMBERED_MAX:
            self._contexts.popitem(last=False)


def _add_arguments(span: Span, event: Event) -> None:
    raw = bytes(payload(event, RawArguments).arguments)
    arguments: Arguments = payload(event, ToolArguments).arguments
    fill(
        span.attributes,
        (names.TOOL_ARGUMENTS, raw.decode("utf-8", "replace")),
        (names.TOOL_COMMAND, arguments.command),
        (names.TOOL_FILE_PATH, arguments.path),
    )
