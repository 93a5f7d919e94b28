"""The error of this package: which setting is wrong, where it was given, and what to do."""

from collections.abc import Iterable


class ConfigError(Exception):
    """An invalid setting; no part of it ever contains a secret.

    `where` is `FILE:LINE`, the name of a variable or of a flag; `key` is the setting as it was written;
    `message` says what was expected and what was given; `hint` says what to do, and may be empty.
    """

    def __init__(self, message: str, *, hint: str = "", where: str = "", key: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where
        self.key = key

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.message) if part)


def nearest(word: str, known: Iterable[str], *, prefix: str = "") -> str:
    """A hint with the most similar known word, or an empty text."""
    import difflib  # imported only after a mistake

    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {prefix}{found[0]}?" if found else ""
