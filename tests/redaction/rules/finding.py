"""The built-in formats, and what one of them alone finds in a text."""

import re
from typing import Final

from redaction.rules.formats import Format, built_in_pack, checked, rules_of
from tests.shared import CACHE

ROWS: Final = {row.id: row for row, _ in built_in_pack(CACHE).rows}
GOES_ON: Final = "\nand so on"  # at the end of a text a token may be cut off


def found_by(row: Format, text: str) -> list[str]:
    """What the row alone finds in the text."""
    data = text.encode()
    found: set[str] = set()
    for rule in rules_of([(row, checked(row, "built-in"))]):
        for gate in rule.gates:
            for match in re.finditer(gate.encode(), data):
                spans, _ = rule.extract(data, match.end())
                found.update(data[span[0] : span[1]].decode() for span in spans)
    return sorted(found)


def changed(row: Format, **changes: object) -> Format:
    """The row with some of its fields changed."""
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    return Format(**{**fields, **changes})
