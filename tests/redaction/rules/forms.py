"""Texts that show what the example of a format does not: each alternative, each end of a count, one more, one fewer.

`forms.toml` keeps, by row, what is found and what is not. `python -m tests.redaction.rules.forms` writes it anew after
a row was changed; the difference shows what became of the row. A form is kept where a small mistake in the row would
pass with its example and counter example alone.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from redaction.errors import RuleError
from redaction.rules.examples import ALPHABETS, expanded
from redaction.rules.formats import Format, checked
from redaction.rules.shape import UNBOUNDED, _Item, _Parser
from tests.mutation.regex import regex_choices
from tests.redaction.rules.finding import GOES_ON, ROWS, changed, found_by

KEPT: Final = Path(__file__).with_name("forms.toml")
_LONGER_BY: Final = 8
_SMALL_CLASS: Final = 6
_Place: TypeAlias = tuple[int, ...]
_Choices: TypeAlias = dict[_Place, int]
"""By place in the pattern how often it is repeated; by place and -1 which alternative, or character, is taken."""


class Forms(msgspec.Struct, omit_defaults=True):
    """What is found in a row, and what is not."""

    found: list[str] = []
    not_found: list[str] = []


def kept() -> dict[str, Forms]:
    """Return the forms on record, by row."""
    return msgspec.toml.decode(KEPT.read_bytes(), type=dict[str, Forms])


def is_found(row: Format, template: str) -> bool:
    """Tell whether the row finds something in a text that goes on behind the template."""
    return bool(found_by(row, expanded(template, "a") + GOES_ON))


def forms_of(row: Format) -> Forms:
    """Return as few forms as tell the row from each of its small mistakes."""
    forms, texts = Forms(), list(dict.fromkeys(_texts(row)))
    found = {text: is_found(row, text) for text in texts}
    for mistaken in _unnoticed(row):
        if any(not is_found(mistaken, one) for one in forms.found) or any(
            is_found(mistaken, one) for one in forms.not_found
        ):
            continue
        telling = next((text for text in texts if is_found(mistaken, text) is not found[text]), None)
        if telling is not None:
            (forms.found if found[telling] else forms.not_found).append(telling)
    return forms


def _unnoticed(row: Format) -> Iterator[Format]:
    """The row with one small mistake, of those that its example and its counter example do not show."""
    mistakes: list[dict[str, object]] = [
        {"pattern": choice.decode()} for choices in regex_choices(row.pattern.encode()) for choice in choices
    ]
    if row.must:
        mistakes.append({"must": False})
    if row.left == "any":
        mistakes.append({"left": "word"})
    if row.exact is not None:
        mistakes.append({"exact": not row.exact})
    for mistake in mistakes:
        mistaken = changed(row, **mistake)
        try:
            checked(mistaken, "")
        except RuleError:
            continue
        if is_found(mistaken, row.example) and not is_found(mistaken, row.counter):
            yield mistaken


def _texts(row: Format) -> Iterator[str]:
    """The shape of the row with everything as short as it may be, or longer; then with one thing otherwise."""
    items = _Parser(row.pattern).whole()
    named = f"{row.example.partition('=')[0]}=" if row.near and "=" in row.example else ""
    for longer in (0, _LONGER_BY):
        for choices in _varied(items, (), longer):
            yield named + _written(items, (), choices, longer)
    yield f"{named}a{_written(items, (), {}, 0)}"
    yield f"{named}{_written(items, (), {}, 0)}a"


def _count(item: _Item, longer: int) -> int:
    return item.least if item.least == item.most else min(item.least + longer, item.most)


def _varied(items: tuple[_Item, ...], place: _Place, longer: int) -> Iterator[_Choices]:
    yield {}
    for number, item in enumerate(items):
        here = (*place, number)
        counts = {item.least, item.least - 1, item.least + 1}
        if item.most < UNBOUNDED:
            counts |= {item.most, item.most - 1, item.most + 1}
        yield from ({here: count} for count in sorted(counts) if count >= 0)
        there = {here: max(1, _count(item, longer))}
        if item.alternatives:
            for which, inside in enumerate(item.alternatives):
                for choices in _varied(inside, (*here, which), longer):
                    yield {**there, (*here, -1): which, **choices}
        elif 1 < len(item.characters) <= _SMALL_CLASS:
            for which in range(len(item.characters)):
                yield {**there, (*here, -1): which}


def _written(items: tuple[_Item, ...], place: _Place, choices: _Choices, longer: int) -> str:
    text = ""
    for number, item in enumerate(items):
        here = (*place, number)
        count, which = choices.get(here, _count(item, longer)), choices.get((*here, -1), 0)
        if item.alternatives:
            text += count * _written(item.alternatives[which], (*here, which), choices, longer)
        else:
            text += _of_class(item.characters, count, which)
    return text


def _of_class(characters: str, count: int, which: int) -> str:
    fitting = [name for name, alphabet in ALPHABETS.items() if set(alphabet) <= set(characters)]
    if not fitting or not count:
        return characters[which] * count
    name = max(fitting, key=lambda one: len(ALPHABETS[one]))
    return f"<{name}:{count}>"


def _told(forms: dict[str, Forms]) -> str:
    lines = ["# Written by `python -m tests.redaction.rules.forms`, which says what a form is."]
    for name, one in sorted(forms.items()):
        lines.append(f"\n[{name}]")
        for key, texts in (("found", one.found), ("not_found", one.not_found)):
            if texts:
                lines.append(f"{key} = [" + "".join(f"\n  {_quoted(text)}," for text in texts) + "\n]")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return f"'{text}'" if "'" not in text else msgspec.json.encode(text).decode()


def main() -> int:
    written = {name: forms_of(row) for name, row in ROWS.items()}
    KEPT.write_text(_told({name: one for name, one in written.items() if one.found or one.not_found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
