"""A session's summary, folded from its events."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.summary import SUMMARY_TYPES, Summary


def event(type: str, data: Any = None, *, at: str = "2026-11-18T10:00:00.000Z", agent: str | None = None) -> Envelope:
    fields = {"type": type, "data": data or {}, "id": "e", "timestamp": at}
    decoded = decode(json.dumps(fields | ({"agentId": agent} if agent else {})).encode())
    assert isinstance(decoded, Envelope)
    return decoded


def told(*events: Envelope) -> Summary:
    summary = Summary()
    for one in events:
        summary.add(one)
    return summary


def usage(tokens: int, cost: float = 0.5) -> Envelope:
    return event("session.usage_record", {"usage": {"inputTokens": tokens, "outputTokens": 2, "cost": cost}})


def shutdown(tokens: int) -> Envelope:
    metrics = {"m": {"requests": {"count": 3, "cost": 2}, "usage": {"inputTokens": tokens, "outputTokens": 9}}}
    return event("session.shutdown", {"shutdownType": "routine", "modelMetrics": metrics})


def test_the_start_tells_place_model_and_time() -> None:
    context = {"cwd": "/w", "branch": "main", "repository": "o/r"}
    data = {"selectedModel": "m", "startTime": "2026-11-18T09:59:59.000Z", "context": context}

    summary = told(event("session.start", data), event("tool.x", at="2026-11-18T10:00:05.000Z"))

    assert (summary.cwd, summary.branch, summary.repository, summary.model) == ("/w", "main", "o/r", "m")
    assert (summary.started, summary.last_activity) == ("2026-11-18T09:59:59.000Z", "2026-11-18T10:00:05.000Z")
    assert summary.events == 2


def test_what_a_fork_was_copied_is_not_its_own_use() -> None:
    def used(at: str, agent: str | None = None) -> Envelope:
        data = {"usage": {"inputTokens": 100, "cost": 1}}
        return event("session.usage_record", data, at=f"2026-11-18T10:{at}.000Z", agent=agent)

    fork = event("session.start", at="2026-11-18T10:30:00.000Z")
    copied = [
        used("10:00"),
        event("user.message", {"content": "hi"}, at="2026-11-18T10:11:00.000Z"),
        used("29:59", "a"),
    ]

    assert told(fork, *copied).tokens() == {}
    for at in ("30:00", "30:05"):
        assert told(fork, *copied, used(at)).tokens()["input"] == {"value": 100, "source": "usage_record"}
    assert told(fork, *copied).title == "hi"


def test_how_the_original_ended_is_not_how_its_fork_did_and_totals_of_both_are_not_the_forks() -> None:
    at = {"at": "2026-11-18T10:10:00.000Z"}
    fork = event("session.start", at="2026-11-18T10:30:00.000Z")
    metrics = {"modelMetrics": {"m": {"usage": {"inputTokens": 500}}}}
    copied = [
        event("session.usage_record", {"usage": {"inputTokens": 500}}, **at),
        event("session.shutdown", metrics, **at),
    ]
    own = event("session.shutdown", metrics, at="2026-11-18T10:40:00.000Z")

    assert (told(fork, *copied).state, told(fork, *copied).tokens()) == ("idle", {})
    assert (told(fork, *copied, own).state, told(fork, *copied, own).totals) == ("ended", {})
    assert told(fork, own).totals == {"input": 500}


@pytest.mark.parametrize(
    ("types", "state"),
    [
        (["session.start"], "idle"),
        (["session.start", "user.message"], "working"),
        (["user.message", "assistant.turn_start", "assistant.turn_end"], "idle"),
        (["assistant.turn_end", "assistant.turn_start"], "working"),
        (["user.message", "permission.requested"], "needs_attention"),
        (["permission.requested", "permission.completed"], "working"),
        (["user.message", "abort"], "idle"),
        (["user.message", "session.shutdown"], "ended"),
        (["session.shutdown", "session.resume"], "idle"),
    ],
)
def test_the_state_follows_the_events(types: list[str], state: str) -> None:
    assert told(*(event(type) for type in types)).state == state


def test_a_session_waits_until_every_question_is_answered() -> None:
    asked = [event("permission.requested", {"requestId": id}) for id in ("a", "b")]

    one_left = told(*asked, event("permission.completed", {"requestId": "a"}))
    none_left = told(*asked, *(event("permission.completed", {"requestId": id}) for id in ("b", "a")))

    assert (one_left.state, none_left.state) == ("needs_attention", "working")


def test_a_sub_agent_changes_neither_state_nor_model() -> None:
    start = event("session.start", {"selectedModel": "main"})

    summary = told(
        start,
        event("assistant.turn_start", agent="sub"),
        event("session.model_change", {"newModel": "other"}, agent="sub"),
    )

    assert (summary.state, summary.model) == ("idle", "main")


def test_the_title_is_the_first_thing_said_until_a_title_is_given() -> None:
    said = [event("user.message", {"content": text}) for text in ("  fix it\nplease", "and that")]

    assert told(*said).title == "fix it"
    assert told(*said, event("session.title_changed", {"title": "Fixing"})).title == "Fixing"


def test_recorded_usage_is_summed() -> None:
    summary = told(usage(1000), usage(500))

    assert summary.tokens()["input"] == {"value": 1500, "source": "usage_record"}
    assert summary.cost() == {"value": 1.0, "source": "usage_record"}


def test_shutdown_totals_are_cumulative_so_the_last_ones_count() -> None:
    summary = told(shutdown(100), shutdown(250))

    assert summary.tokens()["input"] == {"value": 250, "source": "shutdown"}
    assert summary.cost() == {"value": 2, "source": "shutdown"}


def test_the_two_sources_are_never_added() -> None:
    assert told(usage(1000), shutdown(1000)).tokens()["input"] == {"value": 1000, "source": "usage_record"}


def test_nothing_known_is_no_figure() -> None:
    assert (told().tokens(), told().cost()) == ({}, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
field_names = st.sampled_from(
    ["usage", "inputTokens", "cost", "modelMetrics", "requests", "context", "cwd", "requestId", "title", "content", "m"]
)
odd_data = st.recursive(json_values, lambda inner: st.dictionaries(field_names, inner, max_size=4), max_leaves=12)


@given(st.lists(st.tuples(st.sampled_from(sorted(SUMMARY_TYPES)), odd_data), max_size=8))
def test_odd_data_is_passed_over_and_the_fold_can_go_on_from_its_json(odd: list[tuple[str, Any]]) -> None:
    events = [event(type, data) for type, data in odd]

    kept = Summary()
    for one in events:
        kept = msgspec.json.decode(msgspec.json.encode(kept), type=Summary)
        kept.add(one)

    assert kept == told(*events)
    assert kept.events == len(events)


def test_data_that_is_no_object_is_passed_over() -> None:
    envelope = decode(b'{"type":"session.usage_record","id":"e","data":{"usage":1e400,"x":"\\ud800"}}')
    assert isinstance(envelope, Envelope)

    assert told(envelope).tokens() == {}


def test_a_time_in_the_future_is_that_of_a_wrong_clock() -> None:
    now, wrong = "2026-11-18T10:00:00.000Z", "2099-01-01T00:00:00.000Z"
    summary = Summary()

    summary.add(event("session.start", {"startTime": wrong}, at=wrong), now)
    assert (summary.started, summary.last_activity) == (now, now)

    summary.add(event("user.message", at=wrong), "2026-11-18T10:05:00.000Z", "2026-11-18T10:04:00.000Z")
    assert summary.last_activity == "2026-11-18T10:04:00.000Z"


def test_a_time_that_was_taken_from_a_wrong_clock_before_does_not_stay() -> None:
    summary = Summary(last_activity="2099-01-01T00:00:00.000Z", events=1)

    summary.add(event("user.message", at="2026-11-18T09:59:00.000Z"), "2026-11-18T10:00:00.000Z")

    assert summary.last_activity == "2026-11-18T09:59:00.000Z"


def test_every_kind_of_token_is_summed_under_its_name() -> None:
    fields = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
    used = {"usage": {field: number for number, field in enumerate(fields, 1)} | {"cost": 0.25}}

    summary = told(*[event("session.usage_record", used)] * 2)

    names = ("input", "output", "cache_read", "cache_write", "reasoning")
    assert summary.tokens() == {
        name: {"value": 2 * number, "source": "usage_record"} for number, name in enumerate(names, 1)
    }
    assert summary.cost() == {"value": 0.5, "source": "usage_record"}
    assert told().cost() is None


def test_a_session_is_told_with_all_that_is_known_of_it() -> None:
    context = {"cwd": "/w", "branch": "b", "repository": "o/r"}
    data = {"selectedModel": "m", "startTime": "2026-11-18T09:00:00Z", "context": context, "forkedFrom": "p"}
    summary = told(event("session.start", data), event("user.message", {"content": "\n Do it\nnow"}))

    assert summary.as_session("s", masked=3, host="h", last_event_id="e") == {
        "id": "s",
        "title": "Do it",
        "state": "working",
        "repository": "o/r",
        "branch": "b",
        "cwd": "/w",
        "model": "m",
        "parent": "p",
        "started": "2026-11-18T09:00:00Z",
        "last_activity": "2026-11-18T10:00:00.000Z",
        "events": 2,
        "tokens": {},
        "cost": None,
        "masked": 3,
        "host": "h",
        "last_event_id": "e",
    }


@pytest.mark.parametrize("family", ["permission", "user_input", "elicitation", "exit_plan_mode"])
@pytest.mark.parametrize("agent", [None, "child"])
def test_whatever_is_asked_of_the_user_is_waited_for(family: str, agent: str | None) -> None:
    asked = event(f"{family}.requested", {"requestId": "q"}, agent=agent)

    assert told(event("user.message"), asked).state == "needs_attention"
    assert told(event("user.message"), asked, event(f"{family}.completed", {"requestId": "q"})).state == "working"
    other = event(f"{family}.completed", {"requestId": "r"})
    assert told(event("user.message"), asked, other, event("assistant.turn_end")).state == "needs_attention"


@pytest.mark.parametrize(
    ("value", "counted"), [(3, 3), (0, 0), (-1, 0), (True, 0), ("3", 0), (None, 0), (1e18, 0), (9.9e17, 9.9e17)]
)
def test_only_a_number_that_can_be_one_is_counted(value: object, counted: float) -> None:
    summary = told(event("session.usage_record", {"usage": {"inputTokens": value}}))

    assert summary.tokens()["input"]["value"] == counted


@pytest.mark.parametrize(
    ("type", "data", "model"),
    [
        ("session.model_change", {"newModel": "n"}, "n"),
        ("session.resume", {"selectedModel": "n"}, "n"),
        ("session.usage_record", {"usage": {"model": "n"}}, "m"),
        ("session.model_change", {"newModel": ""}, "m"),
    ],
)
def test_the_model_is_the_one_chosen_last(type: str, data: dict[str, Any], model: str) -> None:
    assert told(event("session.start", {"selectedModel": "m"}), event(type, data)).model == model


def test_without_a_choice_the_model_is_the_one_that_was_used() -> None:
    used = event("session.usage_record", {"usage": {"model": "n"}})

    assert told(used).model == "n"
    assert told(event("session.usage_record", {"usage": {"model": "n"}}, agent="child")).model is None


def test_texts_are_kept_as_far_as_they_are_shown() -> None:
    data = {"context": {"cwd": "x" * 2000}, "startTime": "2" * 2000}
    summary = told(event("session.start", data), event("session.title_changed", {"title": "t" * 500}))

    assert (len(summary.cwd or ""), len(summary.started or ""), len(summary.title or "")) == (1024, 1024, 120)
    assert summary.titled
    assert not told(event("user.message", {"content": "c"})).titled


def test_questions_are_counted_up_to_a_limit() -> None:
    summary = told(*(event("permission.requested", {"requestId": str(number)}) for number in range(300)))

    assert len(summary.waiting) == 256
