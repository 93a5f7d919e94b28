"""Everything that this package raises. Only `RuleError` reaches callers, and only while an engine is set up."""


class RuleError(ValueError):
    """A rule that cannot be used; the message names its file, its id and the reason."""

    def __init__(self, file: str, rule: str, reason: str) -> None:
        super().__init__(f"{file}: {f'rule {rule}: ' if rule else ''}{reason}")


class InvalidJsonError(Exception):
    """The line is not one JSON value."""


class OutOfTimeError(Exception):
    """The time budget of an event is used up."""


class TooManyHitsError(Exception):
    """A line in which more places may hold a secret than can be checked."""
