"""The spans of tool calls, found by id, agent and order (ids are not unique in a session), of permissions and hooks."""

import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from otel import names, payloads
from otel.event import Event, payload
from otel.machines.traces.chats import Invocation
from otel.machines.traces.spans import Spans, add_event, cut, fill, link, parse_traceparent
from otel.model import Attributes, Context, Span

OPEN_MAX: Final = 1_024
REMEMBERED_MAX: Final = 1_024
_PENDING_MAX: Final = 256
# Hooks of these types run when the interaction is over; all others that run while nothing does, run for the next one.
AFTERWARDS: Final = frozenset(("agentStop", "subagentStop", "sessionEnd", "errorOccurred"))
ABORTED: Final = "Operation aborted"
_SHELL: Final = "bash"
_MCP_TOOLS_CALL: Final = "tools/call"
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


@dataclass(slots=True)
class Tools:
    """The tool calls of a session that have begun, and where those that ended were."""

    spans: Spans
    count: int = 0
    open: dict[str, Call] = field(default_factory=dict)
    # Ordered, because the oldest of a dict is found the later the more have gone from its front.
    _contexts: OrderedDict[str, tuple[Context, int, str | None]] = field(default_factory=OrderedDict)
    _requested: dict[str, None] = field(default_factory=dict)
    _own: dict[str, None] = field(default_factory=dict)

    def started(self, event: Event, agent: Invocation, now: int) -> Context:
        """A tool begins."""
        start = payload(event, payloads.ToolStart)
        call_id, name = start.tool_call_id or "", start.tool_name or "unknown"
        target = cut(name)
        span = self.spans.begin(names.EXECUTE_TOOL, event.id, now, agent.span.context, target)
        attributes = span.attributes
        attributes[names.TOOL_NAME] = target
        attributes[names.TOOL_TYPE] = "function"
        if name == _SHELL and not self.spans.legacy:
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
            span.attributes[names.MCP_METHOD] = _MCP_TOOLS_CALL
        if call_id in self._requested:
            del self._requested[call_id]
            span.attributes[names.TOOL_USER_REQUESTED] = True
        if call_id in self._own:
            del self._own[call_id]
            span.attributes[names.TOOL_CALLED_BY_CLI] = True
        if self.spans.content:
            _add_arguments(span, event)
        self._remember(call_id, span.context, agent.agent)
        self.open[event.id] = Call(span, call_id, agent.agent, name == _SHELL)
        if len(self.open) > OPEN_MAX:
            self._end(self.open.pop(next(iter(self.open))), now, "never_completed")
        return span.context

    def completed(self, event: Event, complete: payloads.ToolComplete, now: int) -> Context | None:
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
        if self.spans.content:
            fill(span.attributes, (names.TOOL_RESULT, payload(event, payloads.ToolResult).result.content))
        error = None
        if complete.success is False:
            failure = complete.error or payloads.ToolFailure()
            code = failure.code
            span.failure = cut(failure.message) if failure.message else None
            error = cut(code) if code and self.spans.legacy else "cancelled" if code == "cancelled" else "ToolError"
            said: Attributes = {names.EXCEPTION_TYPE: "ToolError"}
            fill(said, (names.EXCEPTION_MESSAGE, failure.message), (names.ERROR_CODE, code))
            self.spans.failed(span, now, said)
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

    def called_by_cli(self, call_ids: Iterable[str | None]) -> None:
        """The CLI, not the model, asks for tools, to read what a notification is about."""
        self._own.update((call_id, None) for call_id in call_ids if call_id)
        while len(self._own) > REMEMBERED_MAX:
            del self._own[next(iter(self._own))]

    def external_requested(self, event: Event, above: Context, now: int) -> Context:
        """A client is asked to do the work of a tool; the event says where the CLI's own telemetry is by then."""
        asked = payload(event, payloads.ExternalTool)
        call = self._find(asked.tool_call_id or "", event.agent_id)
        parent = call.span.context if call is not None else above
        name = asked.tool_name or "unknown"
        span = self.spans.begin(names.EXTERNAL_TOOL, event.id, now, parent, cut(name))
        fill(span.attributes, (names.EXTERNAL_TOOL_NAME, name), (names.EXTERNAL_TOOL_CALL_ID, asked.tool_call_id))
        outside = parse_traceparent(asked.traceparent)
        if outside is not None:
            span.links.append(link(outside, "cli_trace"))
        if call is not None and call.external is None:
            call.external = span
        else:
            self.spans.end(span, now)
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

    def context_of_permission(self, event: Event) -> Context | None:
        """Return where the open call is that a permission is requested for."""
        call_id = payload(event, payloads.PermissionRequested).permission_request.tool_call_id
        call = self._find(call_id, event.agent_id) if call_id else None
        return call.span.context if call is not None else None

    def cancel(self, agent: str | None, now: int, error: str) -> None:
        """End what an agent has open: it was stopped."""
        for call in [call for call in self.open.values() if call.agent == agent]:
            del self.open[call.span.opened_by]
            said: Attributes = {names.EXCEPTION_TYPE: "ToolError", names.ERROR_CODE: error}
            said[names.EXCEPTION_MESSAGE] = call.span.failure = ABORTED
            self.spans.failed(call.span, now, said)
            self._end(call, now, error)

    def pop_all(self) -> list[Span]:
        """Return every span that is still open, inner ones first, and forget them."""
        calls = list(self.open.values())
        self.open.clear()
        outer = [call.span for call in calls]
        return [call.external for call in calls if call.external is not None] + outer

    def _shell(self, event: Event, attributes: Attributes) -> str:
        """Return the program that runs a shell's command, as the CLI names it: a detached one has another."""
        detached = payload(event, payloads.ToolArguments).arguments.detach is True
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
            self.spans.end(call.external, now, error)
        self.spans.end(call.span, now, error)

    def _remember(self, call_id: str, context: Context, agent: str | None) -> None:
        self.count += 1
        self._contexts.pop(call_id, None)
        self._contexts[call_id] = (context, self.count, agent)
        if len(self._contexts) > REMEMBERED_MAX:
            self._contexts.popitem(last=False)


