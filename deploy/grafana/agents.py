"""Agents & skills: what sub-agents take, how they hang together, and which skills are used."""

from deploy.grafana import board, panels
from deploy.grafana.fleet import CHOSEN, repositories
from deploy.grafana.promql import STEP, growth, label_name, quantile, recorded, share, top
from deploy.grafana.queries import IS_SUBAGENT, named, selected, spans
from deploy.grafana.session import SESSION
from otel import instruments, names

_AGENT = f"{{{{{label_name(names.AGENT_NAME)}}}}}"
_SKILL = f"{{{{{label_name(names.SKILL_NAME)}}}}}"
_NAME = [names.AGENT_NAME]


def agents() -> board.Board:
    """Sub-agents, then one interaction as a graph, then skills."""
    made = board.Board(
        "agents",
        "Agents & skills",
        "What sub-agents take and how they end, how they hang together in one interaction, and which skills are used.",
        board.service(),
        repositories(),
        board.text("trace", "Trace", "The trace id of an interaction, for the graph"),
        since="now-7d",
    )
    made.heading("Sub-agents")
    made.add(8, 8, *_rankings())
    made.add(12, 8, *_over_time())
    made.add(24, 9, _table())
    made.heading("One by one")
    made.add(24, 9, _found())
    made.heading("One interaction as a graph: put its trace id above, then open this", folded=True)
    made.add(24, 12, _graph())
    made.heading("Skills")
    made.add(12, 8, *_skills())
    return made


def _rankings() -> list[panels.Panel]:
    ended = recorded(instruments.SUBAGENT_DURATION, by=_NAME, where=CHOSEN)
    failed = recorded(instruments.SUBAGENT_DURATION, by=_NAME, where={**CHOSEN, names.LABEL_SUCCESS: "false"})
    spent = growth(instruments.SUBAGENT_TOKENS, by=_NAME, where=CHOSEN)
    asked = [
        ("Most used", "Which sub-agents ran most often?", panels.COUNT, ended),
        ("Most failures", "Which sub-agents failed most often?", panels.COUNT, failed),
        ("Most tokens", "Which sub-agents used most tokens?", panels.AMOUNT, spent),
    ]
    return [
        panels.ranking(title, answers, unit, panels.metrics(top(15, query), _AGENT, instant=True))
        for title, answers, unit, query in asked
    ]


def _over_time() -> list[panels.Panel]:
    durations = instruments.SUBAGENT_DURATION
    longest = quantile(0.95, durations, by=_NAME, where=CHOSEN, over=STEP)
    tokens = growth(instruments.SUBAGENT_TOKENS, by=_NAME, where=CHOSEN, over=STEP)
    return [
        panels.lines("Duration of sub-agents, p95", "How long do sub-agents take, at worst (95 of 100)?",
                     panels.SECONDS, panels.metrics(longest, _AGENT)),
        panels.stack("Tokens of sub-agents", "When do which sub-agents use tokens?", panels.AMOUNT,
                     panels.metrics(tokens, _AGENT)),
    ]  # fmt: skip


def _table() -> panels.Panel:
    ended = recorded(instruments.AGENT_DURATION, by=_NAME, where=CHOSEN)
    calls = quantile(0.9, instruments.AGENT_CALLS, by=_NAME, where=CHOSEN)
    tool_calls = quantile(0.9, instruments.AGENT_TOOL_CALLS, by=_NAME, where=CHOSEN)
    longest = quantile(0.95, instruments.AGENT_DURATION, by=_NAME, where=CHOSEN)
    finished = recorded(instruments.SUBAGENT_DURATION, by=_NAME, where=CHOSEN)
    failed = recorded(instruments.SUBAGENT_DURATION, by=_NAME, where={**CHOSEN, names.LABEL_SUCCESS: "false"})
    columns = [
        panels.Column(label_name(names.AGENT_NAME), "Agent", empty="main agent"),
        panels.Column("Value #A", "Runs", panels.COUNT),
        panels.Column("Value #B", "Model calls, p90", panels.AMOUNT),
        panels.Column("Value #C", "Tool calls, p90", panels.AMOUNT),
        panels.Column("Value #D", "Duration, p95", panels.SECONDS),
        panels.Column("Value #E", "Failed", panels.SHARE, empty="-"),
    ]
    asked = (ended, calls, tool_calls, longest, share(failed, finished))
    return panels.rows(
        "Agent by agent", "What does one run of an agent take? Failures are those of sub-agents.", panels.COUNT,
        *(panels.metrics(query, instant=True) for query in asked), columns=columns,
    )  # fmt: skip


def _found() -> panels.Panel:
    shown = selected(names.AGENT_NAME, names.SUBAGENT_TOKENS, names.SUBAGENT_TOOL_CALLS, names.CONVERSATION_ID)
    query = f"{spans(named(names.INVOKE_AGENT), IS_SUBAGENT)} | select({shown})"
    return panels.found(
        "Sub-agents",
        "Which agents ran, how long, with how many tokens? Each line leads to its trace.",
        panels.traces(query),
        panels.shown(names.AGENT_NAME, "Agent", width=None),
        panels.shown(names.SUBAGENT_TOKENS, "Tokens", panels.AMOUNT),
        panels.shown(names.SUBAGENT_TOOL_CALLS, "Tool calls", panels.COUNT),
        SESSION,
    )


def _graph() -> panels.Panel:
    return panels.trace_graph(
        "Who called whom",
        "How do the agents, model calls and tools of one interaction hang together? Put its trace id above.",
        panels.trace("$trace"),
    )


def _skills() -> list[panels.Panel]:
    used = growth(instruments.SKILLS, by=[names.SKILL_NAME], where=CHOSEN)
    when = growth(instruments.SKILLS, by=[names.SKILL_NAME], where=CHOSEN, over=STEP)
    return [
        panels.ranking("Skills used", "Which skills are used most?", panels.COUNT,
                       panels.metrics(top(20, used), _SKILL, instant=True)),
        panels.stack("Skills over time", "When are which skills used?", panels.COUNT, panels.metrics(when, _SKILL)),
    ]  # fmt: skip
