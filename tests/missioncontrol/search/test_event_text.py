"""What a query means: which texts it finds, whatever they are made of."""

import json
import unicodedata
from collections.abc import Callable
from contextlib import closing

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.missioncontrol.search.event_text import folded, text_of, words_of
from exporter.missioncontrol.search.fts5 import open_index
from exporter.missioncontrol.search.index import Texts
from exporter.missioncontrol.search.search_query import numbers, places, understand
from tests.missioncontrol.search.test_search import find, store_texts

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


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("v1.2", ["s/e0"]),
        ("v1.2.", ["s/e0"]),
        ("upgrade t", ["s/e0"]),
        ("t upgrade", ["s/e0"]),
        ('"upgrade t"', ["s/e0"]),
        ('"grade t"', []),
        ('"upgrade o"', []),
        ("upgrade x", []),
        ('"beta be"', ["s/e1"]),
        ('"be then"', []),
        ('"beta  bexy then"', ["s/e1"]),
        ("c++", ["s/e2"]),
        ("c", ["s/e2"]),
        ("c d", ["s/e2"]),
        ("t", []),
        ("- t", []),
        ('-"c', []),
        ("日", ["s/e3"]),
    ],
)
async def test_the_last_word_of_several_may_be_a_beginning_however_short(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, q: str, found: list[str]
) -> None:
    await store_texts(client, make_event, make_body, "upgrade to v1.23", "beta bexy then be", "c++ and d", "日本語")

    assert await find(client, q) == found


def test_folding_leaves_every_character_in_its_place() -> None:
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    text = unicodedata.normalize("NFC", every)

    assert len(folded(text)) == len(text)
    assert folded(folded(text)) == folded(text)


def test_of_an_event_that_nests_as_deep_as_any_stack_the_outer_texts_are_found() -> None:
    deep = b'{"content":"apple","x":' + b'{"x":' * 5_000 + b'"pear"' + b"}" * 5_000 + b"}"

    assert "apple" in text_of(b'{"id":"i","type":"t","data":' + deep + b"}")


def test_many_kinds_of_signs_part_words_as_few_do() -> None:
    few, many = "one ☃ two…three", "one ☃ two…three" + "".join(map(chr, range(0x2190, 0x2300)))
    read = [words_of(json.dumps({"type": "x", "id": "i", "data": {"t": text}}).encode()) for text in (few, many)]

    assert read[1].split() == read[0].split() == ["one", "two", "three"]


PIECES = st.sampled_from(
    [
        *"aAbt12\u03c2Σ\u03c3日本",
        *'  .-/_@$\n"+(',
        "be",
        "to",
        "\u0301",
        "\u0308",
        "é",
        "e\u0301",
        "İ",
        "i",
        "हि",
        "v1.2",
        "x y",
        "☃",
    ]
)
TEXTS = st.lists(st.lists(PIECES, max_size=12).map("".join), min_size=1, max_size=8)


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[str], str]:
    """Texts, and a query made of pieces of them and of others."""
    texts = draw(TEXTS)
    words = []
    for _ in range(draw(st.integers(1, 3))):
        text = draw(st.sampled_from(texts)) if draw(st.integers(0, 3)) else "".join(draw(st.lists(PIECES, max_size=4)))
        start = draw(st.integers(0, len(text)))
        word = text[start : start + draw(st.integers(1, 8))].replace('"', "")
        words.append(f'"{word}"' if draw(st.booleans()) else word)
    return texts, " ".join(words)


def fold(text: str) -> str:
    same = {"İ": "i", "\u03c2": "\u03c3", "Σ": "\u03c3"}
    text = "".join(same.get(letter, letter.lower()) for letter in unicodedata.normalize("NFC", text))
    return " ".join(text.split())


def needles(q: str) -> list[str]:
    """The words and phrases of a query."""
    found, rest = [], fold(q)
    while rest := rest.lstrip():
        end = rest.find('"', 1) if rest[0] == '"' else -1
        if end > 1:
            found.append(rest[1:end])
            rest = rest[end + 1 :]
        else:
            word, _, rest = rest.partition(" ")
            found.append(word)
    return [needle.strip(" \"'.,;:!?()[]{}<>`") for needle in found if any(map(str.isalnum, needle))]


def is_letter(needle: str) -> bool:
    return needle[-1].isalnum() and sum(map(str.isalnum, needle)) == 1 and needle[-1] < "\u2e80"


def holds(text: str, needle: str, *, whole: bool) -> bool:
    for start in range(len(text)):
        before, after = text[:start][-1:], text[start + len(needle) :][:1]
        if (
            text.startswith(needle, start)
            and not (needle[0].isalnum() and before.isalnum())
            and not (whole and after.isalnum())
        ):
            return True
    return False


@given(asked())
@example((["upgrade to"], '"upgrade t"'))
@example((["beta bexy then be"], '"beta be"'))
def test_exactly_the_texts_that_hold_the_words_are_found(given: tuple[list[str], str]) -> None:
    texts, q = given
    bodies = [json.dumps({"type": "x", "id": "i", "data": {"t": text}}).encode() for text in texts]
    query, wanted = understand(q), needles(q)
    assert (query is None) == (not wanted)
    if query is None:
        return

    with closing(open_index(None, 1)) as index:
        index.put(Texts(0, len(bodies), [(n, words_of(body)) for n, body in enumerate(bodies, 1)]))
        may_match = list(numbers(index, query, None))
    found = [n for n in may_match if places(query, text_of(bodies[n - 1]))]

    whole = all(map(is_letter, wanted))
    expected = [n for n, text in enumerate(texts, 1) if all(holds(fold(text), one, whole=whole) for one in wanted)]
    assert found == expected[::-1]
