"""The detectors of detect-secrets, where their gates end and what of their matches is the secret."""

from functools import cache

import pytest

from redaction.rules.detectors import detector_rules, their_patterns
from redaction.rules.examples import expanded
from redaction.rules.rule import Rule
from tests.redaction.rules.context.extracting import spans


@cache
def rules() -> dict[str, Rule]:
    return {rule.id: rule for rule in detector_rules(their_patterns())}


def found(name: str, text: str) -> list[str]:
    line = text.encode()
    return [line[start:end].decode() for start, end in spans((rules()[f"detect-secrets.{name}"],), line)]


def test_a_token_is_found_in_its_shortest_form() -> None:
    token = expanded("M<base62:23>.<base62:6>.<base62:27>", "detectors")

    assert found("discord", f"token {token} end") == [token]
    assert found("discord", f"token {token[:-1]} end") == []


@pytest.mark.parametrize("text", ["key={} end", 'key = "{}"', "key: {}\t", '"{}"', "{}"])
def test_the_signs_around_a_token_are_not_part_of_it(text: str) -> None:
    token = expanded("AKC<base62:20>", "detectors")

    assert found("artifactory", text.format(token)) == ([token] if text != "{}" else [])
