"""What events and spans add to which metric."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel import instruments as metric
from otel.event import read
from otel.machines.metrics import machine
from otel.machines.metrics.machine import Metering, SpanMetrics
from otel.machines.metrics.measurements import Meter, pack, unpack
from otel.machines.metrics.usage import Calls
from otel.machines.traces.machine import Traces
from otel.model import Context, Kind, Measurement, Span
from otel.names import CONVERSATION_ID, GIT_REPOSITORY, Content, Instrument, Semconv
from otel.projection import TABLE
from tests.otel.metered import SESSION, Total, labels, lines, measure, of, totals

START = ("session.start", 0.0, {"context": {"repository": "owner/repo"}})
NONE = frozenset[Any]()


def usage(**fields: Any) -> dict[str, Any]:
    return {"usage": {"model": "m", "inputTokens": 1000, "outputTokens": 50, "duration": 100, **fields}}


def shutdown(calls: int, read: int, written: int, cost: float = 0, added: int = 0) -> dict[str, Any]:
    tokens = {"inputTokens": read, "outputTokens": written, "cacheReadTokens": 0, "cacheWriteTokens": 0}
    return {
        "shutdownType": "routine",
        "codeChanges": {"linesAdded": added, "linesRemoved": 0, "filesModified": []},
        "modelMetrics": {"m": {"requests": {"count": calls, "cost": cost}, "usage": tokens}},
    }


def answered(tokens: int) -> dict[str, Any]:
    return {"model": "m", "content": "", "toolRequests": [], "outputTokens": tokens}


@pytest.mark.parametrize(
    ("event_type", "data", "instrument", "expected"),
    [
        ("session.start", {}, metric.SESSIONS, {frozenset({"new"}): 1}),
        ("session.resume", {}, metric.SESSIONS, {frozenset({"resume"}): 1}),
        ("user.message", {"agentMode": "plan"}, metric.INTERACTIONS, {frozenset({"plan"}): 1}),
        (
            "system.notification",
            {"kind": {"type": "agent_completed", "status": "failed"}},
            metric.NOTIFICATIONS,
            {frozenset({"agent_completed", "failed"}): 1},
        ),
        ("system.notification", {"kind": {"type": "odd"}}, metric.NOTIFICATIONS, {frozenset({"odd"}): 1}),
        (
            "session.custom_notification",
            {"source": "mcp", "name": "task", "payload": {}},
            metric.CUSTOM_NOTIFICATIONS,
            {frozenset({"mcp", "task"}): 1},
        ),
        ("skill.invoked", {"name": "pdf"}, metric.SKILLS, {frozenset({"pdf"}): 1}),
        ("session.compaction_complete", {"success": False}, metric.COMPACTIONS, {frozenset({False}): 1}),
        ("session.compaction_complete", {"tokensRemoved": 885}, metric.COMPACTED_TOKENS, {NONE: 885}),
        ("session.truncation", {}, metric.TRUNCATIONS, {NONE: 1}),
        ("session.truncation", {"tokensRemovedDuringTruncation": 7}, metric.TRUNCATED_TOKENS, {NONE: 7}),
        ("session.error", {"errorType": "quota", "statusCode": 429}, metric.ERRORS, {frozenset({"quota", 429}): 1}),
        ("session.warning", {"warningType": "policy"}, metric.WARNINGS, {frozenset({"policy"}): 1}),
        ("abort", {"reason": "user_initiated"}, metric.ABORTS, {frozenset({"user_initiated"}): 1}),
        ("made.up_event", {"x": 1}, metric.UNKNOWN_EVENTS, {frozenset({"made.up_event"}): 1}),
        ("subagent.completed", {"agentName": "a", "totalTokens": 21}, metric.SUBAGENT_TOKENS, {frozenset({"a"}): 21}),
        (
            "subagent.failed",
            {"agentName": "a", "durationMs": 1500},
            metric.SUBAGENT_DURATION,
            {frozenset({"a", False}): 1.5},
        ),
        ("session.usage_record", usage(cost=0.33, initiator="agent"), metric.COST, {frozenset({"m"}): 0.33}),
        ("session.usage_record", usage(cost=0.33, initiator="agent"), metric.PREMIUM_REQUESTS, {}),
        ("session.usage_record", usage(cost=0.33, initiator="user"), metric.PREMIUM_REQUESTS, {frozenset({"m"}): 0.33}),
        ("session.usage_record", usage(copilotUsage={"totalNanoAiu": 5e8}), metric.AIU, {frozenset({"m"}): 0.5}),
        (
            "session.usage_record",
            usage(timeToFirstTokenMs=67.5),
            metric.TIME_TO_FIRST_CHUNK,
            {frozenset({"chat", "github", "m"}): 0.0675},
        ),
    ],
)
def test_an_event_adds_to_its_metric(
    event_type: str, data: dict[str, Any], instrument: Instrument, expected: dict[frozenset[Any], float]
) -> None:
    found = totals(measure(lines((event_type, 1.0, data))))

    assert of(instrument, found) == expected


def test_a_tool_call_is_counted_by_outcome_and_timed() -> None:
    found = totals(
        measure(
            lines(
                ("user.message", 0.0, {}),
                ("tool.execution_start", 1.0, {"toolCallId": "c1", "toolName": "view"}),
                ("tool.execution_complete", 1.25, {"toolCallId": "c1", "success": True}),
                ("tool.execution_start", 2.0, {"toolCallId": "c2", "toolName": "view"}),
                ("tool.execution_complete", 2.5, {"toolCallId": "c2", "success": False, "error": {"message": "no"}}),
            ),
            ended=False,
        )
    )

    assert of(metric.TOOL_CALLS, found) == {frozenset({"view", True}): 1, frozenset({"view", False}): 1}
    assert of(metric.TOOL_DURATION, found) == {frozenset({"view"}): 0.75}
    assert sum(of(metric.TOOL_ERRORS, found).values()) == 1


def test_a_permission_is_counted_by_decision_and_the_wait_for_it_timed() -> None:
    found = totals(
        measure(
            lines(
                ("user.message", 0.0, {}),
                ("permission.requested", 1.0, {"requestId": "r", "permissionRequest": {"kind": "shell"}}),
                ("permission.completed", 31.0, {"requestId": "r", "result": {"kind": "approved"}}),
            )
        )
    )

    assert of(metric.PERMISSIONS, found) == {frozenset({"shell", "approved"}): 1}
    assert of(metric.PERMISSION_WAIT, found) == {frozenset({"shell"}): 30}


def test_the_duration_of_an_agent_is_told_with_the_models_of_its_last_call() -> None:
    found = measure(
        lines(
            ("user.message", 0.0, {}),
            ("assistant.turn_start", 1.0, {"turnId": "0"}),
            ("session.usage_record", 2.0, {"usage": {"model": "m", "apiCallId": "r"}}),
            ("assistant.message", 2.0, {"model": "m", "apiCallId": "r"}),
            ("session.usage_record", 3.0, {"usage": {"model": "n", "apiCallId": "s"}}),
            ("assistant.message", 3.0, {"model": "n", "apiCallId": "s"}),
            ("assistant.turn_end", 4.0, {"turnId": "0"}),
        )
    )

    of_agents = [dict(labels(one)) for one in found if one.instrument is metric.OPERATION_DURATION]
    [agent] = [one for one in of_agents if one["gen_ai.operation.name"] == "invoke_agent"]
    assert (agent["gen_ai.request.model"], agent["gen_ai.response.model"]) == ("n", "n")


def test_a_hook_is_counted_and_timed() -> None:
    hook = {"hookInvocationId": "h", "hookType": "preToolUse"}
    found = totals(
        measure(
            lines(
                ("user.message", 0.0, {}),
                ("hook.start", 1.0, hook),
                ("hook.end", 1.5, {**hook, "success": False, "error": {"message": "x"}}),
            )
        )
    )

    assert of(metric.HOOKS, found) == {frozenset({"preToolUse", False}): 1}
    assert of(metric.HOOK_DURATION, found) == {frozenset({"preToolUse"}): 0.5}


def test_what_a_crash_cut_off_is_counted_and_has_no_duration() -> None:
    found = totals(
        measure(
            lines(
                ("user.message", 0.0, {}),
                ("tool.execution_start", 1.0, {"toolCallId": "c1", "toolName": "view"}),
            )
        )
    )

    assert of(metric.ORPHANS, found) == {frozenset({"execute_tool"}): 1, frozenset({"invoke_agent"}): 1}
    assert (of(metric.TOOL_CALLS, found), of(metric.AGENT_DURATION, found)) == ({}, {})


def test_a_session_lasts_from_its_start_or_resume_to_its_shutdown() -> None:
    found = totals(
        measure(
            lines(
                START,
                ("session.shutdown", 60.0, {"shutdownType": "routine"}),
                ("session.resume", 600.0, {}),
                ("session.shutdown", 630.0, {"shutdownType": "error"}),
            )
        )
    )

    assert of(metric.SESSION_DURATION, found) == {frozenset({"routine"}): 60, frozenset({"error"}): 30}


def test_totals_of_a_shutdown_are_never_added_to_records() -> None:
    found = totals(
        measure(
            lines(
                START, ("session.usage_record", 1.0, usage(cost=1)), ("session.shutdown", 2.0, shutdown(1, 1000, 50, 1))
            )
        )
    )

    assert sum(of(metric.INPUT_TOKENS, found).values()) == 1000
    assert sum(of(metric.OUTPUT_TOKENS, found).values()) == 50
    assert sum(of(metric.COST, found).values()) == 1


@pytest.mark.parametrize("semconv", ["cli", "legacy"])
@pytest.mark.parametrize(
    "answer",
    [{}, {"model": "m"}, {"model": "m", "apiCallId": "r"}, {"model": "m-2026-11-18"}, {"apiCallId": "r"}],
    ids=lambda answer: "-".join(answer) or "bare",
)
def test_what_a_call_wrote_is_counted_by_its_record_or_its_answer(answer: dict[str, Any], semconv: Semconv) -> None:
    told = lines(
        ("session.start", 0, {}),
        ("user.message", 1, {}),
        ("assistant.turn_start", 2, {}),
        ("session.usage_record", 3, {"usage": {"model": "m", "outputTokens": 5, "apiCallId": "r"}}),
        ("assistant.message", 4, {"outputTokens": 5, **answer}),
        ("assistant.turn_end", 5, {}),
    )

    found = totals(measure(told, semconv), semconv)

    instrument = metric.OUTPUT_TOKENS if semconv == "cli" else metric.TOKEN_USAGE
    assert sum(of(instrument, found).values()) == 5


def test_answers_that_name_no_model_are_part_of_the_totals_of_a_shutdown() -> None:
    totals_of_m = {"m": {"requests": {"count": 3}, "usage": {"outputTokens": 70}}}
    told = lines(
        ("user.message", 1, {}),
        ("assistant.turn_start", 2, {}),
        ("assistant.message", 3, {"outputTokens": 20}),
        ("assistant.message", 4, {"outputTokens": 30, "model": "m"}),
        ("session.shutdown", 5, {"modelMetrics": totals_of_m}),
    )

    found = totals(measure(told))

    assert sum(of(metric.OUTPUT_TOKENS, found).values()) == 70


@pytest.mark.parametrize("instrument", [metric.OUTPUT_TOKENS, metric.CALL_OUTPUT_TOKENS])
def test_an_answer_without_a_record_counts_what_it_wrote(instrument: Instrument) -> None:
    told = lines(("user.message", 1, {}), ("assistant.turn_start", 2, {}), ("assistant.message", 3, answered(30)))

    assert sum(of(instrument, totals(measure(told))).values()) == 30


def test_a_shutdown_counts_only_the_calls_whose_answers_were_not() -> None:
    told = lines(
        START,
        ("user.message", 1.0, {}),
        ("assistant.message", 2.0, answered(30)),
        ("session.shutdown", 4.0, shutdown(3, 3100, 80)),
    )

    [written] = [one for key, one in totals(measure(told)).items() if key[0] == metric.CALL_OUTPUT_TOKENS.name]
    assert written == Total(3, 80)


def test_without_records_the_shutdown_tells_the_tokens_and_answers_what_they_wrote() -> None:
    found = totals(
        measure(
            lines(
                START,
                ("user.message", 1.0, {}),
                ("assistant.message", 2.0, answered(30)),
                ("assistant.message", 3.0, answered(20)),
                ("session.shutdown", 4.0, shutdown(3, 3100, 80, cost=1)),
            ),
            "legacy",
        ),
        "legacy",
    )

    usage_of = {key: total for key, total in found.items() if key[0] == metric.TOKEN_USAGE.name}
    by_type = {dict(key[1])["gen_ai.token.type"]: total for key, total in usage_of.items()}
    assert by_type == {"input": Total(3, 3100), "output": Total(3, 80)}
    assert of(metric.PREMIUM_REQUESTS, found) == {frozenset({"m"}): 1}


def test_without_records_the_shutdown_tells_the_cost_of_a_model() -> None:
    used = {"m": {"requests": {"count": 2, "cost": 1.5}, "usage": {}, "totalNanoAiu": 2.5e9}}

    found = totals(measure(lines(START, ("session.shutdown", 4.0, {"modelMetrics": used}))))

    of_m = [of(instrument, found) for instrument in (metric.COST, metric.PREMIUM_REQUESTS, metric.AIU)]
    assert of_m == [{frozenset({"m"}): 1.5}, {frozenset({"m"}): 1.5}, {frozenset({"m"}): 2.5}]


def test_a_shutdown_counts_only_what_was_used_since_the_shutdown_before() -> None:
    found = totals(
        measure(
            lines(
                START,
                ("session.shutdown", 4.0, shutdown(1, 1000, 50, added=10)),
                ("session.resume", 5.0, {}),
                ("session.shutdown", 6.0, shutdown(3, 3000, 150, added=12)),
            )
        )
    )

    assert sum(of(metric.INPUT_TOKENS, found).values()) == 3000
    assert sum(of(metric.LINES_ADDED, found).values()) == 12


def test_a_shutdown_whose_totals_began_anew_counts_whole() -> None:
    found = totals(
        measure(
            lines(
                START,
                ("session.shutdown", 4.0, shutdown(3, 3000, 150, added=10)),
                ("session.resume", 5.0, {}),
                ("session.shutdown", 6.0, shutdown(1, 1000, 50, added=2)),
            )
        )
    )

    assert sum(of(metric.INPUT_TOKENS, found).values()) == 4000
    assert sum(of(metric.LINES_ADDED, found).values()) == 12


@pytest.mark.parametrize(
    ("version", "answers", "calls"),
    [("1.0.48", 0, (1, 2)), ("1.0.48", 2, (1, 5)), ("1.0.43", 0, (2, 2)), (None, 2, (1, 2))],
    ids=["as the version tells", "more calls than answers", "an older one", "more answers than calls in between"],
)
def test_totals_of_a_process_are_counted_whole_though_they_are_more_than_those_before(
    version: str | None, answers: int, calls: tuple[int, int]
) -> None:
    first, second = calls
    found = totals(
        measure(
            lines(
                ("session.start", 0.0, {"copilotVersion": version}),
                ("session.shutdown", 4.0, shutdown(first, first * 1000, 50, added=10)),
                ("session.resume", 5.0, {}),
                *(("assistant.message", 5.5, answered(1)) for _ in range(answers)),
                ("session.shutdown", 6.0, shutdown(second, second * 1000, 150, added=12)),
            )
        )
    )

    assert sum(of(metric.INPUT_TOKENS, found).values()) == (first + second) * 1000
    assert sum(of(metric.LINES_ADDED, found).values()) == (22 if version else 12)


def test_a_session_that_an_older_cli_began_and_a_newer_one_went_on_with_is_counted_once() -> None:
    found = totals(
        measure(
            lines(
                START,
                ("session.shutdown", 4.0, shutdown(1, 1000, 50)),
                ("session.resume", 5.0, {}),
                ("session.usage_record", 6.0, usage()),
                ("session.shutdown", 7.0, shutdown(2, 2000, 100)),
            )
        )
    )

    assert sum(of(metric.INPUT_TOKENS, found).values()) == 2000


def test_the_copy_of_another_session_that_a_fork_begins_with_is_not_counted_again() -> None:
    forked = lines(
        ("session.start", 100.0, {}),
        ("user.message", 1.0, {}),
        ("session.usage_record", 2.0, usage()),
        ("assistant.message", 2.0, answered(50)),
        ("tool.execution_start", 3.0, {"toolCallId": "c1", "toolName": "view"}),
        ("tool.execution_complete", 4.0, {"toolCallId": "c1", "success": True}),
        ("session.info", 100.0, {"infoType": "fork"}),
        ("user.message", 101.0, {}),
        ("session.usage_record", 102.0, usage()),
    )

    found = totals(measure(forked))

    assert of(metric.SESSIONS, found) == {frozenset({"new"}): 1}
    assert of(metric.TOOL_CALLS, found) == {}
    assert sum(of(metric.INTERACTIONS, found).values()) == 1
    assert sum(of(metric.INPUT_TOKENS, found).values()) == 1000


def test_an_event_that_comes_twice_counts_once() -> None:
    once = lines(("session.warning", 1.0, {"warningType": "policy"}))

    assert of(metric.WARNINGS, totals(measure(once * 2))) == {frozenset({"policy"}): 1}


def test_messages_to_a_sub_agent_are_no_interactions() -> None:
    found = totals(measure(lines(("user.message", 1.0, {}), agent="a1")))

    assert of(metric.INTERACTIONS, found) == {}


def test_every_measurement_says_which_session_and_repository_it_is_of() -> None:
    found = list(measure(lines(START, ("session.usage_record", 1.0, usage()), ("made.up", 2.0, {}))))

    assert found
    for measurement in found:
        assert {(GIT_REPOSITORY.name, "owner/repo"), (CONVERSATION_ID.name, SESSION)} <= labels(measurement)


def test_measurements_of_a_tool_refer_to_its_span() -> None:
    found = measure(
        lines(
            ("user.message", 0.0, {}),
            ("tool.execution_start", 1.0, {"toolCallId": "c1", "toolName": "view"}),
            ("tool.execution_complete", 1.25, {"toolCallId": "c1", "success": True}),
        ),
        ended=False,
    )

    assert {type(one.context) for one in found if one.instrument is metric.TOOL_DURATION} == {Context}


def test_an_event_without_a_time_counts_when_the_last_one_did() -> None:
    first, second = lines(("session.warning", 1.0, {}), ("session.warning", 2.0, {}))
    second = second.replace(b"2026-11-18T10:00:02.000Z", b"soon")

    times = [measurement.time_ns for measurement in measure([first, second])]

    assert len(times) == 2
    assert times[0] == times[1]


def test_the_oldest_of_too_many_agents_that_do_not_end_is_forgotten() -> None:
    spans, meter = SpanMetrics("cli", Calls("cli")), Meter((None, SESSION), 0)
    agents = [number.to_bytes(8, "big") for number in range(4_097)]

    def ended(operation: str, span: bytes, parent: bytes | None) -> Span:
        context = Context(b"t" * 16, span)
        return Span(context, parent, operation, None, Content.NONE, Kind.INTERNAL, 1, 2, "event")

    for agent in agents:
        spans.measure(ended("execute_tool", b"tool" + agent[4:], agent), meter)
    for agent in agents[:2]:
        spans.measure(ended("invoke_agent", agent, None), meter)

    assert [one.value for one in meter.found if one.instrument is metric.AGENT_TOOL_CALLS] == [0, 1]


TOTALS = ["modelMetrics", "m", "requests", "count", "cost", "inputTokens", "outputTokens", "codeChanges", "linesAdded"]
OTHERS = ["usage", "model", "kind", "type", "status", "totalTokens", "durationMs", "context", "repository", "success"]
FIELDS = [*TOTALS, *OTHERS, "toolCallId", "statusCode", "errorType"]
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.tuples(st.sampled_from(sorted(TABLE)), st.integers(0, 3000), DATA), max_size=12))
def test_nothing_that_a_session_says_makes_measuring_fail(events: list[tuple[str, float, Any]]) -> None:
    found = list(measure(lines(*events)))

    assert all(len(one.labels) == len(one.instrument.labels) and one.value >= 0 for one in found)
    assert unpack(pack(found)) == found


def test_what_was_packed_comes_back_and_anything_else_is_nothing() -> None:
    found = list(measure(lines(START, ("session.usage_record", 1.0, usage()))))

    assert unpack(pack(found)) == found
    assert unpack(pack(found)[:-1]) == []
    assert unpack(b"") == []


def test_what_was_packed_by_another_version_comes_back_without_what_is_not_known_any_more() -> None:
    found = list(measure(lines(START, ("session.warning", 1.0, {}), ("session.usage_record", 2.0, usage()))))
    numbers, *others = msgspec.msgpack.decode(pack(found))
    times, values, places, contexts, labels, ids = others

    assert unpack(msgspec.msgpack.encode(([*numbers[:-1], 1], *others))) == found[:-1]
    labels[places[0]].append("one more")
    assert unpack(msgspec.msgpack.encode((numbers, times, values, places, contexts, labels, ids))) == found[1:]


@pytest.mark.parametrize("lacking", [1, 2])
def test_what_was_packed_before_the_version_and_the_user_were_known_comes_back_without_them(lacking: int) -> None:
    found = list(measure(lines(START, ("session.warning", 1.0, {}), ("session.usage_record", 2.0, usage()))))
    *columns, labels, ids = msgspec.msgpack.decode(pack(found))

    again = unpack(msgspec.msgpack.encode((*columns, [one[:-lacking] for one in labels], ids)))

    assert [one.labels for one in again] == [(*one.labels[:-lacking], *(None,) * lacking) for one in found]


def test_measuring_and_reading_the_same_session_again_gives_the_same() -> None:
    session = lines(START, ("user.message", 1.0, {}), ("session.usage_record", 2.0, usage()))
    metering, traces = Metering(SESSION), Traces(SESSION)
    again: list[Measurement] = []
    for line in session:
        event = read(line)
        assert event is not None
        again += metering.measure(event, traces.take(event))

    assert again == list(measure(session, ended=False))


def test_durations_say_what_failed_and_lines_of_code_who_wrote_them() -> None:
    found = measure(
        lines(
            START,
            ("user.message", 1.0, {}),
            ("assistant.turn_start", 1.0, {"turnId": "0"}),
            ("session.usage_record", 1.5, usage()),
            ("assistant.message", 1.5, answered(50)),
            ("tool.execution_start", 2.0, {"toolCallId": "c1", "toolName": "view"}),
            ("tool.execution_complete", 3.0, {"toolCallId": "c1", "success": False}),
            ("session.error", 3.5, {"errorType": "query"}),
            ("assistant.turn_end", 4.0, {"turnId": "0"}),
            ("session.shutdown", 5.0, shutdown(1, 1000, 50, added=7)),
        )
    )

    told = {(one.instrument.name, labels(one)) for one in found}
    failed = {name: dict(of_them).get("error.type") for name, of_them in told if name.endswith(".duration")}
    assert failed["gen_ai.execute_tool.duration"] == "ToolError"
    assert failed["gen_ai.invoke_agent.duration"] == "query"
    assert {dict(of_them).get("error.type") for name, of_them in told if name == metric.OPERATION_DURATION.name} == {
        "ToolError", "query",
    }  # fmt: skip
    [written] = [dict(of_them) for name, of_them in told if name == metric.LINES_ADDED.name]
    assert (written["gen_ai.request.model"], written["gen_ai.provider.name"]) == ("m", "github")


def test_what_an_earlier_version_packed_without_a_label_is_counted() -> None:
    from_before = Measurement(metric.AGENT_DURATION, 1, 2.0, ("explore", "owner/repo", SESSION), None)

    [found] = unpack(pack([from_before]))

    assert (found.value, found.labels) == (2.0, ("explore", None, "owner/repo", SESSION, None, None))


def test_every_type_that_is_handled_is_one_that_the_cli_writes() -> None:
    assert sorted((machine._HANDLERS.keys() | machine._LOCATED) - TABLE.keys()) == []
