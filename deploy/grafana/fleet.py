"""Fleet: how much is done here, by which models and in which repositories, and how well it goes."""

from deploy.grafana import board, panels
from deploy.grafana.promql import STEP, Where, change, growth, label_name, or_none, quantile, share, stored_name
from deploy.grafana.queries import field, records
from deploy.grafana.session import sessions_found
from otel import instruments, names

CHOSEN: Where = {names.GIT_REPOSITORY: "$repository"}
"""Restricts a query to the repositories that are chosen above the dashboard."""

_REPOSITORY = f"{{{{{label_name(names.GIT_REPOSITORY)}}}}}"
_MODEL = f"{{{{{label_name(names.REQUEST_MODEL)}}}}}"


def repositories() -> board.Variable:
    """The variable behind `CHOSEN`."""
    query = f"label_values({stored_name(instruments.INTERACTIONS)}, {label_name(names.GIT_REPOSITORY)})"
    return board.choice("repository", "Repository", "Where the sessions worked (not sent at content level none)", query)


def fleet() -> board.Board:
    """The first view: figures, then how they came about."""
    made = board.Board(
        "fleet",
        "Fleet",
        "How many sessions, what they use, and how well they go; by model and repository.",
        board.service(),
        repositories(),
        since="now-7d",
    )
    made.heading("At a glance")
    made.add(6, 3, *_figures())
    made.heading("Compared with the same time a week ago")
    made.add(6, 3, *_changes())
    made.heading("Work")
    made.add(12, 8, *_work())
    made.heading("Model")
    made.add(12, 8, *_model())
    made.heading("Where")
    made.add(24, 9, _table())
    made.add(24, 10, _recent())
    return made


def _figures() -> list[panels.Panel]:
    tokens = growth(instruments.INPUT_TOKENS, where=CHOSEN), growth(instruments.OUTPUT_TOKENS, where=CHOSEN)
    calls = growth(instruments.TOOL_CALLS, where=CHOSEN)
    failed = growth(instruments.TOOL_CALLS, where={**CHOSEN, names.LABEL_SUCCESS: "false"})
    interactions = growth(instruments.INTERACTIONS, where=CHOSEN)
    cached = growth(instruments.CACHE_READ_TOKENS, where=CHOSEN)
    facts: list[tuple[str, str, str, str, float | None]] = [
        ("Sessions begun", "How many sessions began?", panels.COUNT,
         growth(instruments.SESSIONS, where={**CHOSEN, names.SESSION_BEGAN: "new"}), None),
        ("Interactions", "How many messages did people send?", panels.COUNT, interactions, None),
        ("Premium requests", "How many premium requests were charged?", panels.AMOUNT,
         or_none(growth(instruments.PREMIUM_REQUESTS, where=CHOSEN), interactions), None),
        ("Tokens", "How many tokens were read and written?", panels.AMOUNT, f"{tokens[0]} + {tokens[1]}", None),
        ("Cache hit", "Which share of the tokens read came from the provider's cache?", panels.SHARE,
         share(cached, tokens[0]), None),
        ("Tool failures", "Which share of the tool calls failed?", panels.SHARE, share(failed, calls), 0.2),
        ("Errors per interaction", "How many errors did sessions report, for each message sent?", panels.AMOUNT,
         share(growth(instruments.ERRORS, where=CHOSEN), interactions), 0.1),
    ]  # fmt: skip
    built = [
        panels.figure(title, answers, unit, panels.metrics(query, instant=True), warn=warn)
        for title, answers, unit, query, warn in facts
    ]
    active = f"count(sum by ({field(names.CONVERSATION_ID)}) (count_over_time({records()} [$__range])))"
    seen = panels.counted_records(active)
    asks = "In how many sessions, new or resumed or old, did anything happen?"
    built.insert(0, panels.figure("Sessions with activity", asks, panels.COUNT, seen, source=panels.LOGS))
    return built


