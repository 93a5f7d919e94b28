"""Interactions, turns and calls as spans: what opens, what closes, and where it hangs."""

import pytest

from otel import names
from otel.event import read
from otel.machines.traces import machine
from otel.model import Context, Kind, Status
from otel.projection import TABLE
from tests.otel.story import SESSION, Story, said, value


def test_an_interaction_is_a_trace_that_ends_with_its_last_turn() -> None:
    story = Story()
    story.ask()
    story.answer("call-1")
    story.start("call-1")
    story.complete("call-1", shellExecution={"exitCode": 3})
    story.end_turn()
    open_between = story.machine.open
    story.tell("assistant.turn_start", {"turnId": "1"})
    story.answer()
    taken = story.end_turn()

    assert story.tree() == ["invoke_agent", "  chat model-x", "  execute_tool bash bash", "  chat model-x"]
    assert (open_between, story.machine.open) == (True, False)
    root = story.one("invoke_agent")
    assert (root.kind, root.status) == (Kind.INTERNAL, Status.UNSET)
    assert (value(root, names.INPUT_TOKENS), value(root, names.OUTPUT_TOKENS), value(root, names.TURN_COUNT)) == (
        200, 20, 2,
    )  # fmt: skip
    assert value(story.one("execute_tool bash bash"), names.EXIT_CODE) == 3
    assert taken.context == root.context
    assert {span.context.trace_id for span in story.spans} == {root.context.trace_id}
    assert all(span.attributes[names.CONVERSATION_ID] == SESSION for span in story.spans)


def test_a_call_begins_as_its_record_says_and_ends_with_the_answer() -> None:
    story = Story()
    story.ask()
    story.answer()

    chat = story.one("chat model-x")
    assert chat.end_ns - chat.start_ns == 8_000_000 + 10_000_000
    assert chat.kind is Kind.CLIENT


def test_a_call_says_what_it_read_from_a_cache() -> None:
    story = Story()
    story.ask()
    usage = {"model": "model-x", "inputTokens": 9, "cacheReadTokens": 7, "apiCallId": "r"}
    story.tell("session.usage_record", {"usage": usage})
    story.end_turn()

    assert value(story.one("chat model-x"), names.CACHE_READ_TOKENS) == 7


def test_an_answer_that_comes_much_later_says_nothing_of_the_end() -> None:
    story = Story()
    story.ask()
    story.tell("session.usage_record", {"usage": {"model": "model-x", "duration": 8, "apiCallId": "r"}})
    story.tell("assistant.message", {"model": "model-x", "apiCallId": "r", "toolRequests": []}, after=1_001)
    story.end_turn()

    chat = story.one("chat model-x")
    assert chat.end_ns - chat.start_ns == 8_000_000


def test_without_a_record_a_call_lasts_from_the_turn_to_the_answer() -> None:
    story = Story()
    story.ask()
    story.tell("assistant.message", {"model": "model-x", "outputTokens": 7, "toolRequests": []}, after=250)
    story.end_turn()

    chat = story.one("chat model-x")
    assert chat.end_ns - chat.start_ns == 250_000_000
    assert value(chat, names.OUTPUT_TOKENS) == 7


def test_a_record_after_the_answer_is_not_a_second_call() -> None:
    story = Story()
    story.ask()
    story.tell("assistant.message", {"model": "m", "apiCallId": "one", "toolRequests": []})
    told = story.tell("session.usage_record", {"usage": {"model": "m", "apiCallId": "one"}})
    story.end_turn()

    assert story.tree() == ["invoke_agent", "  chat m"]
    assert told.context == story.one("invoke_agent").context


