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
    return {event.attributes[key] for event in events if key in event.attributes}


def _recorded(session: Session) -> set[str]:
    whole = b"\n".join(session.lines).decode()
    return {part[:36] for part in whole.split('"interactionId":"')[1:]}
