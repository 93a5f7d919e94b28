"""Session explorer: one session from its first message to its end, as lanes, traces and log records."""

from deploy.grafana import board, panels
from deploy.grafana.queries import is_type, named, not_named, selected, session_records, session_spans, span
from otel import names

_LANES = {
    names.INVOKE_AGENT: "agent",
    names.CHAT: "model",
    names.EXECUTE_TOOL: "tool",
    names.PERMISSION: "waiting for permission",
    names.EXECUTE_HOOK: "hook",
    names.EXTERNAL_TOOL: "external tool",
}


def session() -> board.Board:
    """Everything that is known of the session whose id stands above."""
    made = board.Board(
        "session",
        "Session explorer",
        "One session: what happened when, as lanes, traces and log records. Put its id above, or follow a link here.",
        board.service(),
        board.text("session", "Session", "The session's id: gen_ai.conversation.id"),
        since="now-7d",
    )
    made.heading("When")
    made.add(24, 8, _lanes())
    made.add(12, 8, _window(), _written())
    made.heading("What")
    made.add(12, 10, _interactions(), _slow())
    made.add(12, 8, _failures(), _room())
    made.add(24, 12, _records())
    return made


def _lanes() -> panels.Panel:
    queries = [
        panels.traces(f"{session_spans(named(operation))} | max_over_time(duration) by (name)") for operation in _LANES
    ]
    return panels.lanes(
        "Lanes",
        f"When did the agent, the model ({names.CHAT}), tools, permissions and hooks begin something, and how long did "
        "the longest of it take?",
        panels.SECONDS,
        *queries,
    )


def _window() -> panels.Panel:
    query = f"{session_spans(named(names.CHAT))} | max_over_time({span(names.INPUT_TOKENS)}) by ({_model()})"
    return panels.lines(
        "Context window",
        "How full was the model's context: the largest number of tokens that one call read?",
        panels.COUNT,
        panels.traces(query),
        source=panels.TRACES,
    )


def _written() -> panels.Panel:
    query = f"{session_spans(named(names.CHAT))} | sum_over_time({span(names.OUTPUT_TOKENS)}) by ({_model()})"
    return panels.stack(
        "Tokens written",
        "When did the models write how much?",
        panels.COUNT,
        panels.traces(query),
        source=panels.TRACES,
    )


def _model() -> str:
    return span(names.REQUEST_MODEL)


def _interactions() -> panels.Panel:
    shown = selected(names.AGENT_NAME, names.TURN_COUNT, names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.COST)
    query = f"{session_spans(named(names.INVOKE_AGENT))} | select({shown})"
    return panels.found(
        "Interactions and sub-agents",
        "What was asked, and what did it take? Each line leads to its trace.",
        panels.traces(query, each_span=True),
    )


def _slow() -> panels.Panel:
    shown = selected(names.TOOL_NAME, names.REQUEST_MODEL, names.PERMISSION_RESULT)
    query = f"{session_spans('duration > 5s', not_named(names.INVOKE_AGENT))} | select({shown})"
    return panels.found(
        "What took long",
        "Which model calls, tools and permissions took more than five seconds?",
        panels.traces(query, each_span=True),
    )


def _failures() -> panels.Panel:
    shown = selected(names.TOOL_NAME, names.ERROR_TYPE, names.ORPHANED)
    query = f"{session_spans('status = error')} | select({shown})"
    return panels.found(
        "Failures",
        "What failed, and what did a crash cut off?",
        panels.traces(query, each_span=True),
    )


def _room() -> panels.Panel:
    wanted = is_type("session\\\\.(compaction_start|compaction_complete|truncation)")
    return panels.listing(
        "Compactions and truncations",
        "When did the conversation grow too long, and what was done about it?",
        panels.records(session_records(wanted)),
    )


def _records() -> panels.Panel:
    return panels.listing(
        "Events",
        "What happened, one record per durable event, oldest first? The details of a record lead to its trace.",
        panels.records(session_records()),
    )
