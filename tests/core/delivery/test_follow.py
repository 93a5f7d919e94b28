"""What is decided from what was known of a file and what is seen of it, as a table."""

from typing import Final

import pytest

from exporter.core.delivery.follow import Decision, FileState, Grow, Rewritten, Vanish, Wait, decide
from exporter.core.delivery.position import Identity

A: Final = Identity(1, 10)
B: Final = Identity(1, 11)
OTHER_DISK: Final = Identity(2, 10)


@pytest.mark.parametrize(
    "known, offset, size_checked, seen, decision",
    [
        (None, 0, 0, None, Vanish()),
        (A, 100, 100, None, Vanish()),
        (None, 0, 0, FileState(A, 0), Wait()),
        (None, 0, 0, FileState(A, 10), Grow()),
        (A, 100, 100, FileState(A, 100), Wait()),
        (A, 100, 100, FileState(A, 101), Grow()),
        (A, 100, 150, FileState(A, 150), Grow()),
        (A, 0, 0, FileState(A, 0), Wait()),
        (A, 100, 100, FileState(A, 99), Rewritten("truncated")),
        (A, 100, 100, FileState(A, 0), Rewritten("truncated")),
        (A, 0, 150, FileState(A, 149), Rewritten("truncated")),
        (A, 100, 100, FileState(B, 100), Rewritten("replaced")),
        (A, 100, 100, FileState(B, 50), Rewritten("replaced")),
        (A, 100, 100, FileState(B, 500), Rewritten("replaced")),
        (A, 0, 0, FileState(B, 0), Rewritten("replaced")),
        (A, 100, 100, FileState(OTHER_DISK, 100), Rewritten("replaced")),
    ],
)
def test_decision(
    known: Identity | None, offset: int, size_checked: int, seen: FileState | None, decision: Decision
) -> None:
    assert decide(known, offset, size_checked, seen) == decision
