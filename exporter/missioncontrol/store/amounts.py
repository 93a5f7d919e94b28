"""Numbers that others report, limited to a range in which sums are exact."""

from typing import Final

AMOUNT_MAX: Final = 2**53
"""Up to here every integer is a float too, and a thousand of them fit in 64 bits."""


def amount(value: object) -> float | None:
    """Return a value that is a number with which one can calculate; None for all else, and for what no count can be.

    JSON's integers may have hundreds of digits, which no float holds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -AMOUNT_MAX <= value <= AMOUNT_MAX else None
