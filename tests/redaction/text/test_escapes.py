"""A marker in place of the numbers of a list keeps every document of JSON one, however deep in strings it is."""

import json
from typing import Any

import pytest

from redaction.engine import Engine, Masked
from tests.redaction.events import content_of, event
from tests.shared import CACHE

ENGINE = Engine(b"a key of the tests", cache_dir=CACHE)
KEY = [at * 37 % 256 for at in range(64)]
MARKED = "[REDACTED:wallet-key-bytes:"


def redacted(document: Any, depth: int, indent: int | None) -> Any:
    """The document as it comes out of a string that holds it, which is in so many other documents."""
    text = json.dumps(document, indent=indent)
    for _ in range(depth):
        text = json.dumps({"text": text})
    result = ENGINE.redact(event(text), 60_000)
    assert isinstance(result, Masked)
    text = str(content_of(result.line))
    for _ in range(depth):
        text = json.loads(text)["text"]
    return json.loads(text)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "document",
    [
        KEY,
        {"key": KEY, "n": 1},
        [KEY, KEY],
        {"keys": [[1, 2], KEY]},
        ["seed", KEY],
        {"a": {"n": -1.5e3, "b": [True, None]}, "keys": [[[KEY]]]},
        [{"n": 1}, KEY],
    ],
)
def test_a_list_of_bytes_becomes_a_list_of_one_marker(document: Any, indent: int | None, depth: int) -> None:
    expected = json.loads(json.dumps(document).replace(json.dumps(KEY), '["*"]'))

    found = json.dumps(redacted(document, depth, indent))

    assert MARKED in found
    tag = found[found.index(MARKED) : found.index(MARKED) + len(MARKED) + 9]
    assert json.loads(found.replace(tag, "*")) == expected


def test_in_another_language_than_json_the_marker_has_no_quotes() -> None:
    result = ENGINE.redact(event(f"Keypair.from_bytes({KEY})"), 60_000)

    assert isinstance(result, Masked)
    assert f"from_bytes([{MARKED}" in str(content_of(result.line))
