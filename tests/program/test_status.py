"""What `exporter status` says of a daemon that runs."""

import pytest

from tests.program.driver import Machine
from tests.program.waiting import until


@pytest.mark.timeout(120)
def test_reading_is_what_was_read_in_the_last_seconds(delivering: Machine) -> None:
    delivering.start()
    session = delivering.session().write(500)
    delivering.assert_delivered()

    def reading() -> float:
        [files] = [one for one in delivering.json("status")["sources"] if one["name"] == "files"]
        return float(files["events_per_second"])

    assert reading() > 20
    until(lambda: reading() == 0, "quiet after the last event", seconds=20)
    assert "idle" in delivering.exporter("status").stdout

    session.write(200)
    until(lambda: reading() > 10, "the events of now", seconds=20)
