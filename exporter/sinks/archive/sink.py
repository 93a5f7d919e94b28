"""An archive as a sink: it writes the object, then the manifest that names it, and then the mark may move.

After a kill between two of these steps they are repeated: an object that no manifest names is ignored, and ids that
are in the manifest are duplicates. A note marks a session that was forgotten, so that it is not archived again.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.gathering import Gathering
from exporter.core.delivery.verdict import Accepted, Deleted, Later, Missing, Verdict
from exporter.core.events.digest import total
from exporter.sinks.archive.manifest import FORMAT, DamagedError, Manifest, check_object, read_manifest, seal
from exporter.sinks.archive.objects import ObjectError, ObjectStore
from exporter.sinks.sink import Ack, Capabilities, Inspection, Registered, Registration, Sent, Sink
from exporter.sinks.threads import CallThreads

LANES: Final = 2
_EVENTS_MAX: Final = 1 << 20
_EVENT_BYTES_MAX: Final = 1 << 30
_SPARE_BYTES: Final = 4_096
_ARCHIVE: Final = "archive.json"
_NAME_BYTES_MAX: Final = 200

T = TypeVar("T")


class _Archive(msgspec.Struct, frozen=True):
    format: int
    store: str


def directory_of(session: str) -> str:
    """Return the prefix of a session's keys, which is a directory's name on any system."""
    name = quote(session, safe="", errors="surrogatepass")
    name = f"%2E{name[1:]}" if name.startswith(".") else name
    if len(name) > _NAME_BYTES_MAX:
        name = sha256(session.encode(errors="surrogatepass")).hexdigest()
    return f"sessions/{name}/"


class ArchiveSink(Sink):
    """See the module. It reads and writes nothing before a session is registered."""

    def __init__(self, name: str, url: str, objects: ObjectStore, gathering: Gathering) -> None:
        self.name = name
        self.url = url
        self.gathering = gathering
        self.capabilities = Capabilities(ack=True, digest=True, rewound=True)
        self.spread_seconds_min = 0.0  # nobody else asks this directory
        self._objects = objects
        self._threads = CallThreads(LANES, "archive")
        self._of_session: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._opening = threading.Lock()
        self._registered_in: dict[str, str] = {}

    def limits(self) -> BatchLimits:
        """Return what one object may hold: a gathered batch, or one event of any size."""
        assert self.gathering is not None
        return BatchLimits(_EVENTS_MAX, self.gathering.bytes_min + _SPARE_BYTES, _EVENT_BYTES_MAX)

    async def register(self, session: str, remote_id: str | None, *, restore: bool = False) -> Registration:
        """Return what the archive holds of the session; `restore` allows a forgotten session again."""

        def look() -> Registration:
            forgotten = f"{directory_of(session)}forgotten.json"
            if self._objects.get(forgotten) is not None:
                if not restore:
                    return Deleted()
                self._objects.delete(forgotten)
            items = self._manifest(session).items()
            self._registered_in[session] = str(self.store)
            return Registered(session, Ack(len(items), total(items.items()), next(reversed(items), None)))

        return await self._call(session, look)

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Write the events that are not archived yet, and hide those that are rewound."""
        sent = await self._call(remote_id, lambda: self._keep(remote_id, ids, lines, rewound))
        return sent if isinstance(sent, Sent) else Sent(sent)

    def _keep(self, session: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str]) -> Sent:
        directory = directory_of(session)
        if self._is_elsewhere(session):
            return Sent(Missing())
        if self._objects.get(f"{directory}forgotten.json") is not None:
            return Sent(Deleted())
        manifest = self._manifest(session, set_aside=True)
        stored, hidden = manifest.stored(), set(manifest.hidden)
        new: dict[str, bytes] = {}
        for identity, line in zip(ids, lines, strict=True):
            if identity in stored and identity not in hidden:
                continue
            hidden.discard(identity)
            if stored.get(identity) != sha256(line).digest():
                new.setdefault(identity, line)
        hidden |= {identity for identity in rewound if identity in stored}
        if new:
            segment, packed = seal(list(new), list(new.values()))
            self._objects.put(f"{directory}{segment.object}.jsonl.zst", packed)
            manifest.segments.append(segment)
        if new or hidden != manifest.hidden:
            manifest.hidden = hidden
            self._objects.put(f"{directory}manifest.json", manifest.write())
        return Sent(Accepted(), count=len((stored.keys() | new.keys()) - hidden))

    async def items(self, remote_id: str) -> dict[str, bytes] | Verdict:
        """Return the events in the manifest that are not hidden."""

        def read() -> dict[str, bytes] | Verdict:
            return Missing() if self._is_elsewhere(remote_id) else self._manifest(remote_id).items()

        return await self._call(remote_id, read)

    async def inspect(self, remote_id: str, *, mend: bool = False) -> Inspection | Verdict:
        """Read every object of the session and compare it with the manifest."""
        return await self._call(remote_id, lambda: self._inspect(remote_id, mend))

    def _inspect(self, session: str, mend: bool) -> Inspection:
        directory = directory_of(session)
        data = self._objects.get(f"{directory}manifest.json")
        if data is None:
            return Inspection({}, ("the manifest is missing",))
        try:
            manifest = read_manifest(data, session)
        except DamagedError as error:
            return Inspection({}, (str(error),))
        faults: dict[str, str] = {}
        damaged: set[str] = set()
        for segment in manifest.segments:
            try:
                check_object(segment, self._objects.get(f"{directory}{segment.object}.jsonl.zst"))
            except (DamagedError, ObjectError) as error:
                faults[segment.object] = f"object {segment.object} {error}"
                if isinstance(error, DamagedError):  # an object that cannot be read now stays in the manifest
                    damaged.add(segment.object)
        if damaged and mend:
            self._objects.put(f"{directory}manifest.json", manifest.without(damaged).write())
        sound = manifest.without(set(faults))
        named = {f"{directory}{one.object}.jsonl.zst" for one in manifest.segments}
        unnamed = sum(key.endswith(".zst") and key not in named for key in self._objects.list(directory))
        noun = "object" if unnamed == 1 else "objects"
        notes = (f"{unnamed} {noun} that the manifest does not name",) if unnamed else ()
        return Inspection(sound.items(), tuple(faults.values()), notes)

    async def forget(self, remote_id: str) -> int | Verdict | None:
        """Delete the session's objects and its manifest; a note stays, so that it is not archived again by itself."""

        def delete() -> int | None:
            directory = directory_of(remote_id)
            note = f"{directory}forgotten.json"
            keys = [key for key in self._objects.list(directory) if key != note]
            if not keys:
                return None
            self._objects.put(note, msgspec.json.encode({"format": FORMAT, "session": remote_id}) + b"\n")
            for key in keys:
                self._objects.delete(key)
            return len(keys)

        return await self._call(remote_id, delete)

    async def close(self) -> None:
        """End the threads."""
        self._threads.close()

    async def _call(self, session: str, work: Callable[[], T]) -> T | Later:
        """Run work on a session in a thread, after other work on the same session."""

        def locked() -> T:
            with self._of_session[session]:
                self.store = self._store()
                return work()

        try:
            return await self._threads.call(locked)
        except ObjectError as error:
            return Later(str(error), alarm=True)

    def _store(self) -> str:
        """Return the permanent name of this archive, which is created if there is none."""
        with self._opening:
            data = self._objects.get(_ARCHIVE)
            try:
                known = msgspec.json.decode(data or b"", type=_Archive)
            except msgspec.MsgspecError:
                known = _Archive(FORMAT, str(uuid4()))
                self._objects.put(_ARCHIVE, msgspec.json.encode(known) + b"\n")
            if known.format != FORMAT:
                raise ObjectError(f"the archive has format {known.format}; this exporter writes format {FORMAT}")
            return known.store

    def _is_elsewhere(self, session: str) -> bool:
        """Tell whether this is another archive than the one in which the session was registered."""
        return self._registered_in.get(session, self.store) != self.store

    def _manifest(self, session: str, *, set_aside: bool = False) -> Manifest:
        """Return the manifest of a session, an empty one if it is missing or damaged."""
        key = f"{directory_of(session)}manifest.json"
        data = self._objects.get(key)
        if data is None:
            return Manifest(session)
        try:
            return read_manifest(data, session)
        except DamagedError:
            if set_aside:
                self._objects.put(f"{key}.damaged-{sha256(data).hexdigest()[:8]}", data)
            return Manifest(session)
