"""A daemon that is only just starting is asked like one that runs."""

from tests.program.driver import Machine
from tests.program.waiting import until


def test_backfill_waits_for_a_daemon_that_holds_the_lock_and_does_not_answer_yet(delivering: Machine) -> None:
    session = delivering.session().write(50)
    lock = delivering.state / "lock"
    codes = []

    for _ in range(5):
        daemon = delivering.start()
        pid = str(daemon.process.pid)
        until(lambda pid=pid: lock.is_file() and lock.read_text().strip() == pid, "the daemon's lock")  # type: ignore[misc]
        codes.append(delivering.exporter("backfill", "--session", session.id).returncode)
        daemon.kill()

    assert codes == [0] * 5
