"""Plants so many secrets, drives them through everything, and says where one was found."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from tests.planted.made import kinds
from tests.planted.road import Road, words_of
from tests.planted.search import Search, words_of_ours
from tests.planted.sessions import CANARY, Session

_SECRETS_PER_SESSION: Final = 1_000


def planted(first: int, number: int, cache_dir: Path, seen: set[str] | None = None) -> Iterator[str]:
    """Yield where one of the secrets with these numbers was found; adds to `seen` each place that has the canary."""
    found = kinds(cache_dir)
    ends = range(first, first + number, _SECRETS_PER_SESSION)
    sessions = [Session(found, begin, min(_SECRETS_PER_SESSION, first + number - begin)) for begin in ends]
    needles = list(chain.from_iterable(one.needles for session in sessions for one in session.secrets))
    search = Search(needles)
    with Road(sessions) as road:
        road.deliver()
        ours = set[str]()
        for place, data in road.places():
            if place == "floor":
                ours = words_of_ours(data)
            if seen is not None and (CANARY.encode() in data or (place == "words" and b"canary" in data)):
                seen.add(place)
            if place == "words":
                words = set(data.decode().split("\n")) - ours
                yield from (f"words: {word}" for word in words_of(needles) & words)
            else:
                yield from search.found(place, data)
