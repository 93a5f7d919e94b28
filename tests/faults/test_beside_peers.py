"""One fault, four shippers: what is lost and what comes twice. Of the exporter it is demanded, of the peers noted."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.faults.lab import Lab
from tests.faults.packages import MissingError
from tests.faults.receiver import Answer, Delivery
from tests.faults.shippers import SHIPPERS
from tests.program.session_files import SessionFile, event_id
from tests.real.cage import Cage

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]

BATCH: Final = 500
KILOBYTE_OF_WORDS: Final = "many words " * 90


@pytest.fixture(scope="module")
def cage() -> Iterator[Cage]:
    with Cage() as opened:
        yield opened


@pytest.fixture(params=list(SHIPPERS))
def lab(request: pytest.FixtureRequest, cage: Cage, record_property: Callable[[str, Any], None]) -> Iterator[Lab]:
    """A lab of each shipper; its counts are part of the report, and of the exporter none may be lost."""
    name = str(request.param)
    if not (cage.isolated and os.geteuid() == 0) and name != "exporter":
        pytest.skip("peers run only as root and where a network namespace keeps them from everything but loopback")
    root = Path(tempfile.mkdtemp(prefix="xf-")).resolve()
    opened = Lab(root, cage, SHIPPERS[name], name)
    try:
        opened.shipper.launch(opened.place)
        yield opened
        opened.facts.update(lost=opened.lost, twice=opened.duplicates, of=len(set(opened.expected)))
        for fact, value in opened.facts.items():
            record_property(fact, round(value, 2) if isinstance(value, float) else value)
        assert not opened.ours or opened.lost == 0, opened.said()
    except MissingError as why:
        pytest.skip(str(why))
    finally:
        opened.close()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def following(lab: Lab) -> Lab:
    """The lab, where the shipper has delivered a first session."""
    lab.start()
    lab.ready()
    return lab


def judge(lab: Lab, *, twice_max: int = 0) -> None:
    """Wait for the rest; of the exporter no more may come twice than this."""
    lab.facts["seconds"] = lab.settle()
    assert not lab.ours or lab.duplicates <= twice_max, f"{lab.duplicates} came twice"


def settled(lab: Lab, count: int) -> SessionFile:
    """A session of so many events that was delivered, if it can be."""
    session = lab.session(count)
    lab.settle()
    return session


def answers(lab: Lab, *first: Answer) -> None:
    """Answer the next deliveries so, and all that follow well."""
    start = len(lab.receiver.deliveries)

    def script(delivery: Delivery) -> Answer:
        number = delivery.number - start
        return first[number] if number < len(first) else Answer()

    lab.receiver.script = script


def begun(lab: Lab, answer: Answer, *, events: int = 3_000, requests: int = 1) -> int:
    """Write a session to an endpoint that answers so, until it has been asked; how often it had been asked before."""
    lab.receiver.script = lambda _: answer
    before = len(lab.receiver.deliveries)
    lab.session(events)
    lab.requests(before + requests)
    return before


def stopped_while(lab: Lab, answer: Answer) -> None:
    """Stop it while the endpoint answers so, and start it again when all is well."""
    begun(lab, answer)
    lab.facts["exit seconds"] = lab.stop()
    lab.receiver.script = lambda _: Answer()
    lab.start()

    judge(lab)
    assert not lab.ours or lab.stopped_within <= 2.0


# ── the process ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_killed_again_and_again_while_the_session_is_written(following: Lab) -> None:
    chance = Random(53)
    session = following.session()
    for _ in range(5):
        for _ in range(40):
            following.write(session, 100)
            time.sleep(chance.uniform(0, 0.02))
        following.kill()
        following.start()
    following.write(session, 100)

    judge(following, twice_max=5 * BATCH)


def test_stopped_while_an_answer_is_on_its_way(following: Lab) -> None:
    stopped_while(following, Answer(hold_seconds=0.4))


def test_stopped_while_the_endpoint_answers_503(following: Lab) -> None:
    stopped_while(following, Answer(503))


def test_killed_while_the_endpoint_answers_503(following: Lab) -> None:
    begun(following, Answer(503), requests=2)
    following.kill()
    following.receiver.script = lambda _: Answer()
    following.start()

    judge(following)


def test_two_of_it_with_one_state_directory(following: Lab) -> None:
    second = following.start(second=True)
    started = time.monotonic()
    while second.poll() is None and time.monotonic() - started < 3:
        time.sleep(0.02)
    following.facts["second"] = "runs too" if second.poll() is None else f"ends with {second.returncode}"
    settled(following, 300)
    time.sleep(0.5)

    judge(following)
    assert not following.ours or second.poll() == 7


# ── the endpoint ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_endpoint_down_and_back(following: Lab) -> None:
    following.receiver.shut()
    following.session(2_000)
    time.sleep(8)
    following.receiver.open(following.cage.listen(following.receiver.port))

    judge(following)


def test_five_times_503(following: Lab) -> None:
    answers(following, *[Answer(503)] * 5)
    following.session(2_000)

    judge(following)


def test_429_with_retry_after_3(following: Lab) -> None:
    before = len(following.receiver.deliveries)
    answers(following, Answer(429, {"Retry-After": "3"}))
    settled(following, 20)
    times = [one.at for one in following.receiver.deliveries[before:]]
    waits = [later - earlier for earlier, later in pairwise(times)][:1]
    following.facts["waited"] = waits[0] if waits else "not asked again"

    judge(following)
    assert not following.ours or 3.0 <= waits[0] <= 4.0


def test_400_once(following: Lab) -> None:
    answers(following, Answer(400))
    following.session(1_000)

    judge(following)


def test_400_for_one_event(following: Lab) -> None:
    session = following.session()
    lines = [session.event() for _ in range(500)]
    poison = event_id(lines[250])
    following.receiver.poison = frozenset({poison})
    before = len(following.receiver.deliveries)
    following.expect(lines[:250] + lines[251:])
    session.append(lines)

    judge(following)
    following.facts["requests"] = requests = len(following.receiver.deliveries) - before
    assert not following.ours or requests <= 22


def test_401_until_the_token_is_renewed(following: Lab) -> None:
    before = begun(following, Answer(401), events=2_000)
    time.sleep(3)
    following.facts["requests while refused"] = len(following.receiver.deliveries) - before
    following.receiver.script = lambda _: Answer()
    if following.ours:  # the peers read no token anew; to them the endpoint takes the old one again
        (following.place.scratch / "token").write_text("renewed-token\n")

    judge(following)


def test_413_above_200_kb(following: Lab) -> None:
    following.receiver.script = lambda one: Answer(413 if one.size > 200_000 else 200)
    following.session(2_000, words=KILOBYTE_OF_WORDS)

    judge(following)


def test_answer_lost_after_the_receiver_stored(following: Lab) -> None:
    answers(following, Answer(lost=True))
    following.session(1_000)

    judge(following, twice_max=BATCH)


def test_connection_reset_in_the_middle_of_a_body(following: Lab) -> None:
    following.receiver.resets = 2
    following.session(1_000)

    judge(following)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_last_line_is_written_in_two_halves(following: Lab) -> None:
    session = settled(following, 10)
    line = session.event()
    session.append_bytes(line[: len(line) // 2])
    time.sleep(1.5)
    following.stop()
    following.start()
    time.sleep(1.5)
    early = event_id(line) in following.receiver.stored
    following.expect([line])
    session.append_bytes(line[len(line) // 2 :] + b"\n")

    judge(following)
    following.facts["half a line sent"] = early or following.receiver.stored[""] > 0
    assert not following.ours or not early


def test_truncated_to_shorter_and_appended(following: Lab) -> None:
    session = settled(following, 100)
    lines = session.durable()
    os.truncate(session.path, sum(len(line) + 1 for line in lines[:30]))
    session.continue_after(lines[:30])
    following.write(session, 100)

    judge(following)


def test_truncated_and_refilled_longer(following: Lab) -> None:
    session = settled(following, 100)
    session.parent = None
    new = [session.event() for _ in range(400)]
    descriptor = os.open(session.path, os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, b"".join(line + b"\n" for line in new))
    os.close(descriptor)
    following.expect(new)

    judge(following)


def test_copied_and_truncated(following: Lab) -> None:
    session = settled(following, 100)
    shutil.copyfile(session.path, session.directory / "events.jsonl.1")
    os.truncate(session.path, 0)
    following.write(session, 150)

    judge(following)


def test_rewritten_with_its_first_half_kept(following: Lab) -> None:
    session = settled(following, 100)
    session.replace(session.durable()[:50])
    following.write(session, 60)

    judge(following)


def test_another_longer_file_under_the_same_inode_while_down(following: Lab) -> None:
    session = settled(following, 100)
    time.sleep(1)
    following.stop()
    inode = session.path.stat().st_ino
    os.truncate(session.path, 0)
    session.parent = None
    following.write(session, 400)
    assert session.path.stat().st_ino == inode
    following.start()

    judge(following)


def test_directory_moved_away_and_back(following: Lab) -> None:
    session = settled(following, 100)
    away = following.home / "away"
    session.directory.rename(away)
    time.sleep(2)
    away.rename(session.directory)
    following.write(session, 50)

    judge(following)


def test_event_of_three_megabytes(following: Lab) -> None:
    session = following.session(2)
    following.write(session, 1, words="many words " * 270_000)
    following.write(session, 2)

    judge(following)


def test_page_of_nuls_in_the_middle(following: Lab) -> None:
    session = following.session(20)
    session.append_bytes(b"\0" * 4096 + b"\n")
    following.write(session, 20)

    judge(following)


# ── the machine ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_disk_of_the_state_is_full(lab: Lab) -> None:
    lab.small_disk("100m" if lab.name == "syslog-ng" else "16m")  # its disk buffer is made whole at the start
    lab.start()
    lab.ready()
    session = settled(lab, 100)
    ballast = lab.fill_disk()
    for _ in range(20):
        lab.write(session, 200)
    time.sleep(3)
    lab.facts["while full"] = "alive" if lab.program.poll() is None else "dead"
    ballast.unlink()
    lab.settle()
    lab.kill()
    lab.start()
    lab.write(session, 10)

    judge(lab, twice_max=BATCH)
    assert not lab.ours or lab.facts["while full"] == "alive"


def test_state_is_zeroed_while_down(following: Lab) -> None:
    session = settled(following, 300)
    time.sleep(1)
    following.stop()
    for path in following.state.rglob("*"):
        if path.is_file():
            path.write_bytes(bytes(path.stat().st_size))
    following.start()
    following.write(session, 100)

    judge(following, twice_max=301)


def test_a_thousand_files(lab: Lab) -> None:
    sessions = [lab.session(2) for _ in range(1_000)]
    lab.start()
    lab.settle(30)
    for session in sessions:
        lab.write(session, 1)

    judge(lab)