def test_a_notification_wakes_an_idle_session() -> None:
    story = Story()
    story.ask()
    story.answer()
    story.end_turn()
    told = story.tell("system.notification", {"kind": {"type": "shell_completed", "shellId": "s", "exitCode": 0}})
    story.tell("assistant.message", {"content": "", "toolRequests": [{"toolCallId": "made-up", "name": "read_bash"}]})
    story.start("made-up", "read_bash")
    story.complete("made-up")
    story.tell("assistant.turn_start", {"turnId": "0"})
    story.answer()
    story.end_turn()

    first, woken = [span for span in story.spans if span.operation == "invoke_agent"]
    assert said(woken) == ["system.notification"]
    assert told.context == woken.context
    assert woken.events[0].attributes == {
        names.NOTIFICATION_TYPE: "shell_completed", names.NOTIFICATION_SHELL_ID: "s", names.NOTIFICATION_EXIT_CODE: 0,
    }  # fmt: skip
    assert [link.context for link in woken.links] == [first.context]
    assert woken.links[0].attributes == {names.LINK_TYPE: "previous_interaction"}
    assert story.tree()[2:] == ["invoke_agent", "  execute_tool read_bash", "  chat model-x"]


@pytest.mark.parametrize(("delivery", "interactions"), [("steering", 1), ("idle", 2), ("queued", 1), (None, 1)])
def test_a_message_during_a_turn_belongs_to_it_unless_it_found_nobody_at_work(
    delivery: str | None, interactions: int
) -> None:
    story = Story()
    story.ask()
    story.tell("user.message", {"delivery": delivery, "interactionId": "second"})
    story.tell("assistant.turn_start", {"turnId": "0"})
    story.answer()
    story.end_turn()

    assert [span.operation for span in story.spans].count("invoke_agent") == interactions


def test_an_aborted_interaction_takes_its_tools_along() -> None:
    story = Story()
    story.ask()
    story.answer("call-1")
    story.start("call-1")
    story.end_turn()
    story.tell("abort", {"reason": "user_abort"})

    assert story.tree() == ["invoke_agent ! cancelled", "  chat model-x", "  execute_tool bash bash ! cancelled"]
    assert value(story.one("invoke_agent"), names.ABORT_REASON) == "user_abort"
    assert said(story.one("invoke_agent")) == ["user.message", "session.abort", "gen_ai.client.operation.exception"]
    assert story.one("invoke_agent").failure == story.one("execute_tool bash bash").failure == "Operation aborted"


def test_an_error_after_a_turn_without_an_answer_ends_the_interaction() -> None:
    story = Story()
    story.ask()
    story.end_turn()
    assert story.spans == []
    story.tell("session.error", {"errorType": "query", "message": "No answer.", "statusCode": 500})

    root = story.one("invoke_agent")
    assert (root.status, value(root, names.ERROR_TYPE)) == (Status.ERROR, "query")
    assert root.events[1].attributes[names.ERROR_STATUS_CODE] == 500


def test_an_answer_after_an_error_makes_up_for_it() -> None:
    story = Story()
    story.ask()
    story.tell("session.error", {"errorType": "query"})
    story.answer()
    story.end_turn()

    assert story.one("invoke_agent").status is Status.UNSET


def test_a_crash_ends_what_was_open_with_the_last_sign_of_life() -> None:
    story, replayed = Story(), Story()
    for each in (story, replayed):
        each.ask()
        each.answer("call-1")
        each.start("call-1")
    story.tell("session.info", {"message": "Much later."}, after=5_000)
    story.tell("session.resume", {"eventCount": 6}, after=20_000)

    crashed = ["invoke_agent ! process_crash", "  chat model-x", "  execute_tool bash bash ! process_crash"]
    assert story.tree() == crashed
    tool = story.one("execute_tool bash bash")
    assert value(tool, names.ORPHANED) is True
    assert tool.end_ns == story.one("invoke_agent").end_ns == tool.start_ns
    replayed.spans += replayed.machine.process_died()
    assert replayed.machine.process_died() == []
    assert [span.context for span in replayed.spans] == [span.context for span in story.spans]
    assert [span.end_ns for span in replayed.spans] == [span.end_ns for span in story.spans]


