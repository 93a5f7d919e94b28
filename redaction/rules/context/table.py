"""Tables of rules with context: a row for each rule, in the `*.toml` beside the module of its family.

An expression may be written in several lines, each of them indented by four blanks, which do not count. A name in
double braces stands for the fragment with this name, of the table itself or of `common.toml`.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from redaction.rules.rule import RuleRow

_COMMON: Final = "common.toml"
_INDENT: Final = re.compile(r"(?:\A|\n) {4}")
_FRAGMENT: Final = re.compile(r"\{\{(\w+)\}\}")
_WORD: Final = "{{word}}"


class Row(RuleRow, frozen=True, kw_only=True):
    """One rule; `gates` and `when` are those of `Rule`."""

    gates: tuple[str, ...]
    extract: str
    """A function of the family's module without its `extract_`, or one of those in `extractors`."""
    length: int = 0
    """How many bytes before the end of the gate the value begins."""
    pattern: str = ""
    """Matched where the value begins, in at most `reach` bytes."""
    before: str = ""
    """Searched in the `reach` bytes before that place, where it ends."""
    backwards: str = ""
    """Matched backwards from that place, in as many bytes."""
    reach: int = 1 << 40
    demand: str = ""
    """What the value must look like, as the name of a `Demand`; empty if it need not look like a secret."""
    padding: str = "="
    """What is cut off at the end of a match before it is judged."""
    unless: str = ""
    """Names that match do not count."""
    when: tuple[str, ...] | None = None
    """The triggers, if not those of the table; none if the gates are cheap enough for the first reading."""
    numbers: bool = False
    """`Rule.is_numbers`."""
    open_counts: bool = False
    """The gates are searched with open counts first."""


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of a family. `when` are the triggers of rows that have none of their own, with `words` put in.

    For each name in `backwards` there is another fragment, whose words are written backwards.
    """

    rule: tuple[Row, ...] = ()
    fragments: Mapping[str, str] = {}
    when: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    backwards: tuple[str, ...] = ()

    def patterns(self, *names: str) -> tuple[re.Pattern[bytes], ...]:
        """The fragments with these names, compiled."""
        return tuple(re.compile(self.fragments[name].encode()) for name in names)


@cache
def table_of(module_file: str) -> Table:
    """The table beside the module in this file, with its fragments put in."""
    path = Path(module_file).with_suffix(".toml")
    table = msgspec.toml.decode(path.read_bytes(), type=Table)
    common = msgspec.toml.decode(path.with_name(_COMMON).read_bytes(), type=Table)
    sources = {**common.fragments, **table.fragments}
    for name in table.backwards:
        sources[f"{name}_backwards"] = "|".join(word[::-1] for word in sources[name].split("|"))

    @cache
    def whole(expression: str) -> str:
        return _FRAGMENT.sub(lambda name: whole(sources[name[1]]), _INDENT.sub("", expression))

    when = dict.fromkeys(trigger.replace(_WORD, word) for trigger in table.when for word in table.words or ("",))
    return Table(
        rule=tuple(
            msgspec.structs.replace(
                row,
                gates=tuple(map(whole, row.gates)),
                when=tuple(map(whole, when if row.when is None else row.when)),
                pattern=whole(row.pattern),
                before=whole(row.before),
                backwards=whole(row.backwards),
                unless=whole(row.unless),
            )
            for row in table.rule
        ),
        fragments={name: whole(source) for name, source in sources.items()},
    )
