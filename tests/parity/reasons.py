"""What the CLI tells in its telemetry and durable events cannot give, each by name and with the reason."""

from tests.parity.oracle import CliSpan, Session

SPANS = {
    "session.provisioning": "start-up timing is measured inside the CLI and never an event",
    "session.mcp_startup_wait": "start-up timing is measured inside the CLI and never an event",
    "session.first_turn": "start-up timing is measured inside the CLI and never an event",
    "elicitation": "elicitation events are ephemeral",
    "chat (failed)": "a failed call of a model is not recorded; the session.error after the last try is",
    "(rewound)": "the events of the interaction were taken out of the log by a rewind or a truncation",
    "(cut)": "CLI 1.0.102 ends the trace with the error of a background sub-agent, what runs in it too, and begins"
    " another for the rest of the turn; here the interaction goes on until its last turn ends",
    "(other session)": "the telemetry file holds a second session too",
}

EVENTS = {
    "github.copilot.session.usage_info": "how full the context is, is an ephemeral event",
    "github.copilot.sandbox.enforcement_state": "what a sandbox does is told to telemetry only",
    "github.copilot.mcp.server.lifecycle": "the states of MCP servers are ephemeral events",
}
"""Events on spans."""

_PUT_TOGETHER = "what a call is given is put together inside the CLI; the root has what the log tells of it"

ATTRIBUTES = {
    "server.address": "no event tells where a model is",
    "server.port": "no event tells where a model is",
    "gen_ai.request.stream": "no event tells how an answer came",
    "gen_ai.tool.definitions": "no event has the definitions of the tools",
    "gen_ai.tool.description": "no event has the descriptions of the tools",
    "gen_ai.input.messages": _PUT_TOGETHER,
    "gen_ai.system_instructions": _PUT_TOGETHER,
    "gen_ai.conversation.compacted": "set here on the call that compacts; later calls do not tell, and a rewind may"
    " have taken it out of the log",
    "gen_ai.provider.name": "of a tool: the agent above it has it",
    "github.copilot.agent.type": "no event tells where an agent's definition is from",
    "github.copilot.context.skills": "the skills that were loaded are an ephemeral event",
    "github.copilot.context.mcp_server_names": "the MCP servers that were loaded are an ephemeral event",
}
"""Attributes of spans that are here, in all versions."""

_NO_RECORDS = "CLI 1.0.48 records no usage per call"

OLD_ATTRIBUTES = {
    "gen_ai.response.id": _NO_RECORDS,
    "gen_ai.response.time_to_first_chunk": _NO_RECORDS,
    "github.copilot.cost": _NO_RECORDS,
    "github.copilot.server_duration": _NO_RECORDS,
    "github.copilot.initiator": _NO_RECORDS,
    "gen_ai.request.model": "CLI 1.0.48 does not record the model of a sub-agent",
    "gen_ai.agent.version": "only the session has a version in the log of CLI 1.0.48",
}
"""Attributes that are not here for CLI 1.0.48 only, beside those in `TOKENS`."""

ENDS = {
    "bgshell": "the CLI keeps a root open while it waits for the notification of a background shell; here it ends with"
    " its last turn, as no event tells that somebody waits",
}
"""Captures in which a root ends at another time."""

PARENTS = {
    ("1.0.48", "invoke_agent"): "CLI 1.0.48 puts a background sub-agent below the root once its tool call"
    " has returned; it is always below the tool call here",
}

TOKENS = {
    ("1.0.48", "gen_ai.usage.input_tokens"): "CLI 1.0.48 records no usage per call, only the output tokens",
    ("1.0.48", "gen_ai.usage.cache_read.input_tokens"): "CLI 1.0.48 records no usage per call",
    ("1.0.48", "gen_ai.usage.reasoning.output_tokens"): "CLI 1.0.48 records no usage per call",
}


def was_cut(session: Session) -> bool:
    """Tell whether a sub-agent failed while the main agent was at work, which the CLI takes for the end of both."""
    return session.version == "1.0.102" and any(
        b'"type":"session.error"' in line and b'"agentId":' in line for line in session.lines
    )


def why_not(session: Session, span: CliSpan) -> str | None:
    """Return the name in `SPANS` under which a span of the CLI cannot be derived, or None when it must be."""
    if span.attributes.get("gen_ai.conversation.id", session.id) != session.id:
        return "(other session)"
    if span.operation in SPANS:
        return span.operation
    if span.operation == "chat" and "error" in span.attributes.get("gen_ai.response.finish_reasons", ()):
        return "chat (failed)"
    if span.parent is None and not _interactions(session, span) and was_cut(session):
        return "(cut)"
    if _interactions(session, span) - _recorded(session):
        return "(rewound)"
    return None


def _interactions(session: Session, span: CliSpan) -> set[str]:
    """Return the ids of the interactions that the trace of a span tells of."""
    key = "github.copilot.user.message.interaction_id"
    events = [event for other in session.cli if other.trace == span.trace for event in other.events]
    return {attributes[key] for _, attributes in events if key in attributes}


def _recorded(session: Session) -> set[str]:
    whole = b"\n".join(session.lines).decode()
    return {part[:36] for part in whole.split('"interactionId":"')[1:]}
