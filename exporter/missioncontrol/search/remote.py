"""Index workers as an index: they say which events may match, and the receiver reads those as the tenant may."""

import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from exporter.missioncontrol.search.index import Term

_SECONDS: Final = 2.0
_AWAY_SECONDS: Final = 10.0
_ANSWER_BYTES_MAX: Final = 1 << 20


class WorkersAwayError(Exception):
    """No index worker answers."""


class FoundNumbers(msgspec.Struct):
    """What a worker answers: numbers of events, the newest first, and whether that is all."""

    numbers: list[int]
    whole: bool


class IndexWorkers:
    """The workers of a receiver, which are asked one after the other until one answers. Any thread may ask."""

    def __init__(self, urls: Sequence[str], token: str) -> None:
        self._urls, self._token = urls, token
        self._away: dict[str, float] = {}

    def matches(self, tenant: int, terms: Sequence[Term], below: int) -> Iterator[int]:
        """Yield what `TextIndex.matches` does of a tenant; raises `WorkersAwayError`."""
        while True:
            found = self._find(tenant, terms, below)
            yield from found.numbers
            if found.whole or not found.numbers:
                return
            below = found.numbers[-1]

    def _find(self, tenant: int, terms: Sequence[Term], below: int) -> FoundNumbers:
        query = urlencode({"tenant": tenant, "below": below, "terms": msgspec.json.encode(terms).decode()})
        reasons = []
        for url in self._urls:
            if self._away.get(url, 0.0) > time.monotonic():
                continue
            try:
                return self._ask(url, query)
            except (OSError, HTTPException, msgspec.MsgspecError) as error:
                self._away[url] = time.monotonic() + _AWAY_SECONDS
                reasons.append(f"{url}: {error or type(error).__name__}")
        raise WorkersAwayError("; ".join(reasons) or "asked again in some seconds")

    def _ask(self, url: str, query: str) -> FoundNumbers:
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
        try:
            path = f"{parts.path.rstrip('/')}/search?{query}"
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
            answer = connection.getresponse()
            body = answer.read(_ANSWER_BYTES_MAX)
            if answer.status != 200:
                raise HTTPException(f"it answered {answer.status}")
            return msgspec.json.decode(body, type=FoundNumbers)
        finally:
            connection.close()


class RemoteIndex:
    """The index of one tenant at the workers, as far as a search needs one."""

    def __init__(self, workers: IndexWorkers, tenant: int) -> None:
        self._workers, self._tenant = workers, tenant

    def matches(self, terms: Sequence[Term], below: int, /) -> Iterator[int]:
        """Yield numbers of events; raises `WorkersAwayError`."""
        return self._workers.matches(self._tenant, terms, below)
