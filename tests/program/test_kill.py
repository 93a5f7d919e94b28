"""Killed at any instant, every durable event is stored once and at most one batch is sent twice (F3)."""

import threading
from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from tests.program.driver import Machine
from tests.program.floor import Floor
from tests.program.session_files import SessionFile
from tests.program.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS: Final = 200
EVENTS: Final = 60_000
SEED: Final = 20261118


class Author:
    """Writes to several sessions at once in slices of any size, as far as it has been allowed to."""

    def __init__(self, sessions: list[SessionFile], total: int, seed: int) -> None:
        self.sessions = sessions
        self.total = total
        self.written = 0
        self.allowed = 0
        self.changed = threading.Condition()
        self.chance = Random(seed)
        self.thread = threading.Thread(target=self._write, daemon=True)
        self.thread.start()

    def allow(self, total: int) -> None:
        """Let it write until there are so many durable events."""
        with self.changed:
            self.allowed = total
            self.changed.notify_all()

    def all_is_at(self, receiver: Floor) -> bool:
        """Whether everything it may write has been written, and has come in there."""
        sessions = {session.id for session in self.sessions}
        return self.written >= self.allowed and sum(map(receiver.count, sessions)) == self.written

    def finish(self) -> None:
        """Let it write all, and wait for it."""
        self.allow(self.total)
        self.thread.join(120)
        assert self.written == self.total

    def _write(self) -> None:
        while self.written < self.total:
            with self.changed:
                self.changed.wait_for(lambda: self.allowed > self.written)
                # A person's session pauses, too; and so a kill finds events that were written and not yet read.
                self.changed.wait(self.chance.uniform(0, 0.015))
            count = min(self.chance.randint(1, 60), self.total - self.written)
            self.chance.choice(self.sessions).write(count)
            self.written += count


def kill_again_and_again(machine: Machine, author: Author, kills: int, seed: int) -> None:
    """Half of the kills fall anywhere in the first 400 ms, the others shortly after something was sent."""
    chance = Random(seed)
    counting = machine.floor
    assert counting is not None
    for number in range(1, kills + 1):
        counting.run = number
        author.allow(author.total * number // kills)
        started = len(counting.posts)
        running = machine.start()
        done = threading.Event()
        if number % 2:
            done.wait(chance.uniform(0.05, 0.4))
        else:
            posts = started + chance.randint(1, 4)
            _wait_for_posts(counting, posts, author)
            done.wait(chance.uniform(0, 0.02))
        assert running.alive, running.text()
        running.kill()
    counting.run = kills + 1


def _wait_for_posts(counting: Floor, posts: int, author: Author) -> None:
    until(lambda: len(counting.posts) >= posts or author.all_is_at(counting), f"{posts} posts")


def assert_one_batch_at_most_was_repeated(counting: Floor, session: SessionFile) -> None:
    """What a run repeats is part of the one batch that was sent last before the kill, and is sent once more only.

    A run that is killed while it repeats that batch sends a part of it, and the next run repeats the whole again.
    """
    seen, batch, last_batch, repeated_in_run = set[str](), set[str](), set[str](), set[str]()
    run = 0
    for post in (post for post in counting.posts if post.session == session.id):
        if post.run != run:
            run, last_batch, repeated_in_run = post.run, batch, set()
        repeated = seen.intersection(post.ids)
        assert repeated <= last_batch, "more than the last batch was repeated"
        assert not repeated & repeated_in_run, "repeated twice in one run"
        repeated_in_run |= repeated
        seen.update(post.ids)
        batch = batch if batch.issuperset(post.ids) else set(post.ids)


def assert_floor_holds_exactly(machine: Machine) -> None:
    """The same events in the same order, byte for byte."""
    assert machine.floor is not None
    for session in machine.sessions:
        assert machine.floor.lines(session.id) == session.durable()


def test_200_kills_while_60000_events_are_written_store_each_once(
    machine: Machine, record_property: Callable[[str, object], None]
) -> None:
    machine.with_floor()
    sessions = [machine.session() for _ in range(5)]
    author = Author(sessions, EVENTS, SEED)

    kill_again_and_again(machine, author, KILLS, SEED)
    author.finish()
    machine.deliver()

    assert_floor_holds_exactly(machine)
    assert machine.floor is not None
    for session in sessions:
        assert_one_batch_at_most_was_repeated(machine.floor, session)
    record_property(f"{KILLS} kills: twice", machine.floor.repeated())
    machine.verify()


def test_20_kills_with_two_sinks_store_each_event_once_at_both(delivering: Machine) -> None:
    sessions = [delivering.session() for _ in range(3)]
    author = Author(sessions, 6_000, SEED + 1)

    kill_again_and_again(delivering, author, 20, SEED + 1)
    author.finish()
    delivering.deliver()

    delivering.assert_delivered()
    assert_floor_holds_exactly(delivering)
    assert delivering.floor is not None
    for session in sessions:
        assert_one_batch_at_most_was_repeated(delivering.floor, session)