def test_the_made_up_end_of_a_tool_after_a_resume_opens_nothing() -> None:
    story = Story()
    story.ask()
    story.answer("call-1")
    story.start("call-1")
    story.tell("session.resume")
    taken = story.complete("call-1", success=False, model="resumed", interactionId="resume")
    story.tell("session.warning", {"warningType": "interrupted_tools"})
    story.ask("second")
    story.answer("call-1")
    again = story.start("call-1")
    story.complete("call-1")
    story.end_turn()

    tools = [span for span in story.spans if span.operation == "execute_tool"]
    assert taken.spans == []
    assert taken.context == tools[0].context
    assert [tool.status for tool in tools] == [Status.ERROR, Status.UNSET]
    assert again.context == tools[1].context != tools[0].context


def test_a_resume_is_told_and_linked_by_the_next_interaction() -> None:
    story = Story()
    story.ask()
    story.answer()
    story.end_turn()
    story.tell("session.shutdown")
    story.tell("session.resume", {"eventCount": 8})
    story.ask("second")
    story.answer()
    story.end_turn()

    first, second = [span for span in story.spans if span.operation == "invoke_agent"]
    assert [(link.context, link.attributes[names.LINK_TYPE]) for link in second.links] == [(first.context, "resume")]
    assert said(second) == ["session.resume", "user.message"]


def test_a_resume_by_another_client_ends_nothing() -> None:
    story = Story()
    story.ask()
    story.tell("session.resume", {"sessionWasActive": True})

    assert story.spans == []
    assert story.machine.open


def test_a_shutdown_ends_an_interaction_with_its_last_event() -> None:
    story = Story()
    story.ask()
    story.tell("session.shutdown", after=500)

    root = story.one("invoke_agent")
    assert root.end_ns - root.start_ns == 10_000_000
    assert names.ORPHANED not in root.attributes


@pytest.mark.parametrize("title", ['"a (b)" ', ""])
def test_a_fork_refers_to_the_interaction_in_the_session_that_it_was_made_of(title: str) -> None:
    source, fork = Story(), Story()
    source.machine = type(source.machine)("99999999-2222-3333-4444-555555555555")
    for story in (source, fork):
        story.ask()
        story.answer()
        story.end_turn()
    origin, copy = "(99999999-2222-3333-4444-555555555555)", "(11111111-2222-3333-4444-555555555555)"
    message = f'Forked from {title}{origin} as "c" {copy}.'
    fork.tell("session.info", {"infoType": "fork", "message": message})
    fork.ask("second")
    fork.answer()
    fork.end_turn()

    links = {link.attributes[names.LINK_TYPE]: link.context for link in fork.spans[-1].links}
    assert links["fork"] == source.one("invoke_agent").context
    assert links["fork"].trace_id != fork.spans[1].context.trace_id


def test_a_handoff_is_told_and_linked() -> None:
    story = Story()
    story.ask()
    story.answer()
    story.end_turn()
    story.tell("session.handoff", {"remoteSessionId": "far", "sourceType": "remote"})
    story.ask("second")
    story.answer()
    story.end_turn()

    root = story.spans[-1]
    assert root.links[0].attributes[names.LINK_TYPE] == "handoff"
    assert said(root) == ["session.handoff", "user.message"]
    assert value(root, names.REMOTE_SESSION_ID) == "far"


OUTSIDE = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"


def test_where_a_session_was_started_from_is_a_link() -> None:
    story = Story(traceparent=OUTSIDE)
    story.ask()
    story.answer()
    story.end_turn()

    root = story.one("invoke_agent")
    assert (root.parent_id, root.links[0].context) == (None, Context(b"\xab" * 16, b"\xcd" * 8))


def test_an_unknown_event_passes_and_knows_where_it_is() -> None:
    story = Story()
    before = story.tell("made.up")
    story.ask()
    during = story.tell("made.up")
    story.answer()
    story.end_turn()

    assert (before.spans, before.context) == ([], None)
    assert during.context == story.one("invoke_agent").context


