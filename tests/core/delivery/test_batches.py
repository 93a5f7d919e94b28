"""Every event of a segment is settled or refused once, in order, whatever a sink answers."""

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from exporter.core.delivery.batches import (
    Again,
    BatchLimits,
    Delivery,
    Done,
    Leave,
    Outcome,
    QuarantineEvent,
    Send,
    Settled,
)
from exporter.core.delivery.verdict import Verdict, verdict
from tests.core.scenario import check, scenarios

NOW: Final = datetime(2026, 11, 18, tzinfo=UTC)
FLOOR: Final = BatchLimits(events_max=500, bytes_max=1_000_000, event_bytes_max=8_388_608)
STATUSES: Final = (200, 204, 301, 400, 401, 404, 409, 410, 413, 415, 422, 429, 500, 503)


def answer(status: int) -> Verdict:
    return verdict(status, None, NOW)


def told(outcome: Send | QuarantineEvent | Done | Outcome) -> str:
    match outcome:
        case Send(first, end):
            return f"send {first} to {end - 1}"
        case QuarantineEvent(index, reason):
            return f"quarantine {index}: {reason}"
        case Settled(first, end):
            return f"settled {first} to {end - 1}"
        case Again():
            return "again"
        case Leave(of_sink):
            return f"leave: {of_sink}"
        case Done():
            return "done"


class Script:
    """The language of the delivery scenarios."""

    def __init__(self) -> None:
        self.limits = FLOOR
        self.delivery = Delivery([])

    def __call__(self, words: list[str]) -> list[str]:
        match words:
            case ["limits", *pairs]:
                given_limits = {f"{name}_max": int(number) for name, number in (pair.split("=") for pair in pairs)}
                self.limits = BatchLimits(
                    given_limits["events_max"], given_limits["bytes_max"], given_limits["event_max"]
                )
                return []
            case ["segment", events]:
                self.delivery = Delivery([100] * int(events))
                return []
            case ["sizes", *sizes]:
                self.delivery = Delivery([int(size) for size in sizes])
                return []
            case ["ready"]:
                return [told(self.delivery.ready(self.limits))]
            case ["answer", status]:
                return [told(self.delivery.answered(answer(int(status))))]
            case ["run", *options]:
                return self.run(dict(option.split("=") for option in options))
        raise ValueError(words)

    def run(self, options: dict[str, str]) -> list[str]:
        """Everything until it is done, at a sink that refuses a batch with poison in it."""
        poison = {int(index) for index in options.get("poison", "").split(",") if index}
        said: list[str] = []
        while not isinstance(step := self.delivery.ready(self.limits), Done):
            said.append(told(step))
            if isinstance(step, Send):
                refused = not poison.isdisjoint(range(step.first, step.end))
                status = int(options["answer"]) if refused else 200
                said[-1] += f" -> {status} -> {told(self.delivery.answered(answer(status)))}"
        return [*said, "done"]


@pytest.mark.parametrize("path", scenarios("delivery"), ids=lambda path: path.stem)
def test_scenario(path: Path, rewrite: bool) -> None:
    check(path, Script(), rewrite)


def deliver(
    sizes: list[int], limits: BatchLimits, poison: set[int], status: int
) -> tuple[list[int], dict[int, str], int]:
    """What a sink that refuses the poison has in the end, what was refused, and how many requests it took."""
    delivery, accepted, refused, requests = Delivery(sizes), list[int](), dict[int, str](), 0
    while not isinstance(step := delivery.ready(limits), Done):
        outcome: QuarantineEvent | Outcome = step if isinstance(step, QuarantineEvent) else Again()
        if isinstance(step, Send):
            requests += 1
            bad = not poison.isdisjoint(range(step.first, step.end))
            outcome = delivery.answered(answer(status if bad else 200))
            if isinstance(outcome, Settled):
                accepted.extend(range(outcome.first, outcome.end))
        if isinstance(outcome, QuarantineEvent):
            assert outcome.index not in refused
            refused[outcome.index] = outcome.reason
        assert requests < 3 * len(sizes) + 10
    assert delivery.refused == set(refused)
    return accepted, refused, requests


@pytest.mark.parametrize("status", [400, 413, 422])
@given(data=st.data(), events=st.integers(1, 500))
def test_one_poisoned_event_is_found_in_few_requests(status: int, data: st.DataObject, events: int) -> None:
    culprit = data.draw(st.integers(0, events - 1))

    accepted, refused, requests = deliver([100] * events, FLOOR, {culprit}, status)

    assert accepted == [index for index in range(events) if index != culprit]
    assert refused == {culprit: f"refused_{status}"}
    assert requests <= 2 * math.ceil(math.log2(events)) + 3


