"""A notice is a constant message with fields, at a level that says what to do."""

import logging

from exporter.core.notice import Level, Notice


def test_levels_are_those_of_logging() -> None:
    assert {level.name: int(level) for level in Level} == {
        name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR")
    }


def test_a_notice_is_about_nothing_in_particular_unless_told() -> None:
    one, other = Notice(Level.INFO, "started"), Notice(Level.INFO, "started")

    assert one == other
    assert (one.session, one.sink, one.fields) == (None, None, {})
    assert one.fields is not other.fields