def _changes() -> list[panels.Panel]:
    asked = [
        ("Interactions, change", "How many more messages did people send than a week ago?", instruments.INTERACTIONS),
        ("Premium requests, change", "How many more were charged than a week ago?", instruments.PREMIUM_REQUESTS),
        ("Tokens read, change", "How many more tokens were read than a week ago?", instruments.INPUT_TOKENS),
        ("Tool calls, change", "How many more tools were called than a week ago?", instruments.TOOL_CALLS),
    ]
    return [
        panels.figure(title, answers, panels.SHARE,
                      panels.metrics(change(instrument, where=CHOSEN, since="7d"), instant=True))
        for title, answers, instrument in asked
    ]  # fmt: skip


def _work() -> list[panels.Panel]:
    interactions = growth(instruments.INTERACTIONS, by=[names.GIT_REPOSITORY], where=CHOSEN, over=STEP)
    began = growth(instruments.SESSIONS, by=[names.SESSION_BEGAN], where=CHOSEN, over=STEP)
    added, removed = (
        growth(instrument, where=CHOSEN, over=STEP)
        for instrument in (instruments.LINES_ADDED, instruments.LINES_REMOVED)
    )
    bad = [
        (instruments.ERRORS, "errors"),
        (instruments.WARNINGS, "warnings"),
        (instruments.ABORTS, "aborted turns"),
        (instruments.ORPHANS, "cut off by a crash"),
    ]
    return [
        panels.stack("Interactions by repository", "When and where do people ask for something?", panels.COUNT,
                     panels.metrics(interactions, _REPOSITORY)),
        panels.stack("Sessions begun and resumed", "When do sessions begin, or go on?", panels.COUNT,
                     panels.metrics(began, f"{{{{{label_name(names.SESSION_BEGAN)}}}}}")),
        panels.stack("Lines of code", "How much code do sessions add and remove, by their own account?", panels.COUNT,
                     panels.metrics(added, "added"), panels.metrics(removed, "removed")),
        panels.stack("What went wrong", "When did sessions report errors or warnings, get aborted, or crash?",
                     panels.COUNT,
                     *(panels.metrics(growth(each, where=CHOSEN, over=STEP), legend) for each, legend in bad)),
    ]  # fmt: skip


def _model() -> list[panels.Panel]:
    kinds = [
        (instruments.INPUT_TOKENS, "read"),
        (instruments.CACHE_READ_TOKENS, "of these from the cache"),
        (instruments.OUTPUT_TOKENS, "written"),
        (instruments.REASONING_TOKENS, "of these reasoning"),
    ]
    longest = quantile(0.95, instruments.CALL_DURATION, by=[names.REQUEST_MODEL], where=CHOSEN, over=STEP)
    return [
        panels.overlaid("Tokens by type", "What are tokens used for, over time?", panels.AMOUNT,
                     *(panels.metrics(growth(each, where=CHOSEN, over=STEP), legend) for each, legend in kinds)),
        panels.lines("Model latency, p95", "How long do people wait for a model, at worst (95 of 100 calls)?",
                     panels.SECONDS, panels.metrics(longest, _MODEL)),
    ]  # fmt: skip


def _table() -> panels.Panel:
    asked = [
        (instruments.SESSIONS, "Starts and resumes", panels.COUNT),
        (instruments.INTERACTIONS, "Interactions", panels.COUNT),
        (instruments.PREMIUM_REQUESTS, "Premium requests", panels.AMOUNT),
        (instruments.INPUT_TOKENS, "Tokens read", panels.AMOUNT),
        (instruments.OUTPUT_TOKENS, "Tokens written", panels.AMOUNT),
        (instruments.ERRORS, "Errors", panels.COUNT),
    ]
    queries = [
        panels.metrics(growth(instrument, by=[names.GIT_REPOSITORY], where=CHOSEN), instant=True)
        for instrument, _, _ in asked
    ]
    columns = [panels.Column(label_name(names.GIT_REPOSITORY), "Repository", empty="none")]
    columns += [
        panels.Column(f"Value #{letter}", heading, unit, empty="0")
        for letter, (_, heading, unit) in zip("ABCDEF", asked, strict=True)
    ]
    return panels.rows("Repositories", "Which repositories use how much?", panels.COUNT, *queries, columns=columns)


def _recent() -> panels.Panel:
    return sessions_found(
        "Latest interactions", "What was done last, where, and at what cost? Each line leads to its trace and session."
    )
