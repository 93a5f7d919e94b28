"""The calls of a model: what each says, whose sums it counts in, and how it and its agent end."""

import pytest

from otel import names
from otel.model import Kind, Status
from tests.otel.story import Story, value

USAGE = {
    "model": "m", "inputTokens": 7, "outputTokens": 5, "cacheReadTokens": 3, "duration": 40, "apiCallId": "one",
    "finishReason": "stop", "timeToFirstTokenMs": 250, "initiator": "user", "reasoningEffort": "high",
    "serviceRequestId": "served",
}  # fmt: skip


def used(story: Story, agent: str | None = None, **fields: object) -> None:
    story.tell("session.usage_record", {"usage": {**USAGE, **fields}}, agent=agent)


def message(story: Story, *calls: str, call_id: str | None = None) -> None:
    requests = [{"toolCallId": call, "name": "bash", "arguments": {}} for call in calls]
    story.tell(
        "assistant.message",
        {"model": "m", "content": "Yes.", "apiCallId": call_id, "outputTokens": 5, "toolRequests": requests},
    )


@pytest.mark.parametrize("semconv", ["cli", "legacy"])
def test_a_call_says_what_its_record_says(semconv: names.Semconv) -> None:
    story = Story(semconv=semconv)
    story.ask()
    used(story)
    story.end_turn()

    chat = story.one("chat m")
    assert chat.kind is Kind.CLIENT
    assert {
        name: value(chat, name)
        for name in (
            names.PROVIDER, names.REQUEST_MODEL, names.RESPONSE_MODEL, names.RESPONSE_ID, names.SERVICE_REQUEST_ID,
            names.REASONING_LEVEL, names.SERVER_DURATION, names.INITIATOR, names.TIME_TO_FIRST_CHUNK,
            names.INPUT_TOKENS, names.OUTPUT_TOKENS, names.FINISH_REASONS, names.TURN_ID, names.INTERACTION_ID,
        )
    } == {
        names.PROVIDER: "github", names.REQUEST_MODEL: "m", names.RESPONSE_MODEL: "m", names.RESPONSE_ID: "one",
        names.SERVICE_REQUEST_ID: "served", names.REASONING_LEVEL: "high", names.SERVER_DURATION: 40,
        names.INITIATOR: "user", names.TIME_TO_FIRST_CHUNK: 0.25, names.INPUT_TOKENS: 7, names.OUTPUT_TOKENS: 5,
        names.FINISH_REASONS: ("stop",), names.TURN_ID: "0", names.INTERACTION_ID: "first",
    }  # fmt: skip


@pytest.mark.parametrize(("duration", "lasts_ms"), [(40, 40), (0, 0), (-5, 0), (None, 0), (10**12, None)])
def test_a_call_lasts_as_long_as_its_record_says_and_a_day_at_most(duration: int | None, lasts_ms: int | None) -> None:
    story = Story()
    story.ask()
    used(story, duration=duration)
    story.end_turn()

    chat = story.one("chat m")
    assert chat.end_ns - chat.start_ns == (86_400_000 if lasts_ms is None else lasts_ms) * 1_000_000


def test_two_records_in_a_turn_are_two_calls_and_the_agent_has_the_sum() -> None:
    story = Story()
    story.ask()
    used(story)
    used(story, apiCallId="two", finishReason="length")
    used(story, apiCallId="two")
    message(story, call_id="two")
    story.end_turn()

    calls = [span for span in story.spans if span.operation == names.CHAT]
    root = story.one("invoke_agent")
    assert [value(span, names.RESPONSE_ID) for span in calls] == ["one", "two"]
    assert [value(span, names.OUTPUT_TOKENS) for span in calls] == [5, 5]
    assert (value(root, names.OUTPUT_TOKENS), value(root, names.TURN_COUNT)) == (10, 1)
    assert value(root, names.FINISH_REASONS) == ("length",)


def test_in_the_older_shape_the_calls_of_a_turn_are_one_span() -> None:
    story = Story(semconv="legacy")
    story.ask()
    used(story)
    used(story, apiCallId="two", finishReason="length")
    story.end_turn()

    chat = story.one("chat m")
    assert (value(chat, names.OUTPUT_TOKENS), value(chat, names.RESPONSE_ID)) == (10, "two")
    assert value(chat, names.FINISH_REASONS) == ("length",)
    assert chat.end_ns > chat.start_ns


def test_in_the_older_shape_the_sums_begin_anew_with_each_turn() -> None:
    story = Story(semconv="legacy")
    story.ask()
    used(story)
    message(story, "call-1", call_id="one")
    story.start("call-1")
    story.complete("call-1")
    story.end_turn()
    story.tell("assistant.turn_start", {"turnId": "1"})
    used(story, apiCallId="two", outputTokens=2)
    message(story, call_id="two")
    story.end_turn()

    calls = [span for span in story.spans if span.operation == names.CHAT]
    assert [value(span, names.OUTPUT_TOKENS) for span in calls] == [5, 2]
    assert [value(span, names.TURN_ID) for span in calls] == ["0", "1"]


