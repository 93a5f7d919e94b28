"""Text that is percent-encoded, as in addresses and forms, or has its slashes escaped, seen decoded."""

import re
from typing import Final

from redaction.text.views import View

_CODE: Final = re.compile(rb"%(?:25)?([0-7][0-9A-Fa-f])|\\{1,15}/(?=[0-9A-Za-z+=\\])")
PERCENT_GATES: Final = (
    r"%(?:25)?(?:3[aAdD]|22|2[bBfF6]|20|0[aA])[0-9A-Za-z%+/]",
    r"[0-9A-Za-z+]{4}\\{1,15}/[0-9A-Za-z+]{4}",
    r"[0-9]\\{1,15}/(?:\\{1,15}/)?[0-9A-Za-z]{4}",
)
"""Expressions of which one ends in every line that holds a name, a separator or a value in such a form."""


def percent_revealed(line: bytes) -> View:
    """The line with printable characters, blanks and newlines instead of their codes; for looking at only."""
    return View(
        line,
        (
            (found.start(), found.end(), bytes((int(found[1], 16),)) if found[1] else b"/")
            for found in _CODE.finditer(line)
        ),
    )
