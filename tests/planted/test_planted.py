"""No planted secret is in anything that leaves, is shown, is logged or is kept. `make soak` plants a million."""

import pytest

from redaction.engine import Engine
from tests.planted.made import kinds, secrets
from tests.planted.planting import planted
from tests.planted.search import Search
from tests.shared import CACHE

SECRETS = 5_000
TEXTS_ARE_IN = {
    "floor", "otel traces", "otel logs", "page events", "page /", "page /sessions/{}?all=1",
    "page /sessions/{}/export.md",
    "page /sessions/{}/export.html", "page /sessions/{}/export.jsonl", "page search", "archive .zst", "words",
    "command sessions list", "command redact preview", "command sessions tail",
}  # fmt: skip
"""Where a text that is no secret is found, so that what was searched is what was meant."""


@pytest.mark.slow
def test_no_planted_secret_is_found_anywhere() -> None:
    seen: set[str] = set()

    found = list(planted(0, SECRETS, CACHE, seen))

    assert found == []
    assert seen >= TEXTS_ARE_IN, TEXTS_ARE_IN - seen


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("cookie-jar", 331),  # letters that form words by chance
        ("alibaba-sts-token-named", 440),  # its beginning has the format of another token with the same name
        ("azure-account-key", 448),  # three plus signs
        ("told-login", 232),  # begins like x86
        ("told-login", 625),  # begins like md5
    ],
)
def test_what_was_left_of_a_million_is_redacted(kind: str, number: int) -> None:
    redactor = Engine(bytes(32), cache_dir=CACHE)

    for one in kinds(CACHE):
        if one.id == kind:
            secret = one.secret(number)
            redacted = redactor.redact_text(f"I looked at the file.\n\n{secret.text}\n\n")
            assert not [needle for needle in secret.needles if needle in redacted], secret


def test_what_is_there_is_found_and_chance_is_told_apart() -> None:
    search = Search(["490b0c64", "s3cr3t-in-two-pieces"])
    at_the_border = b"x" * ((8 << 20) - 5) + b"s3cr3t-in-two-pieces"
    by_chance = b"490b0c64-1111-4222-8333-944455556666 [REDACTED:jwt:490b0c64] call_0a1b490b0c642c3d"

    assert len(list(search.found("log", b"key=490b0c64 " + at_the_border))) == 2
    assert list(search.found("log", by_chance)) == []


def test_a_secret_is_fresh_and_always_the_same() -> None:
    found = kinds(CACHE)
    made = [one.text for one in secrets(found, 0, 3 * len(found))]

    assert len(found) >= 1_500
    assert made == [one.text for one in secrets(found, 0, 3 * len(found))]
    assert len(set(made)) >= 0.999 * len(made)