@pytest.mark.parametrize("semconv", ["cli", "legacy"])
def test_without_a_record_the_answer_says_what_is_known(semconv: names.Semconv) -> None:
    story = Story(semconv=semconv)
    story.ask()
    message(story, call_id="one")
    story.end_turn()

    chat = story.one("chat m")
    assert (value(chat, names.OUTPUT_TOKENS), value(chat, names.RESPONSE_ID)) == (5, "one")
    assert value(chat, names.FINISH_REASONS) == ("stop",)
    assert value(story.one("invoke_agent"), names.FINISH_REASONS) == ("stop",)


def test_an_answer_that_asks_for_tools_ends_for_that() -> None:
    story = Story()
    story.ask()
    message(story, "call-1", call_id="one")
    story.start("call-1")
    story.complete("call-1")
    story.end_turn()

    assert value(story.one("chat m"), names.FINISH_REASONS) == ("tool_calls",)


def test_an_agent_of_which_nothing_is_known_to_end_says_no_reason() -> None:
    story = Story()
    story.ask()
    story.tell("abort", {"reason": "user"})
    story.end_turn()

    assert value(story.one("invoke_agent"), names.FINISH_REASONS) is None


@pytest.mark.parametrize(("byok", "provider"), [(True, "azure"), (False, "github"), (None, "github")])
def test_the_provider_is_the_users_own_where_it_is_used(byok: bool | None, provider: str) -> None:
    story = Story()
    story.ask()
    used(story, isByok=byok, providerType="azure")
    message(story, call_id="one")
    story.end_turn()

    assert value(story.one("chat m"), names.PROVIDER) == provider


def test_a_call_without_an_agent_is_a_trace_of_its_own() -> None:
    story = Story()
    used(story)

    assert story.tree() == ["chat m"]
    assert value(story.one("chat m"), names.TURN_ID) is None


def test_a_call_that_summarised_the_conversation_says_so() -> None:
    story = Story()
    story.ask()
    story.tell("session.compaction_complete", {"success": True, "compactionTokensUsed": USAGE})
    message(story)
    story.end_turn()

    chat, answer = [span for span in story.spans if span.operation == names.CHAT]
    assert (value(chat, names.COMPACTED), value(answer, names.COMPACTED)) == (True, None)
    assert (value(chat, names.INPUT_TOKENS), value(chat, names.RESPONSE_ID)) == (7, "one")
    assert chat.parent_id == story.one("invoke_agent").context.span_id


def test_figures_and_providers_that_nobody_told_are_not_written() -> None:
    story = Story()
    story.ask()
    story.tell("assistant.message", {"model": "m", "content": "Yes.", "toolRequests": []})
    story.end_turn()

    for span in (story.one("chat m"), story.one("invoke_agent")):
        assert not {names.OUTPUT_TOKENS, names.INPUT_TOKENS, names.PROVIDER} & span.attributes.keys()


def test_a_told_zero_is_written() -> None:
    story = Story()
    story.ask()
    used(story, outputTokens=0, isByok=True, providerType="azure")
    message(story, call_id="one")
    story.end_turn()

    root = story.one("invoke_agent")
    assert (value(root, names.OUTPUT_TOKENS), value(root, names.PROVIDER)) == (0, "azure")


def test_a_call_that_failed_has_failed_also_in_the_shape_of_the_older_cli() -> None:
    story = Story(semconv="legacy")
    story.ask()
    story.tell("session.error", {"errorType": "query", "message": "no"})
    story.end_turn()

    chat, root = story.one("chat"), story.one("invoke_agent")
    assert (chat.status, value(chat, names.ERROR_TYPE)) == (root.status, "query") == (Status.ERROR, "query")


def test_what_the_cli_calls_on_its_own_account_is_marked_and_no_call_of_the_agent() -> None:
    story = Story()
    story.ask()
    story.answer("call-1")
    story.start("call-1")
    story.complete("call-1")
    story.tell("assistant.message", {"content": "", "toolRequests": [{"toolCallId": "own", "name": "read_bash"}]})
    story.start("own", "read_bash")
    story.complete("own")
    story.answer()
    story.end_turn()

    assert value(story.one("execute_tool read_bash"), names.TOOL_CALLED_BY_CLI) is True
    assert value(story.one("execute_tool bash bash"), names.TOOL_CALLED_BY_CLI) is None


def test_an_answer_after_a_crash_makes_no_call_a_second_time_in_the_shape_of_the_older_cli() -> None:
    story = Story(semconv="legacy")
    story.tell("assistant.turn_start", {}, agent="agent-1")
    story.tell("session.resume", {"sessionWasActive": False})
    story.tell("assistant.message", {"model": "m", "apiCallId": "one", "outputTokens": 1}, agent="agent-1")
    story.spans += story.machine.process_died()

    assert len({span.context for span in story.spans}) == len(story.spans)