def _add_arguments(span: Span, event: Event) -> None:
    raw = bytes(payload(event, payloads.RawArguments).arguments)
    arguments: payloads.Arguments = payload(event, payloads.ToolArguments).arguments
    fill(
        span.attributes,
        (names.TOOL_ARGUMENTS, raw.decode("utf-8", "replace")),
        (names.TOOL_COMMAND, arguments.command),
        (names.TOOL_FILE_PATH, arguments.path),
    )


@dataclass(slots=True)
class Waits:
    """The pending permissions and hooks of a session: a request, and later a response with the same id."""

    spans: Spans
    open: dict[tuple[str, str], Span] = field(default_factory=dict)
    _held: list[tuple[Event, payloads.Hook, int]] = field(default_factory=list)

    def permission_requested(self, event: Event, parent: Context, now: int) -> Context:
        """A permission is asked for."""
        data = payload(event, payloads.PermissionRequested)
        span = self.spans.begin(names.PERMISSION, event.id, now, parent)
        request = data.permission_request
        fill(
            span.attributes,
            (names.PERMISSION_KIND, request.kind),
            (names.PERMISSION_TOOL, request.tool_name),
            (names.TOOL_CALL_ID, request.tool_call_id),
        )
        self._keep((names.PERMISSION, data.request_id or ""), span, now)
        return span.context

    def permission_completed(self, event: Event, now: int) -> Context | None:
        """A permission is given or denied."""
        data = payload(event, payloads.PermissionCompleted)
        span = self.open.pop((names.PERMISSION, data.request_id or ""), None)
        if span is None:
            return None
        fill(span.attributes, (names.PERMISSION_RESULT, data.result.kind))
        self.spans.end(span, now)
        return span.context

    def hook_started(
        self, event: Event, hook: payloads.Hook, above: Context, open_span: Span | None, now: int
    ) -> Context:
        """A hook begins below a span, which gets a span event; the hook's own span gets it if the other has ended."""
        span = self.spans.begin(names.EXECUTE_HOOK, event.id, now, above, cut(hook.hook_type or "unknown"))
        about = _identity(hook)
        if hook.input is not None:
            fill(about, (names.HOOK_TOOL_NAMES, hook.input.tool_names))
        span.attributes.update(about)
        add_event(open_span or span, now, names.HOOK_START, about)
        self._keep((names.EXECUTE_HOOK, hook.hook_invocation_id or ""), span, now)
        return span.context

    def hook_ended(self, hook: payloads.Hook, above: Span | None, now: int) -> Context | None:
        """A hook ends; the parent span gets a span event, or the hook's own if the parent has ended."""
        span = self.open.pop((names.EXECUTE_HOOK, hook.hook_invocation_id or ""), None)
        if span is None:
            return None
        attributes, failed = _identity(hook), hook.success is False
        tools = span.attributes.get(names.HOOK_TOOL_NAMES)
        output = hook.output or payloads.HookOutput()
        # As the CLI says it: a hook that decides nothing about a tool allows it.
        decided = output.permission_decision or output.decision or ("allow" if tools and not failed else None)
        fill(attributes, (names.HOOK_TOOL_NAMES, tools), (names.HOOK_DECISION, decided))
        fill(span.attributes, (names.HOOK_DECISION, decided))
        if failed:
            message = hook.error.message if hook.error is not None else None
            span.failure = cut(message) if message else None
            fill(span.attributes, (names.HOOK_ERROR_MESSAGE, message))
            fill(attributes, (names.HOOK_ERROR_MESSAGE, message))
        if not self.spans.legacy:
            attributes[names.HOOK_DURATION] = max(now - span.start_ns, 0) / 1e9
        add_event(above or span, now, names.HOOK_ERROR if failed else names.HOOK_END, attributes)
        self.spans.end(span, now, "HookError" if failed else None)
        return span.context

    def hold_hook(self, event: Event, hook: payloads.Hook, now: int) -> None:
        """Hold a hook event that occurs between interactions, for the next interaction."""
        self._held.append((event, hook, now))
        del self._held[:-_PENDING_MAX]

    def pop_held(self) -> list[tuple[Event, payloads.Hook, int]]:
        """Return and clear the held events."""
        held, self._held = self._held, []
        return held

    def pop_all(self) -> list[Span]:
        """Return and clear all pending spans."""
        spans = list(self.open.values())
        self.open.clear()
        return spans

    def _keep(self, key: tuple[str, str], span: Span, now: int) -> None:
        earlier = self.open.pop(key, None)
        if earlier is None and len(self.open) >= _PENDING_MAX:
            earlier = self.open.pop(next(iter(self.open)))
        if earlier is not None:
            self.spans.end(earlier, now, "never_completed")
        self.open[key] = span


def _identity(hook: payloads.Hook) -> Attributes:
    return fill({}, (names.HOOK_TYPE, hook.hook_type), (names.HOOK_INVOCATION_ID, hook.hook_invocation_id))
