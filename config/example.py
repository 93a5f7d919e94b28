"""The annotated settings file: every key with its meaning and default, commented out.

Lines that begin with `#` and no space are settings: without that character in all of them the file loads.
`python -m config.example` writes it.
"""

import sys
import textwrap

import msgspec

from config.fields import Field, SettingsTable, Sinks, fields, members
from config.given.toml import written
from config.settings import Settings

_HEAD = """\
# Settings of exporter. Every key is optional. The value after "#" is the default, or an example if the setting has no
# default. Remove the "#" to set it. exporter config check says whether the file is valid.
#
# Every setting has an environment variable: EXPORTER_ and its path in capitals, joined by two underscores, such as
# EXPORTER_STATE_DIR, EXPORTER_LIMITS__OPEN_FILES, EXPORTER_MISSION_CONTROL__URL or EXPORTER_MISSION_CONTROL__TEAM__URL.
"""
_WIDTH = 118


def example() -> str:
    """The text of exporter.example.toml."""
    plain: list[str] = [_HEAD]
    tables: list[str] = []
    for name, member in members(Settings).items():
        match member:
            case Field() if member.kind == "tables":
                tables.append(_array_of_tables(member, name))
            case Field():
                plain.append(_setting(member))
            case SettingsTable() | Sinks():
                tables += _table(member, name)
    return "".join(plain + tables)


def _table(table: SettingsTable | Sinks, name: str) -> list[str]:
    """The lines of a table, then of the tables in it."""
    lines = [f"\n{_prose(table.meaning)}#[{name}]\n", *_settings(table.struct, name)]
    for key, member in members(table.struct).items():
        if isinstance(member, SettingsTable):
            lines += _table(member, f"{name}.{key}")
    return lines


def _settings(struct: type[msgspec.Struct], table: str) -> list[str]:
    known = fields(struct)
    lines: list[str] = []
    shown: set[str] = set()
    for field in known.values():
        if field.kind == "tables":
            lines.append(_array_of_tables(field, f"{table}.{field.name}"))
        else:
            lines.append(_setting(field, instead=field.instead_of if field.instead_of in shown else ""))
        shown.add(field.name)
    return lines


def _setting(field: Field, *, instead: str = "") -> str:
    """The setting; one that excludes another of its table is a comment, because a file cannot have both."""
    pair = f"{field.name} = {written(_value(field))}"
    line = f"# or, instead of {instead}: {pair}\n" if instead else f"#{pair}\n"
    return "\n" + _prose(field.meaning + _range(field)) + line


def _array_of_tables(field: Field, name: str) -> str:
    assert field.tables_of is not None
    first, *others = fields(field.tables_of).values()
    lines = f"\n{_prose(field.meaning)}#[[{name}]]\n{_setting(first).lstrip()}"
    if first.required:
        return lines + "".join(map(_setting, others))
    return lines + "".join(f"# or {one.name} = {written(one.example)}: {one.meaning}\n" for one in others)


def _value(field: Field) -> object:
    return field.default if field.example is None else field.example


def _range(field: Field) -> str:
    """The valid values, if the example does not show them."""
    said = field.kind in ("integer", "number") or "one of" in field.expected or "some of" in field.expected
    return f" Give {field.expected}." if said else ""


def _prose(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, _WIDTH))


if __name__ == "__main__":
    sys.stdout.write(example())
