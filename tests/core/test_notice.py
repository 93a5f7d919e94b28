"""A notice is a constant message with fields, at a level that says what to do; of one fault there is one line."""

import logging

import pytest

from exporter.core.notice import Level, Notice, NoticeLog, NoticeName

WAITING = NoticeName.SINK_WAITING


class Written:
    """A log with a clock that the test turns."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.now = 0.0
        self.log = NoticeLog(Level.INFO, self.notices.append, lambda: self.now)

    def fault(self, session: str, why: str = "answered 503", sink: str = "mission_control") -> None:
        self.log(Notice(WAITING, Level.WARNING, "trying again", session, sink, fields={"why": why}))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.log.flush()

    def told(self) -> list[object]:
        """The `times` of each line, None in the first."""
        return [one.fields.get("times") for one in self.notices]


@pytest.fixture
def written() -> Written:
    return Written()


def test_levels_are_those_of_logging() -> None:
    assert {level.name: int(level) for level in Level} == {
        name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR")
    }


def test_a_notice_is_about_nothing_in_particular_unless_told() -> None:
    one, other = (Notice(NoticeName.READY, Level.INFO, "ready") for _ in range(2))

    assert one == other
    assert (one.session, one.sink, one.url, one.fields) == (None, None, None, {})
    assert one.fields is not other.fields


def test_what_is_below_the_level_is_left_out(written: Written) -> None:
    written.log(Notice(NoticeName.READY, Level.DEBUG, "ready"))
    written.log(Notice(NoticeName.READY, Level.INFO, "ready"))

    assert [one.level for one in written.notices] == [Level.INFO]


def test_a_fault_of_many_sessions_is_one_line_with_how_often(written: Written) -> None:
    for number in range(30):
        written.fault(f"session-{number}")
    assert written.told() == [None]

    written.pass_time(60)

    assert written.told() == [None, 29]
    assert (written.notices[1].session, written.notices[1].fields["sessions"]) == (None, 29)


def test_a_fault_that_lasts_is_told_more_and_more_seldom(written: Written) -> None:
    for _ in range(24 * 60):
        written.fault("s")
        written.pass_time(60)

    times = [int(str(one)) for one in written.told()[1:]]
    assert 24 <= len(times) <= 26  # after a minute, ten minutes, and every hour
    assert 24 * 60 - 60 <= 1 + sum(times) <= 24 * 60  # the rest is gathered for the next line


def test_another_fault_another_sink_and_a_fault_that_comes_back_are_lines_of_their_own(written: Written) -> None:
    written.fault("s")
    written.fault("s", why="answered 500")
    written.fault("s", sink="otel:logs")
    written.pass_time(180)
    written.fault("s")

    assert written.told() == [None] * 4


def test_quarantined_events_are_summed_up(written: Written) -> None:
    for session in ("a", "b", "b"):
        fields = {"reason": "too_long", "events": 2}
        written.log(Notice(NoticeName.QUARANTINED, Level.WARNING, "put in quarantine", session, "mc", fields=fields))

    written.log.flush(at_once=True)

    assert written.notices[-1].fields == {"reason": "too_long", "events": 4, "sessions": 1, "times": 2}


def test_what_is_no_fault_of_a_sink_is_never_gathered(written: Written) -> None:
    for _ in range(3):
        written.log(Notice(NoticeName.SOURCE_STOPPED, Level.ERROR, "a source stopped"))

    assert len(written.notices) == 3
