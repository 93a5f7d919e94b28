"""What a pattern says of its matches."""

import pytest

from redaction.rules.shape import parsed


@pytest.mark.parametrize(
    ("pattern", "is_one"),
    [
        ("[0-9A-Za-z]{13}", True),
        ("[0-9A-Za-z]{12}", False),
        ("[0-9a-z]{15}", True),
        ("[0-9a-z]{14}", False),
        ("[0-9a-f]{12}", True),
        ("[0-9a-f]{11}", False),
        ("[A-Za-z]{40}", False),
        ("[0-9A-Za-z]{12} [0-9A-Za-z]{12}", False),
    ],
)
def test_a_run_is_as_long_as_digits_are_to_be_expected_in_it(pattern: str, is_one: bool) -> None:
    assert parsed(pattern).has_run is is_one