@given(
    sizes=st.lists(st.integers(1, 120), min_size=1, max_size=60),
    limits=st.builds(BatchLimits, st.integers(1, 20), st.integers(1, 300), st.integers(20, 120)),
    poison=st.sets(st.integers(0, 59)),
    status=st.sampled_from([400, 413, 422]),
)
def test_all_but_the_poison_arrives_in_order(
    sizes: list[int], limits: BatchLimits, poison: set[int], status: int
) -> None:
    too_large = {index for index, size in enumerate(sizes) if size > limits.event_bytes_max}

    accepted, refused, _ = deliver(sizes, limits, poison, status)

    assert accepted == [index for index in range(len(sizes)) if index not in poison | too_large]
    assert set(refused) == {index for index in range(len(sizes)) if index in poison | too_large}
    assert {index for index, reason in refused.items() if reason == "event_too_large"} == too_large


class AnyAnswers(RuleBasedStateMachine):
    """A sink that answers anything, to a daemon that may be killed at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.limits = FLOOR
        self.delivery = Delivery([])
        self.settled: list[int] = []
        self.sent: Send | None = None

    @initialize(
        sizes=st.lists(st.integers(1, 100), max_size=40),
        limits=st.builds(BatchLimits, st.integers(1, 12), st.integers(1, 400), st.integers(50, 100)),
    )
    def begin(self, sizes: list[int], limits: BatchLimits) -> None:
        self.sizes, self.limits = sizes, limits
        self.delivery = Delivery(sizes)

    @rule()
    def kill(self) -> None:
        """Nothing but the mark outlives it, and the mark did not move: the segment is repeated as a whole."""
        self.delivery, self.settled, self.sent = Delivery(self.sizes), [], None

    @precondition(lambda self: self.sent is None)
    @rule()
    def ready(self) -> None:
        step = self.delivery.ready(self.limits)
        match step:
            case Done():
                assert len(self.settled) == len(self.sizes)
            case QuarantineEvent(index, reason):
                assert (index, reason) == (len(self.settled), "event_too_large")
                assert self.sizes[index] > self.limits.event_bytes_max
                self.settled.append(index)
            case Send(first, end):
                self.check_batch(first, end)
                assert self.delivery.ready(self.limits) == step
                self.sent = step

    def check_batch(self, first: int, end: int) -> None:
        assert first == len(self.settled) < end <= len(self.sizes)
        batch = self.sizes[first:end]
        assert len(batch) <= self.limits.events_max
        assert max(batch) <= self.limits.event_bytes_max
        body = len('{"events":[]}') + sum(batch) + len(batch) - 1
        assert len(batch) == 1 or body <= self.limits.bytes_max

    @precondition(lambda self: self.sent is not None)
    @rule(status=st.sampled_from(STATUSES))
    def answer(self, status: int) -> None:
        assert self.sent is not None
        batch, self.sent = self.sent, None
        match self.delivery.answered(answer(status)):
            case Settled(first, end):
                assert status in (200, 204)
                assert (first, end) == (batch.first, batch.end)
                self.settled.extend(range(first, end))
            case QuarantineEvent(index, reason):
                assert (index, index + 1) == (batch.first, batch.end)
                assert reason == f"refused_{status}"
                self.settled.append(index)
            case Again():
                assert status in (400, 413, 422)
            case Leave(of_sink):
                assert of_sink == answer(status)

    @precondition(lambda self: self.sent is None)
    @rule(events_max=st.integers(1, 12), bytes_max=st.integers(1, 400))
    def learn_limits(self, events_max: int, bytes_max: int) -> None:
        self.limits = replace(self.limits, events_max=events_max, bytes_max=bytes_max)

    @invariant()
    def in_order_and_once(self) -> None:
        assert self.settled == list(range(len(self.settled)))
        assert self.delivery.refused <= set(self.settled)


TestAnyAnswers = AnyAnswers.TestCase


def test_no_event_is_refused_with_400_before_it_was_sent_twice() -> None:
    """A proxy that answers 400 once, at any time, costs nothing."""
    for transient in range(6):
        delivery, statuses = Delivery([10] * 4), [200] * 12
        statuses[transient] = 400
        limits = BatchLimits(events_max=1, bytes_max=100, event_bytes_max=100)
        for status in statuses:
            if isinstance(delivery.ready(limits), Send):
                assert not isinstance(delivery.answered(answer(status)), QuarantineEvent)

        assert delivery.refused == set()
        assert delivery.ready(limits) == Done()


def test_a_batch_refused_for_its_size_says_which_size() -> None:
    delivery = Delivery([100, 200, 300])
    delivery.ready(FLOOR)
    delivery.answered(answer(413))

    assert delivery.batch_bytes_refused == 600
