"""The three outcomes of the redactor are told apart by what they are."""

from exporter.core.events.redaction import Masked, Redacted, RedactEvent, Refused


def pass_through(line: bytes) -> Redacted:
    return line


def mask(line: bytes) -> Redacted:
    return Masked(line.replace(b"secret", b"***"), ("rule",)) if b"secret" in line else line


def test_a_function_is_a_redactor_and_clean_means_the_same_object() -> None:
    redactors: list[RedactEvent] = [pass_through, mask]
    line = b"nothing to hide"

    assert all(redact(line) is line for redact in redactors)


def test_outcomes_are_values() -> None:
    assert mask(b"a secret") == Masked(b"a ***", ("rule",))
    assert Refused("budget") == Refused("budget") != Refused("defect")