def test_what_is_told_about_a_session_is_told_on_the_interaction() -> None:
    story = Story()
    story.ask()
    told = [
        ("session.truncation", {"tokenLimit": 9, "performedBy": "x"}), ("session.compaction_start", {}),
        ("session.compaction_complete", {"success": True}), ("session.context_changed", {"cwd": "/x"}),
        ("session.model_change", {"newModel": "m"}), ("session.mode_changed", {"newMode": "plan"}),
        ("session.warning", {"warningType": "w", "message": "t"}), ("session.info", {"infoType": "i"}),
        ("skill.invoked", {"name": "s", "path": "/p"}), ("session.task_complete", {"success": True}),
        ("session.custom_notification", {"source": "s", "version": 1, "payload": {"a": 1}}),
    ]  # fmt: skip
    for kind, data in told:
        story.tell(kind, data)
    story.start("call-1")
    story.complete("call-1")
    story.answer()
    story.end_turn()

    root = story.one("invoke_agent")
    assert said(root)[1:] == [kind.replace("session.custom", "custom") for kind, _ in told]
    assert root.events[1].attributes == {names.TOKEN_LIMIT: 9, names.PERFORMED_BY: "x"}
    assert value(story.one("execute_tool bash bash"), names.SKILL_NAME) == "s"


def test_text_of_an_extension_that_is_no_text_is_told_with_marks_in_it() -> None:
    story = Story(content=True)
    story.ask()
    line = (
        b'{"type":"session.custom_notification","id":"odd","timestamp":"2026-11-18T10:00:01.000Z",'
        b'"data":{"source":"s","version":1,"subject":{"a":"\xff"},"payload":{"b":"\xfe"}}}'
    )
    event = read(line)
    assert event is not None
    story.machine.take(event)
    story.answer()
    story.end_turn()

    told = story.one("invoke_agent").events[1].attributes
    assert (told[names.CUSTOM_SUBJECT], told[names.CUSTOM_PAYLOAD]) == ('{"a":"\ufffd"}', '{"b":"\ufffd"}')


def test_a_compaction_is_a_call_of_a_model_too() -> None:
    story = Story()
    usage = {"inputTokens": 500, "outputTokens": 50, "duration": 5, "model": "model-x"}
    story.tell("session.compaction_complete", {"success": True, "compactionTokensUsed": usage})

    chat = story.one("chat model-x")
    assert (chat.parent_id, value(chat, names.COMPACTED), value(chat, names.INPUT_TOKENS)) == (None, True, 500)


def test_an_event_counts_once() -> None:
    story = Story()
    story.ask()
    story.tell("session.usage_record", {"usage": {"model": "m", "inputTokens": 1}}, event_id="same")
    story.tell("session.usage_record", {"usage": {"model": "m", "inputTokens": 1}}, event_id="same")
    story.tell("session.shutdown")

    assert [span.operation for span in story.spans].count("chat") == 1


def test_no_text_leaves_without_content() -> None:
    texts = {}
    for content in (False, True):
        story = Story(content=content)
        story.tell("session.start", {"context": {"cwd": "/secret"}, "copilotVersion": "1.0.102"})
        story.ask()
        story.tell("system.message", {"content": "SYSTEM"})
        story.answer("call-1")
        story.start("call-1", arguments={"command": "COMMAND"})
        story.complete("call-1", result={"content": "RESULT"})
        story.tell("session.shutdown")
        texts[content] = " ".join(str(span.attributes.values()) for span in story.spans)

    for text in ("Hi.", "SYSTEM", "Yes.", "COMMAND", "RESULT"):
        assert text not in texts[False]
        assert text in texts[True]


def test_every_type_that_is_handled_is_one_that_the_cli_writes() -> None:
    assert sorted(machine.HANDLERS.keys() - TABLE.keys()) == []
