"""Run by test_watch_inotify.py in a process of its own: `inotify` under a limit that the whole process would feel."""

import asyncio
import ctypes
import errno
import os
import resource
import sys
from pathlib import Path
from typing import Final

from exporter.sources.files.inotify import InotifyWatcher, Kernel, Watch
from exporter.sources.files.watch import FallbackWatcher, PollingWatcher
from tests.sources.files.watch_contract import append, watching

CLONE_NEWUSER: Final = 0x10000000
WATCHES_MAX: Final = 3


class LimitedKernel(Kernel):
    """Refuses the fourth watch as Linux does, for machines that let nobody make a user namespace."""

    def __init__(self) -> None:
        super().__init__()
        self._watches: set[Watch] = set()

    def watch(self, instance: int, directory: str) -> Watch:
        watch = super().watch(instance, directory)
        if watch not in self._watches and len(self._watches) == WATCHES_MAX:
            super().forget(instance, watch)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._watches.add(watch)
        return watch

    def forget(self, instance: int, watch: Watch) -> None:
        self._watches.discard(watch)
        super().forget(instance, watch)


def kernel_with_few_watches() -> Kernel:
    """The real limit of a user namespace, where one can be had."""
    user, group = os.getuid(), os.getgid()
    try:
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
            return LimitedKernel()
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        Path("/proc/sys/user/max_inotify_watches").write_text(str(WATCHES_MAX))
    except OSError:
        return LimitedKernel()
    return Kernel()


def make_sessions(root: Path) -> list[Path]:
    sessions = [root / f"session-{number}" for number in range(5)]
    for session in sessions:
        session.mkdir()
    return sessions


async def watches(root: Path) -> None:
    """Watches beyond the limit are polled, and an ended one makes room."""
    sessions = make_sessions(root)
    inotify = InotifyWatcher(kernel=kernel_with_few_watches())
    watcher = FallbackWatcher(inotify, PollingWatcher(0.02))
    assert all(watcher.add(str(session)) for session in sessions)
    assert watcher.refused == {str(session) for session in sessions[WATCHES_MAX:]}
    assert inotify.add(str(sessions[0]))
    assert not inotify.add(str(sessions[4]))
    async with watching(watcher) as receiver:
        for session in sessions:
            append(session / "events.jsonl", b"one\n")
            await receiver.has(session, "events.jsonl")
        watcher.remove(str(sessions[0]))
        assert watcher.add(str(sessions[4]))
        assert watcher.refused == {str(sessions[3])}
        append(sessions[4] / "more.jsonl", b"one\n")
        await receiver.has(sessions[4], "more.jsonl")


async def descriptors(root: Path) -> None:
    """No descriptor left for the instance: everything is polled, until one is free."""
    sessions = make_sessions(root)
    watcher = FallbackWatcher(InotifyWatcher(), PollingWatcher(0.02))
    async with watching(watcher) as receiver:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        spare = []
        try:
            while True:
                spare.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.EMFILE
        os.close(spare.pop())
        os.close(spare.pop())
        taken = InotifyWatcher()
        assert taken.add(str(sessions[0]))
        spare.append(os.open("/dev/null", os.O_RDONLY))
        inotify = InotifyWatcher()
        assert not inotify.add(str(sessions[0]))
        os.close(spare.pop())
        assert inotify.add(str(sessions[0]))
        assert watcher.add(str(sessions[1]))
        assert watcher.refused == {str(sessions[1])}
        inotify.close()
        taken.close()
        append(sessions[1] / "events.jsonl", b"one\n")
        await receiver.has(sessions[1], "events.jsonl")


if __name__ == "__main__":
    asyncio.run({"watches": watches, "descriptors": descriptors}[sys.argv[1]](Path(sys.argv[2])))
