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
from tests.program.session_files import event_id
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


def answers(lab: Lab, *first: Answer) -> None:
    """Answer the next deliveries so, and all that follow well."""
    start = len(lab.receiver.deliveries)

    def script(delivery: Delivery) -> Answer:
        number = delivery.number - start
        return first[number] if number < len(first) else Answer()

    lab.receiver.script = script


def judge(lab: Lab, *, twice_max: int = 0) -> None:
    """Wait for the rest; of the exporter no more may come twice than this."""
    lab.facts["seconds"] = lab.settle()
    assert not lab.ours or lab.duplicates <= twice_max, f"{lab.duplicates} came twice"


# ── the process ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_killed_again_and_again_while_the_session_is_written(lab: Lab) -> None:
    lab.start()
    lab.ready()
    chance = Random(53)
    session = lab.session()
    for _ in range(5):
        for _ in range(40):
            lab.write(session, 100)
            time.sleep(chance.uniform(0, 0.02))
        lab.kill()
        lab.start()
    lab.write(session, 100)

    judge(lab, twice_max=5 * BATCH)


def test_stopped_while_an_answer_is_on_its_way(lab: Lab) -> None:
    lab.start()
    lab.ready()
    lab.receiver.script = lambda _: Answer(hold_seconds=0.4)
    before = len(lab.receiver.deliveries)
    lab.session(3_000)
    lab.requests(before + 1)
    lab.facts["exit seconds"] = lab.stop()
    lab.receiver.script = lambda _: Answer()
    lab.start()

    judge(lab)
    assert not lab.ours or lab.stopped_within <= 2.0


def test_stopped_while_the_endpoint_answers_503(lab: Lab) -> None:
    lab.start()
    lab.ready()
    lab.receiver.script = lambda _: Answer(503)
    before = len(lab.receiver.deliveries)
    lab.session(3_000)
    lab.requests(before + 1)
    lab.facts["exit seconds"] = lab.stop()
    lab.receiver.script = lambda _: Answer()
    lab.start()

    judge(lab)
    assert not lab.ours or lab.stopped_within <= 2.0


def test_killed_while_the_endpoint_answers_503(lab: Lab) -> None:
    lab.start()
    lab.ready()
    lab.receiver.script = lambda _: Answer(503)
    before = len(lab.receiver.deliveries)
    lab.session(3_000)
    lab.requests(before + 2)
    lab.kill()
    lab.receiver.script = lambda _: Answer()
    lab.start()

    judge(lab)


def test_two_of_it_with_one_state_directory(lab: Lab) -> None:
    lab.start()
    lab.ready()
    second = lab.start(second=True)
    started = time.monotonic()
    while second.poll() is None and time.monotonic() - started < 3:
        time.sleep(0.02)
    lab.facts["second"] = "runs too" if second.poll() is None else f"ends with {second.returncode}"
    lab.session(300)
    lab.settle()
    time.sleep(0.5)

    judge(lab)
    assert not lab.ours or second.poll() == 7


# ── the endpoint ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_endpoint_down_and_back(lab: Lab) -> None:
    lab.start()
    lab.ready()
    lab.receiver.shut()
    lab.session(2_000)
    time.sleep(8)
    lab.receiver.open(lab.cage.listen(lab.receiver.port))

    judge(lab)


def test_five_times_503(lab: Lab) -> None:
    lab.start()
    lab.ready()
    answers(lab, *[Answer(503)] * 5)
    lab.session(2_000)

    judge(lab)


def test_429_with_retry_after_3(lab: Lab) -> None:
    lab.start()
    lab.ready()
    before = len(lab.receiver.deliveries)
    answers(lab, Answer(429, {"Retry-After": "3"}))
    lab.session(20)
    lab.settle()
    times = [one.at for one in lab.receiver.deliveries[before:]]
    waits = [later - earlier for earlier, later in pairwise(times)][:1]
    lab.facts["waited"] = waits[0] if waits else "not asked again"

    judge(lab)
    assert not lab.ours or 3.0 <= waits[0] <= 4.0


def test_400_once(lab: Lab) -> None:
    lab.start()
    lab.ready()
    answers(lab, Answer(400))
    lab.session(1_000)

    judge(lab)


