"""What is shown in place of a secret."""

import re
from collections.abc import Mapping

MASK = "******"

_CREDENTIALS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)
_PARAMETERS = re.compile(r"[?#].*$", re.DOTALL)


def masked(value: object, *, secret: bool, url: bool) -> object:
    """The value, fit to be shown: of a secret nothing is left (of a table the names), of an address what is none."""
    if secret and isinstance(value, Mapping):
        return dict.fromkeys(value, MASK)
    if secret and value is not None:
        return MASK
    return mask_url(value) if url and isinstance(value, str) else value


def mask_url(url: str) -> str:
    """The address with its user, password and parameters masked; it need not be a sound address."""
    without = _CREDENTIALS.sub(lambda found: f"{found[1] or ''}{MASK}@", url)
    return _PARAMETERS.sub(lambda found: found[0][0] + MASK, without)
