"""The search for secrets in a line, apart from what an engine does with it."""

import math

import pytest

from redaction.errors import OutOfTimeError
from redaction.rules.detectors import detector_rules, their_patterns
from redaction.rules.examples import expanded
from redaction.search import Deadline, _from_detect_secrets
from redaction.spans import SecretSpan


def test_what_no_rule_of_ours_found_is_searched_for_until_the_time_is_over() -> None:
    token = expanded("M<base62:23>.<base62:6>.<base62:27>", "search")
    rule = next(rule for rule in detector_rules(their_patterns()) if rule.id == "detect-secrets.discord")
    line, hits = f"token {token} end".encode(), [(rule, 6 + len(token))]
    span = SecretSpan(6, 6 + len(token), rule)

    assert list(_from_detect_secrets(line, hits, (), Deadline(math.inf))) == [span]
    assert list(_from_detect_secrets(line, hits, (span,), Deadline(math.inf))) == []
    with pytest.raises(OutOfTimeError):
        list(_from_detect_secrets(line, hits, (), Deadline(0)))
