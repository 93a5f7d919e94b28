"""A secret that comes in pieces is one: nothing of it is shown, however it is cut and whenever we begin to look."""

import itertools
import json
import random
from typing import Any

import pytest

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.live_text import PIECE_LENGTH_MAX, TEXTS_MAX, LiveText, TextStream, _PartialText, is_piece
from redaction.engine import Engine
from tests.shared import CACHE

ENGINE = Engine(b"k" * 32, cache_dir=CACHE)
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
KEY_LINES = [("MIIEvg" + "QkFEZ0tDQVFF" * 5)[:64] for _ in range(8)]
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-128-CBC,00\n\n"
    + "\n".join(KEY_LINES)
    + "\n-----END RSA PRIVATE KEY-----"
)
SECRETS = {
    "token": (f"the token is {TOKEN} and that is all, I think", TOKEN),
    "password": ('set password = "correct-horse-9battery" in the file, then go on', "correct-horse-9battery"),
    "address": ("see https://admin:p4ssw0rd-of-it@db.example/x for more of it", "p4ssw0rd-of-it"),
    "key": (f"here it is:\n{KEY}\nand that is all", KEY_LINES[0]),
}
NUMBERS = itertools.count()


def event(type: str, agent: str | None = None, *, ephemeral: bool = True, **data: Any) -> bytes:
    body = {"type": type, "data": data, "id": f"e{next(NUMBERS)}", "timestamp": "t", "parentId": None}
    if agent is not None:
        body["agentId"] = agent
    return json.dumps({**body, "ephemeral": ephemeral}).encode()


DELTAS = {
    "assistant.message_delta": ("deltaContent", {"messageId": "m"}, event("assistant.message_start", messageId="m")),
    "assistant.reasoning_delta": ("deltaContent", {"reasoningId": "r"}, event("model.call_start", model="x")),
    "assistant.tool_call_delta": ("inputDelta", {"toolCallId": "c"}, event("assistant.turn_start", ephemeral=False)),
    "tool.shell_output": (
        "text",
        {"toolCallId": "c", "stream": "stdout"},
        event("tool.execution_start", ephemeral=False, toolCallId="c"),
    ),
}


class Watcher:
    """Somebody who is shown what live events bring of one session."""

    def __init__(self, begin: Any = ENGINE.stream) -> None:
        self.texts = LiveText(begin)

    def see(self, line: bytes) -> dict[str, Any] | None:
        envelope = decode(line)
        assert isinstance(envelope, Envelope)
        self.texts.observe("s", envelope)
        shown = self.texts.shown("s", envelope, line)
        return None if shown is None else dict(json.loads(shown))

    def text(self, type: str, pieces: list[str], **data: Any) -> str:
        field = DELTAS[type][0]
        seen = [self.see(event(type, **{**DELTAS[type][1], field: piece, **data})) for piece in pieces]
        return "".join(str(one["data"][field]) for one in seen if one is not None)


def parts_of(secret: str, length: int = 8) -> list[str]:
    return [secret[at : at + length] for at in range(len(secret) - length + 1)]


