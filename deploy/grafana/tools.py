"""Tools & permissions: which tools are used, how they fail, and how long people let the agent wait."""

from deploy.grafana import board, panels
from deploy.grafana.fleet import CHOSEN, repositories
from deploy.grafana.promql import STEP, growth, label_name, or_none, quantile, recorded, share, top, total
from deploy.grafana.queries import is_type, named, readable, records, selected, span, spans
from deploy.grafana.session import SESSION
from otel import instruments, names

_TOOL = f"{{{{{label_name(names.TOOL_NAME)}}}}}"
_FAILED = {**CHOSEN, names.LABEL_SUCCESS: "false"}
_DENIED = {**CHOSEN, names.PERMISSION_RESULT: "denied.*"}


def tools() -> board.Board:
    """Tools first, then permissions and hooks."""
    made = board.Board(
        "tools",
        "Tools & permissions",
        "Which tools are called, how they fail, how long permissions take, and what is denied.",
        board.service(),
        repositories(),
        since="now-7d",
    )
    made.heading("Tools")
    made.add(8, 9, *_most())
    made.add(12, 8, *_over_time())
    made.add(24, 8, _table())
    made.add(24, 9, _exits())
    made.heading("Permissions")
    made.add(6, 3, *_waits())
    made.add(8, 8, *_permissions())
    made.add(24, 8, _denials())
    made.heading("Hooks")
    made.add(12, 8, *_hooks())
    return made


def _most() -> list[panels.Panel]:
    calls = growth(instruments.TOOL_CALLS, by=[names.TOOL_NAME], where=CHOSEN)
    failed = growth(instruments.TOOL_CALLS, by=[names.TOOL_NAME], where=_FAILED)
    errors = growth(instruments.TOOL_ERRORS, by=[names.ERROR_TYPE], where=CHOSEN)
    return [
        panels.ranking("Most used", "Which tools are called most?", panels.COUNT, _instant(top(15, calls), _TOOL)),
        panels.ranking("Most failures", "Which tools fail most often?", panels.COUNT, _instant(top(15, failed), _TOOL)),
        panels.ranking("Failure types", "Why do tools fail? (not sent at content level none)", panels.COUNT,
                       _instant(top(15, errors), f"{{{{{label_name(names.ERROR_TYPE)}}}}}")),
    ]  # fmt: skip


def _over_time() -> list[panels.Panel]:
    calls = growth(instruments.TOOL_CALLS, by=[names.TOOL_NAME], where=CHOSEN, over=STEP)
    half, most = (quantile(level, instruments.TOOL_DURATION, where=CHOSEN, over=STEP) for level in (0.5, 0.95))
    return [
        panels.stack("Calls", "When are which tools called?", panels.COUNT, panels.metrics(calls, _TOOL)),
        panels.lines("Duration", "How long do tools run: half of the calls, and 95 of 100?", panels.SECONDS,
                     panels.metrics(half, "p50"), panels.metrics(most, "p95")),
    ]  # fmt: skip


def _table() -> panels.Panel:
    calls = growth(instruments.TOOL_CALLS, by=[names.TOOL_NAME], where=CHOSEN)
    failed = growth(instruments.TOOL_CALLS, by=[names.TOOL_NAME], where=_FAILED)
    half, most = (
        quantile(level, instruments.TOOL_DURATION, by=[names.TOOL_NAME], where=CHOSEN) for level in (0.5, 0.95)
    )
    columns = [
        panels.Column(label_name(names.TOOL_NAME), "Tool"),
        panels.Column("Value #A", "Calls", panels.COUNT),
        panels.Column("Value #B", "Failed", panels.SHARE),
        panels.Column("Value #C", "Duration, p50", panels.SECONDS),
        panels.Column("Value #D", "Duration, p95", panels.SECONDS),
    ]
    queries = [panels.metrics(query, instant=True) for query in (calls, share(failed, calls), half, most)]
    return panels.rows(
        "Tool by tool", "How often is a tool called, does it fail, how long does it run?", panels.COUNT,
        *queries, columns=columns,
    )  # fmt: skip


