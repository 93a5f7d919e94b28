"""What the observer makes of messages that are none."""

from tests.core.ahp.watching import Watching


def test_a_connection_is_given_up_at_the_hundredth_invalid_message() -> None:
    watching = Watching({})
    watching.begin()

    failures = []
    for _ in range(100):
        watching.observer.receive("no message", watching.now)
        failures.append(watching.observer.failure)

    assert watching.observer.invalid_frames == 100
    assert "invalid message" in watching.observer.notice
    assert failures[:99] == [""] * 99
    assert "too many invalid messages" in failures[99]
