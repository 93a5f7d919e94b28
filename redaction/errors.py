"""What the package raises, and only while it is being set up."""


class RuleError(ValueError):
    """A rule that cannot be used; the message names its file, its id and the reason."""

    def __init__(self, file: str, rule: str, reason: str) -> None:
        super().__init__(f"{file}: {f'rule {rule}: ' if rule else ''}{reason}")
