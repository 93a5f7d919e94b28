"""The keys of turns, from which the ids of their events are made."""

import pytest

from exporter.core.ahp.checkpoint import (
    FINISHED_MAX,
    PROMPTS_MAX,
    Checkpoint,
    OpenTurn,
    RecordedText,
    digest_of,
    is_same,
    renumber,
)
from exporter.core.ahp.values import Json


def _keys(prompts: list[str]) -> list[str]:
    checkpoint, keys = Checkpoint(), []
    for number, prompt in enumerate(prompts):
        turn: Json = {"id": f"turn-{number}", "message": {"text": prompt}}
        checkpoint.begin(turn, is_child=False)
        keys.append(checkpoint.open.key)
        checkpoint.finish(turn)
    return keys


def test_a_turn_has_a_key_of_its_own_however_long_ago_its_prompt_was_given() -> None:
    others = [str(number) for number in range(PROMPTS_MAX)]

    keys = _keys(["go on", "go on", *others, "go on", "go on", *others[:10]])

    assert len(set(keys)) == len(keys)
    assert keys[:3] == _keys(["go on", "go on", "0"])


def test_what_is_kept_of_finished_turns_is_bounded_and_their_count_is_not() -> None:
    checkpoint, count = Checkpoint(), 3 * FINISHED_MAX
    for number in range(count):
        turn: Json = {"id": f"turn-{number}", "message": {"text": "go"}}
        checkpoint.begin(turn, is_child=False)
        checkpoint.finish(turn)

        assert len(checkpoint.finished) <= FINISHED_MAX

    kept = [turn.id for turn in checkpoint.finished]
    assert (checkpoint.count, len(kept)) == (count, count - checkpoint.first)
    assert kept == [f"turn-{number}" for number in range(checkpoint.first, count)]
    assert len(kept) >= FINISHED_MAX // 2


def _turn(id: str = "other", prompt: str = "", told: str = "", calls: str = "") -> Json:
    parts: list[Json] = [{"kind": "toolCall", "toolCall": {"toolCallId": call}} for call in calls]
    return {"id": id, "message": {"text": prompt}, "responseParts": [*parts, {"kind": "markdown", "content": told}]}


@pytest.mark.parametrize(
    ("recorded", "told", "expected"),
    [
        (_turn("one", "go", "done"), _turn("one", "stop", "none"), True),
        (_turn("one", "go", "done"), _turn(prompt="go", told="done"), True),
        (_turn("one", "go", "done"), _turn(prompt="stop", told="done"), False),
        (_turn("one", "go", "done"), _turn(told="done"), True),
        (_turn("one", "", "done"), _turn(prompt="go", told="done"), True),
        (_turn("one", "go", "done"), _turn(prompt="go", told="failed"), False),
        (_turn("one", "go", "done"), _turn(prompt="go"), True),
        (_turn("one", "go"), _turn(prompt="go", told="done"), True),
        (_turn("one", "go", "done", "ab"), _turn(prompt="go", told="failed", calls="bc"), True),
        (_turn("one", "go", "done", "ab"), _turn(prompt="go", told="done", calls="cd"), False),
        (_turn("one", "go", "done", "ab"), _turn(prompt="go", told="failed"), True),
        (_turn("one", "go", "done"), _turn(prompt="go", told="failed", calls="a"), True),
    ],
)
def test_a_turn_is_known_again_by_its_id_or_by_what_both_sides_still_have_of_it(
    recorded: Json, told: Json, expected: bool
) -> None:
    checkpoint = Checkpoint()
    checkpoint.begin(recorded, is_child=False)
    checkpoint.finish(recorded)

    assert is_same(checkpoint.finished[0], told) is expected


@pytest.mark.parametrize(
    ("parts", "lengths"),
    [
        (["one two"], {0: 7}),
        (["one ", "two"], {0: 4, 1: 3}),
        (["one", " two three"], {0: 3, 1: 4}),
        (["one two three"], {0: 7}),
        (["one too"], None),
        (["one"], None),
    ],
)
def test_recorded_text_is_found_again_in_other_parts(parts: list[str], lengths: dict[int, int] | None) -> None:
    pieces = [RecordedText("markdown", len(one), digest_of(one)) for one in ("one ", "two")]
    recorded = OpenTurn(id="before", pieces=pieces)
    turn: Json = {"id": "now", "responseParts": [{"kind": "markdown", "content": one} for one in parts]}

    assert renumber(recorded, turn) is (lengths is not None)
    assert recorded.id == "now"
    assert lengths is None or recorded.parts == lengths