def cut(text: str, chance: random.Random) -> list[str]:
    places = sorted(chance.sample(range(1, len(text)), chance.randint(1, len(text) // 2)))
    return [text[start:end] for start, end in itertools.pairwise([0, *places, len(text)])]


@pytest.mark.parametrize("type", DELTAS)
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_in_pieces_is_not_shown_and_the_rest_is(type: str, name: str) -> None:
    text, secret = SECRETS[name]
    for seed in range(20):
        watcher = Watcher()
        watcher.see(DELTAS[type][2])
        shown = watcher.text(type, cut(f"{text}\n\n", random.Random(seed)))

        assert not [part for part in parts_of(secret) if part in shown], (seed, shown)
        assert "[REDACTED:" in shown
        assert shown.startswith(text[:5])


@pytest.mark.parametrize("type", DELTAS)
@pytest.mark.parametrize("name", SECRETS)
def test_of_a_text_that_began_before_we_looked_no_rest_of_a_secret_is_shown(type: str, name: str) -> None:
    text, secret = SECRETS[name]
    for missed in range(1, len(text)):
        watcher = Watcher()
        shown = watcher.text(type, [text[missed:], "\n and more\n", "\nlast of it\n", "x\n"])

        assert not [part for part in parts_of(secret) if part in shown], (missed, shown)
    assert "last of it" in shown


def test_after_events_were_missed_what_goes_on_is_a_text_that_began_before() -> None:
    watcher = Watcher()
    watcher.see(DELTAS["assistant.message_delta"][2])
    before = watcher.text("assistant.message_delta", ["all is well ", f"and {TOKEN[:10]}"])
    watcher.texts.missed("s")
    after = watcher.text("assistant.message_delta", [f"{TOKEN[20:]} is it\n", "go on\n\n"])

    assert before.startswith("all is well")
    assert TOKEN[20:28] not in after
    assert "go on" in after


def test_a_beginning_holds_for_its_own_agent_and_call() -> None:
    watcher = Watcher()
    watcher.see(event("assistant.message_start", agent="child", messageId="m"))
    watcher.see(event("tool.execution_start", ephemeral=False, toolCallId="other"))

    assert watcher.text("assistant.message_delta", ["not known from where\n"]) == ""
    assert watcher.text("tool.shell_output", ["not known from where\n"]) == ""


@pytest.mark.parametrize(
    "type",
    ["assistant.idle", "assistant.message", "assistant.message_start", "assistant.turn_start", "model.call_start",
     "model.turn_started", "session.idle", "user.message"],
)  # fmt: skip
def test_what_an_agent_writes_after_its_turn_or_message_began_or_ended_is_whole(type: str) -> None:
    watcher = Watcher()
    watcher.see(event(type, ephemeral=False))

    assert watcher.text("assistant.message_delta", ["one two\n"]) == "one two\n"


def test_the_first_output_of_a_shell_is_known_by_its_number_also_on_its_other_stream() -> None:
    watcher = Watcher()

    assert watcher.text("tool.shell_output", ["one two\n"], sequence=0) == "one two\n"
    assert watcher.text("tool.shell_output", ["to err\n"], sequence=1, stream="stderr") == "to err\n"


def test_texts_are_kept_apart_and_what_has_nothing_to_show_is_left_out() -> None:
    watcher = Watcher()
    watcher.see(DELTAS["assistant.message_delta"][2])
    half, rest = TOKEN[:12], TOKEN[12:]

    first = watcher.text("assistant.message_delta", [half], messageId="one")
    second = watcher.text("assistant.message_delta", [f"{rest[:4]} is not it\n"], messageId="two")
    third = watcher.text("assistant.message_delta", [f"{rest} is it\n"], messageId="one")

    assert (first, second) == ("", f"{rest[:4]} is not it\n")
    assert rest not in third and "is it" in third
    assert watcher.see(event("assistant.message_delta", messageId="one", deltaContent="")) is None


@pytest.mark.parametrize(
    ("type", "name"),
    [("assistant.reasoning_delta", "reasoningId"), ("assistant.tool_call_delta", "toolCallId")],
)  # fmt: skip
def test_two_texts_of_a_kind_are_two_by_what_names_them(type: str, name: str) -> None:
    watcher = Watcher()
    watcher.see(DELTAS[type][2])
    half, rest = TOKEN[:12], TOKEN[12:]

    assert watcher.text(type, [half], **{name: "one"}) == ""
    assert watcher.text(type, [f"{rest[:4]} is not it\n"], **{name: "two"}) == f"{rest[:4]} is not it\n"
    assert rest not in watcher.text(type, [f"{rest} is it\n"], **{name: "one"})


def test_a_snapshot_shows_the_whole_text_without_a_secret_that_is_not_complete() -> None:
    watcher = Watcher()

    def snapshot(text: str) -> str:
        seen = watcher.see(event("tool.execution_partial_result", toolCallId="c", partialOutput=text))
        return "" if seen is None else str(seen["data"]["partialOutput"])

    assert snapshot("one\n") == "one\n"
    assert snapshot(f"one\ntwo {TOKEN[:20]}") in ("one\n", "one\ntwo ")
    whole = snapshot(f"one\ntwo {TOKEN}\nthree\n")
    assert whole.startswith("one\ntwo [REDACTED:") and whole.endswith("three\n")
    assert TOKEN[6:14] not in snapshot(f"{TOKEN[6:]}\nthree four\nfive\n")  # its front was cut off


def test_nothing_is_shown_of_what_cannot_be_looked_at() -> None:
    watcher, blind = Watcher(), Watcher(begin=None)
    start = DELTAS["assistant.message_delta"][2]
    watcher.see(start)
    blind.see(start)

    assert watcher.text("assistant.message_delta", ["x " * PIECE_LENGTH_MAX]) == ""
    assert watcher.text("assistant.message_delta", ["goes on\n"]) == ""  # not known what that was part of
    watcher.see(start)
    odd = event("assistant.message_delta", messageId="o", deltaContent="@").replace(b'"@"', b'"\\ud800 lone"')
    assert watcher.see(odd) is None
    assert watcher.see(event("assistant.message_delta", messageId="n", deltaContent=7)) is None
    assert watcher.see(event("assistant.thinking_delta", thinkingId="t", deltaContent="hm ")) is None
    assert blind.text("assistant.message_delta", ["words and more \n"]) == ""


def test_events_without_a_text_in_pieces_pass_as_they_came() -> None:
    watcher = Watcher()
    for line in (event("assistant.streaming_delta", totalResponseSizeBytes=4), event("assistant.intent", intent="x")):
        envelope = decode(line)
        assert isinstance(envelope, Envelope)
        assert watcher.texts.shown("s", envelope, line) is line
    assert not is_piece("assistant.streaming_delta")


def test_the_rest_of_a_shell_comes_at_its_end() -> None:
    watcher = Watcher()
    for piece in ("a line\n", "name = is it\n", "it is not done"):
        watcher.see(event("shell.output", processId="p", stream="stdout", data=piece))

    [rest] = watcher.texts.rest("s", b'{"sessionId":"s","processId":"p","exitCode":0}')

    assert json.loads(rest) == {"sessionId": "s", "processId": "p", "stream": "stdout", "data": "it is not done\n"}
    assert watcher.texts.rest("s", b'{"processId":"p"}') == watcher.texts.rest("s", b"[]") == []


def test_memory_is_bounded_and_a_text_that_was_forgotten_is_no_new_one() -> None:
    made: list[TextStream] = []

    def begin(key: str) -> TextStream:
        made.append(ENGINE.stream(key))
        return made[-1]

    watcher = Watcher(begin)
    watcher.see(DELTAS["assistant.message_delta"][2])
    for number in range(TEXTS_MAX + 1):
        watcher.text("assistant.message_delta", [f"text {TOKEN[:12]}"], messageId=f"m{number}")

    assert len(watcher.texts._texts) <= TEXTS_MAX
    assert TOKEN[12:] not in watcher.text("assistant.message_delta", [f"{TOKEN[12:]} it is\n"], messageId="m0")


def test_of_a_text_whose_beginning_was_missed_lines_are_shown_from_the_second_one_with_a_blank_on() -> None:
    text = _PartialText()

    assert text.lines("rest-of-it\nof a line\nthe next line\nand") == "the next line\n"
    assert text.lines(" one more\n") == "and one more\n"


def test_of_a_text_whose_beginning_was_missed_no_line_of_a_key_is_shown() -> None:
    assert _PartialText().lines("the rest of it\nQkFEZ0tD\nand so on\n") == "and so on\n"
    assert (
        _PartialText().lines(f"the rest\nof it\n{KEY_LINES[0]}\nQkFE\nand so on\nQkFE\n") == "of it\nand so on\nQkFE\n"
    )