def _exits() -> panels.Panel:
    shown = selected(names.EXIT_CODE, names.EXECUTABLE_NAME, names.TOOL_NAME, names.CONVERSATION_ID)
    query = f"{spans(named(names.EXECUTE_TOOL), f'{span(names.EXIT_CODE)} != 0')} | select({shown})"
    return panels.found(
        "Commands that failed",
        "Which shell commands ended with an exit code other than 0, and in which trace?",
        panels.traces(query),
        panels.shown(names.EXECUTABLE_NAME, "Command", width=None),
        panels.shown(names.TOOL_NAME, "Tool"),
        panels.shown(names.EXIT_CODE, "Exit code", panels.COUNT, 80),
        SESSION,
    )


def _waits() -> list[panels.Panel]:
    asked = recorded(instruments.PERMISSION_WAIT, where=CHOSEN)
    denied = growth(instruments.PERMISSIONS, where=_DENIED)
    facts = [
        ("Permission requests", "How often did the agent ask for a permission?", panels.COUNT, asked),
        ("Denied requests", "How many of the requests were denied?", panels.COUNT, or_none(denied, asked)),
        ("Time spent waiting", "How long did agents wait for permissions, all together?", panels.SECONDS,
         total(instruments.PERMISSION_WAIT, where=CHOSEN)),
        ("Long waits, p95", "How long does the agent wait for a permission, at worst (95 of 100)?", panels.SECONDS,
         quantile(0.95, instruments.PERMISSION_WAIT, where=CHOSEN)),
    ]  # fmt: skip
    return [
        panels.figure(title, answers, unit, panels.metrics(query, instant=True))
        for title, answers, unit, query in facts
    ]


def _permissions() -> list[panels.Panel]:
    decided = growth(instruments.PERMISSIONS, by=[names.PERMISSION_RESULT], where=CHOSEN, over=STEP)
    denied = growth(instruments.PERMISSIONS, by=[names.PERMISSION_KIND, names.PERMISSION_RESULT], where=_DENIED)
    kind, result = label_name(names.PERMISSION_KIND), label_name(names.PERMISSION_RESULT)
    waits = [
        (f"p{level * 100:.0f}", quantile(level, instruments.PERMISSION_WAIT, where=CHOSEN, over=STEP))
        for level in (0.5, 0.9)
    ]
    return [
        panels.stack("Decisions", "When is the agent allowed or denied what it asks for?", panels.COUNT,
                     panels.metrics(decided, f"{{{{{result}}}}}")),
        panels.ranking("Denied", "What is denied, and by whom or which rule?", panels.COUNT,
                       _instant(top(15, denied), f"{{{{{kind}}}}}: {{{{{result}}}}}")),
        panels.lines("Waiting", "How long does the agent wait for a permission: half of the times, and 9 of 10?",
                     panels.SECONDS, *(panels.metrics(query, legend) for legend, query in waits)),
    ]  # fmt: skip


def _denials() -> panels.Panel:
    return panels.listing(
        "Denials",
        "Which requests were denied, one by one? The details of a record lead to its trace.",
        panels.records(readable(records(is_type("permission\\\\.completed"), "severity_number>=13"))),
    )


def _hooks() -> list[panels.Panel]:
    kind, success = label_name(names.HOOK_TYPE), label_name(names.LABEL_SUCCESS)
    runs = growth(instruments.HOOKS, by=[names.HOOK_TYPE, names.LABEL_SUCCESS], where=CHOSEN, over=STEP)
    longest = quantile(0.95, instruments.HOOK_DURATION, by=[names.HOOK_TYPE], where=CHOSEN, over=STEP)
    return [
        panels.stack("Runs", "Which hooks run, and do they succeed?", panels.COUNT,
                     panels.metrics(runs, f"{{{{{kind}}}}}, success: {{{{{success}}}}}")),
        panels.lines("Duration of hooks", "How long do hooks hold the agent up, at worst (95 of 100)?", panels.SECONDS,
                     panels.metrics(longest, f"{{{{{kind}}}}}")),
    ]  # fmt: skip


def _instant(query: str, legend: str) -> panels.Query:
    return panels.metrics(query, legend, instant=True)
