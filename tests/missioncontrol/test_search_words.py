"""What a query means: which texts it finds, whatever they are made of."""

from collections.abc import Callable

import httpx
import pytest

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
