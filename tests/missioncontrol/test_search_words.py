"""What a query means: which texts it finds, whatever they are made of."""

import json
import unicodedata
from collections.abc import Callable

import httpx
import pytest

from exporter.missioncontrol.texts import folded, words_of
from tests.missioncontrol.test_search import find, store_texts

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("GET http://127.0.0.1:8411/api/v1/sessions", "/api/v1"),
        ("GET http://127.0.0.1:8411/api/v1/sessions", ":8411/api"),
        ("joe@example.com", "@example.com"),
        ("cmd--json=1", "--json=1"),
        ("a$HOME", "$HOME"),
    ],
)
async def test_a_word_that_begins_with_a_sign_is_found_behind_a_letter(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, text: str, q: str
) -> None:
    await store_texts(client, make_event, make_body, text, "api v1 8411 example com json 1 home")

    assert await find(client, q) == ["s/e0"]


@pytest.mark.parametrize(
    "text",
    [
        "U\u0308bung",
        "cafe\u0301s",
        "İstanbul",
        "I\u0307stanbul",
        "हिन्दी",
        "ΟΔΟΣ",
        "x\u0302y",
        "日本語",
        "A\u030angström",
        "a\ue000b",
    ],
)
async def test_a_text_is_found_by_itself_by_its_beginning_and_in_small_letters(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, text: str
) -> None:
    await store_texts(client, make_event, make_body, f"the {text} is", "other")

    for q in (text, text[:-1], unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text), text.upper()):
        assert await find(client, q) == ["s/e0"], q


def test_folding_leaves_every_character_in_its_place() -> None:
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    text = unicodedata.normalize("NFC", every)

    assert len(folded(text)) == len(text)
    assert folded(folded(text)) == folded(text)


def test_many_kinds_of_signs_part_words_as_few_do() -> None:
    few, many = "one ☃ two…three", "one ☃ two…three" + "".join(map(chr, range(0x2190, 0x2300)))
    read = [words_of(json.dumps({"type": "x", "id": "i", "data": {"t": text}}).encode()) for text in (few, many)]

    assert read[1].split() == read[0].split() == ["one", "two", "three"]
