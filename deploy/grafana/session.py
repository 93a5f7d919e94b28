"""Session explorer: one session from its first message to its end, as lanes, traces and log records."""

from typing import Final

from deploy.grafana import board, panels
from deploy.grafana.queries import (
    IS_MAIN_AGENT,
    is_type,
    named,
    not_named,
    readable,
    selected,
    session_records,
    session_spans,
    span,
    spans,
)
from otel import names

SESSION: Final = panels.shown(names.CONVERSATION_ID, "Session", width=310)


def session() -> board.Board:
    """Everything that is known of the session that is chosen above."""
    made = board.Board(
        "session",
        "Session explorer",
        "One session: what happened when, as lanes, traces and log records. Choose it above or in the table, or follow "
        "a link here.",
        board.service(),
        board.session_choice(),
        since="now-7d",
    )
    made.heading("Which session")
    made.add(24, 7, _sessions())
    made.heading("When")
    made.add(24, 10, _lanes())
    made.add(12, 7, _window(), _written())
    made.heading("What")
    made.add(24, 8, _interactions())
    made.add(24, 8, _slow())
    made.add(24, 8, _failures())
    made.add(24, 6, _room())
    made.add(24, 12, _records())
    return made


def sessions_found(title: str, answers: str) -> panels.Panel:
    """The latest interactions of all sessions, with where they worked; each leads to its trace and its session."""
    shown = selected(
        names.CONVERSATION_ID,
        names.GIT_REPOSITORY,
        names.GIT_BRANCH,
        names.REQUEST_MODEL,
        names.TURN_COUNT,
        names.COST,
        names.NANO_AIU,
    )
    query = f"{spans(named(names.INVOKE_AGENT), IS_MAIN_AGENT)} | select({shown})"
    return panels.found(
        title,
        answers,
        panels.traces(query),
        SESSION,
        panels.shown(names.GIT_REPOSITORY, "Repository", width=None),
        panels.shown(names.GIT_BRANCH, "Branch", width=130),
        panels.shown(names.REQUEST_MODEL, "Model", width=150),
        panels.shown(names.TURN_COUNT, "Turns", panels.COUNT, 65),
        panels.shown(names.COST, "Cost", panels.AMOUNT, 65),
    )


def _sessions() -> panels.Panel:
    return sessions_found(
        "Sessions", "Which sessions were at work in this range, and where? Choose one by its link, or above."
    )


def _lanes() -> panels.Panel:
    query = f"{session_spans('duration > 0s')} | select({selected(names.OPERATION, names.AGENT_NAME, names.TOOL_NAME)})"
    return panels.lanes(
        "Lanes",
        "When did agents, the model (chat), tools, permissions and hooks work, each from its start to its end? Calls "
        "of a tool that overlap are drawn one after the other; traces show them. What took no time is not drawn, and "
        "of each interaction only the first 100 spans are.",
        panels.traces(query),
    )


def _window() -> panels.Panel:
    return panels.numbers_of_spans(
        "Context read by each model call",
        "How many tokens did each call of a model read: how full was the context?",
        panels.AMOUNT,
        _calls(names.INPUT_TOKENS),
        names.INPUT_TOKENS,
    )


def _written() -> panels.Panel:
    return panels.numbers_of_spans(
        "Tokens written by each model call",
        "When did the models write how much?",
        panels.AMOUNT,
        _calls(names.OUTPUT_TOKENS),
        names.OUTPUT_TOKENS,
    )


def _calls(number: names.Attribute) -> panels.Query:
    query = (
        f"{session_spans(named(names.CHAT), f'{span(number)} >= 0')} | select({selected(names.REQUEST_MODEL, number)})"
    )
    return panels.traces(query)


def _interactions() -> panels.Panel:
    shown = selected(names.AGENT_NAME, names.TURN_COUNT, names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.COST)
    query = f"{session_spans(named(names.INVOKE_AGENT))} | select({shown})"
    return panels.found(
        "Interactions and sub-agents",
        "What was asked, and what did it take? Each line leads to its trace.",
        panels.traces(query),
        panels.shown(names.AGENT_NAME, "Agent", width=None, empty="main agent"),
        panels.shown(names.TURN_COUNT, "Turns", panels.COUNT, 65),
        panels.shown(names.INPUT_TOKENS, "Tokens read", panels.AMOUNT),
        panels.shown(names.OUTPUT_TOKENS, "Tokens written", panels.AMOUNT, 120),
        panels.shown(names.COST, "Cost", panels.AMOUNT, 65),
    )


def _slow() -> panels.Panel:
    shown = selected(names.TOOL_NAME, names.REQUEST_MODEL, names.PERMISSION_RESULT)
    query = f"{session_spans('duration > 5s', not_named(names.INVOKE_AGENT))} | select({shown})"
    return panels.found(
        "What took long",
        "Which model calls, tools and permissions took more than five seconds?",
        panels.traces(query),
        panels.NAME,
        panels.shown(names.TOOL_NAME, "Tool"),
        panels.shown(names.REQUEST_MODEL, "Model", width=170),
        panels.shown(names.PERMISSION_RESULT, "Permission", width=150),
    )


def _failures() -> panels.Panel:
    shown = selected(names.ERROR_TYPE, names.ORPHANED)
    query = f"{session_spans('status = error')} | select(name, {shown})"
    return panels.found(
        "Failures",
        "What failed, and what did a crash cut off?",
        panels.traces(query),
        panels.NAME,
        panels.shown(names.ERROR_TYPE, "Error type", width=140),
    )


def _room() -> panels.Panel:
    wanted = is_type("session\\\\.(compaction_start|compaction_complete|truncation)")
    return panels.listing(
        "Compactions and truncations",
        "When did the conversation grow too long, and what was done about it?",
        panels.records(readable(session_records(wanted))),
    )


def _records() -> panels.Panel:
    return panels.listing(
        "Events",
        "What happened, one record per durable event, oldest first? The details of a record lead to its trace.",
        panels.records(readable(session_records())),
    )