def test_400_for_one_event(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session()
    lines = [session.event() for _ in range(500)]
    poison = event_id(lines[250])
    lab.receiver.poison = frozenset({poison})
    before = len(lab.receiver.deliveries)
    lab.expect(lines[:250] + lines[251:])
    session.append(lines)

    judge(lab)
    lab.facts["requests"] = requests = len(lab.receiver.deliveries) - before
    assert not lab.ours or requests <= 22


def test_401_until_the_token_is_renewed(lab: Lab) -> None:
    lab.start()
    lab.ready()
    lab.receiver.script = lambda _: Answer(401)
    before = len(lab.receiver.deliveries)
    lab.session(2_000)
    lab.requests(before + 1)
    time.sleep(3)
    lab.facts["requests while refused"] = len(lab.receiver.deliveries) - before
    lab.receiver.script = lambda _: Answer()
    if lab.ours:  # the peers read no token anew; to them the endpoint takes the old one again
        (lab.place.scratch / "token").write_text("renewed-token\n")

    judge(lab)


def test_413_above_200_kb(lab: Lab) -> None:
    lab.start()
    lab.ready()
    lab.receiver.script = lambda one: Answer(413 if one.size > 200_000 else 200)
    lab.session(2_000, words=KILOBYTE_OF_WORDS)

    judge(lab)


def test_answer_lost_after_the_receiver_stored(lab: Lab) -> None:
    lab.start()
    lab.ready()
    answers(lab, Answer(lost=True))
    lab.session(1_000)

    judge(lab, twice_max=BATCH)


def test_connection_reset_in_the_middle_of_a_body(lab: Lab) -> None:
    lab.start()
    lab.ready()
    lab.receiver.resets = 2
    lab.session(1_000)

    judge(lab)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_last_line_is_written_in_two_halves(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(10)
    lab.settle()
    line = session.event()
    session.append_bytes(line[: len(line) // 2])
    time.sleep(1.5)
    lab.stop()
    lab.start()
    time.sleep(1.5)
    early = event_id(line) in lab.receiver.stored
    lab.expect([line])
    session.append_bytes(line[len(line) // 2 :] + b"\n")

    judge(lab)
    lab.facts["half a line sent"] = early or lab.receiver.stored[""] > 0
    assert not lab.ours or not early


def test_truncated_to_shorter_and_appended(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(100)
    lab.settle()
    lines = session.durable()
    os.truncate(session.path, sum(len(line) + 1 for line in lines[:30]))
    session.continue_after(lines[:30])
    lab.write(session, 100)

    judge(lab)


def test_truncated_and_refilled_longer(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(100)
    lab.settle()
    session.parent = None
    new = [session.event() for _ in range(400)]
    descriptor = os.open(session.path, os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, b"".join(line + b"\n" for line in new))
    os.close(descriptor)
    lab.expect(new)

    judge(lab)


def test_copied_and_truncated(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(100)
    lab.settle()
    shutil.copyfile(session.path, session.directory / "events.jsonl.1")
    os.truncate(session.path, 0)
    lab.write(session, 150)

    judge(lab)


def test_rewritten_with_its_first_half_kept(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(100)
    lab.settle()
    lines = session.durable()
    session.replace(lines[:50])
    lab.write(session, 60)

    judge(lab)


def test_another_longer_file_under_the_same_inode_while_down(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(100)
    lab.settle()
    time.sleep(1)
    lab.stop()
    inode = session.path.stat().st_ino
    os.truncate(session.path, 0)
    session.parent = None
    lab.write(session, 400)
    assert session.path.stat().st_ino == inode
    lab.start()

    judge(lab)


def test_directory_moved_away_and_back(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(100)
    lab.settle()
    away = lab.home / "away"
    session.directory.rename(away)
    time.sleep(2)
    away.rename(session.directory)
    lab.write(session, 50)

    judge(lab)


def test_event_of_three_megabytes(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(2)
    lab.write(session, 1, words="many words " * 270_000)
    lab.write(session, 2)

    judge(lab)


def test_page_of_nuls_in_the_middle(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(20)
    session.append_bytes(b"\0" * 4096 + b"\n")
    lab.write(session, 20)

    judge(lab)


# ── the machine ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_disk_of_the_state_is_full(lab: Lab) -> None:
    lab.small_disk("100m" if lab.name == "syslog-ng" else "16m")  # its disk buffer is made whole at the start
    lab.start()
    lab.ready()
    session = lab.session(100)
    lab.settle()
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


def test_state_is_zeroed_while_down(lab: Lab) -> None:
    lab.start()
    lab.ready()
    session = lab.session(300)
    lab.settle()
    time.sleep(1)
    lab.stop()
    for path in lab.state.rglob("*"):
        if path.is_file():
            path.write_bytes(bytes(path.stat().st_size))
    lab.start()
    lab.write(session, 100)

    judge(lab, twice_max=301)


def test_a_thousand_files(lab: Lab) -> None:
    sessions = [lab.session(2) for _ in range(1_000)]
    lab.start()
    lab.settle(30)
    for session in sessions:
        lab.write(session, 1)

    judge(lab)
