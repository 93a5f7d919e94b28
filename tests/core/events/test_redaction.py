"""The three outcomes of the redactor are told apart by what they are."""

from exporter.core.events.redaction import CLEAN, FOUND, Masked, Redacted, RedactEvent, Refused, Verdicts


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


def test_what_is_known_of_a_line_is_not_found_out_again() -> None:
    masked, looked = Masked(b"a ***", ("rule",)), list[bytes]()

    def look(line: bytes, /) -> Redacted:
        looked.append(line)
        return line

    verdicts = Verdicts(bytearray((CLEAN, FOUND, 0)), {1: masked})
    lines = [b"clean", b"a secret", b"unknown"]

    assert [verdicts.redacted(index, line, look) for index, line in enumerate(lines)] == [b"clean", masked, b"unknown"]
    assert looked == [b"unknown"]
