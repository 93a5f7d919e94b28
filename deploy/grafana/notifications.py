"""System notifications: what sessions were told about their background agents and shells, and when."""

from deploy.grafana import board, panels
from deploy.grafana.fleet import CHOSEN, repositories
from deploy.grafana.promql import STEP, growth, label_name, or_none, recorded
from deploy.grafana.queries import event, is_type, readable, records, span, spans
from deploy.grafana.session import SESSION
from otel import instruments, names
from otel.names import Attribute

_TYPE, _STATUS = label_name(names.NOTIFICATION_TYPE), label_name(names.NOTIFICATION_STATUS)
_NOTIFIED = f'event:name = "{names.SYSTEM_NOTIFICATION.name}"'
_FAILED = {**CHOSEN, names.NOTIFICATION_STATUS: "failed"}
_OF_AGENTS = {**CHOSEN, names.NOTIFICATION_TYPE: "agent_.*"}
_OF_SHELLS = {**CHOSEN, names.NOTIFICATION_TYPE: "shell_.*"}


def notifications() -> board.Board:
    """Counts first, then what failed, one by one."""
    made = board.Board(
        "notifications",
        "System notifications",
        "What sessions are told while they work: background agents and shells that ended, instructions, messages.",
        board.service(),
        repositories(),
        since="now-7d",
    )
    made.heading("How many")
    made.add(6, 4, *_figures())
    made.add(12, 9, *_counts())
    made.heading("Background work")
    made.add(24, 8, _told())
    made.add(24, 8, _failed_agents(), _bad_exits())
    made.heading("One by one")
    made.add(24, 8, _trouble())
    made.add(24, 10, _sequence())
    return made


def _figures() -> list[panels.Panel]:
    messages = growth(instruments.INTERACTIONS, where=CHOSEN)
    asked: list[tuple[str, str, str, float | None]] = [
        ("Notifications", "How many notifications did sessions get?",
         or_none(growth(instruments.NOTIFICATIONS, where=CHOSEN), messages), None),
        ("Background agents that failed", "How many notifications told of a failed agent?",
         or_none(growth(instruments.NOTIFICATIONS, where=_FAILED), messages), 1),
        ("Shells that ended", "How many notifications told of a background shell?",
         or_none(growth(instruments.NOTIFICATIONS, where=_OF_SHELLS), messages), None),
        ("Custom notifications", "How many notifications came from extensions and servers?",
         or_none(growth(instruments.CUSTOM_NOTIFICATIONS, where=CHOSEN), messages), None),
    ]  # fmt: skip
    return [
        panels.figure(title, answers, panels.COUNT, panels.metrics(query, instant=True), warn=warn)
        for title, answers, query, warn in asked
    ]


def _counts() -> list[panels.Panel]:
    both = [names.NOTIFICATION_TYPE, names.NOTIFICATION_STATUS]
    by_type = growth(instruments.NOTIFICATIONS, by=both, where=CHOSEN, over=STEP)
    custom = growth(instruments.CUSTOM_NOTIFICATIONS, by=[names.CUSTOM_SOURCE, names.CUSTOM_NAME], where=CHOSEN)
    source, name = label_name(names.CUSTOM_SOURCE), label_name(names.CUSTOM_NAME)
    return [
        panels.stack("By type and status", "Of what are sessions notified, and how did it end?", panels.COUNT,
                     panels.metrics(by_type, f"{{{{{_TYPE}}}}} {{{{{_STATUS}}}}}")),
        panels.ranking("Custom notifications by origin", "Who else notifies sessions, and of what?", panels.COUNT,
                       panels.metrics(custom, f"{{{{{source}}}}}: {{{{{name}}}}}", instant=True)),
    ]  # fmt: skip


def _told() -> panels.Panel:
    ended = recorded(instruments.SUBAGENT_DURATION, where=CHOSEN, over=STEP)
    told = growth(instruments.NOTIFICATIONS, where=_OF_AGENTS, over=STEP)
    return panels.overlaid(
        "Ended and told",
        "How long after sub-agents end are sessions told? A session is told between turns, and only of agents in the "
        "background.",
        panels.COUNT,
        panels.metrics(ended, "sub-agents that ended"),
        panels.metrics(told, "notifications of agents"),
    )


def _failed_agents() -> panels.Panel:
    shown = _shown(names.NOTIFICATION_AGENT_TYPE)
    failed = f'{event(names.NOTIFICATION_STATUS)} = "failed"'
    query = f"{spans(_NOTIFIED, failed)} | select({shown})"
    return panels.found(
        "Failed agents",
        "Which background agents failed, and in which trace was the session told?",
        panels.traces(query),
        panels.shown(names.NOTIFICATION_AGENT_TYPE, "Agent", width=None),
        SESSION,
    )


def _bad_exits() -> panels.Panel:
    shown = _shown(names.NOTIFICATION_EXIT_CODE, names.NOTIFICATION_SHELL_ID)
    query = f"{spans(_NOTIFIED, f'{event(names.NOTIFICATION_EXIT_CODE)} != 0')} | select({shown})"
    return panels.found(
        "Background shells that failed",
        "Which background shells ended with an exit code other than 0, and in which trace was the session told?",
        panels.traces(query),
        panels.shown(names.NOTIFICATION_EXIT_CODE, "Exit code", panels.COUNT, 80),
        panels.shown(names.NOTIFICATION_SHELL_ID, "Shell", width=None),
        SESSION,
    )


def _trouble() -> panels.Panel:
    return panels.listing(
        "Trouble",
        "Which notifications told of a failure? The details of a record lead to its trace.",
        panels.records(readable(records(is_type("system\\\\.notification"), "severity_number>=13"))),
    )


def _sequence() -> panels.Panel:
    wanted = is_type("subagent\\\\.(started|completed|failed)|system\\\\.notification")
    return panels.listing(
        "Sub-agents and notifications in order",
        "When did a sub-agent end, and when was its session told?",
        panels.records(readable(records(wanted))),
    )


def _shown(*attributes: Attribute) -> str:
    return ", ".join([*(event(each) for each in attributes), span(names.CONVERSATION_ID)])
