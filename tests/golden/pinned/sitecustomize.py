"""Pins the time of day and random ids of a process, so that two runs of the program give the same bytes.

The interpreter imports it before anything else when this directory is on PYTHONPATH. Monotonic clocks go on: waits,
timeouts and intervals are real.
"""

import datetime
import hashlib
import itertools
import os
import secrets
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from types import SimpleNamespace
from typing import Any, Final

import msgspec.toml

NOW: Final = float(os.environ.get("GOLDEN_NOW", "1795089600"))

_real: Final = datetime.datetime
_real_date: Final = datetime.date
_strftime, _localtime, _gmtime = time.strftime, time.localtime, time.gmtime
_numbers: Final = itertools.count(1)
_COMMAND: Final = " ".join(sys.orig_argv[1:]).encode()
"""What the process was started for, so that two commands in a row do not make the same token."""


class _Kind(type):
    """Lets every real datetime be an instance of the pinned class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _real)


class _Pinned(_real, metaclass=_Kind):  # type: ignore[valid-type, misc]  # the class of before, by its own name
    """Makes real datetimes; only what asks for the present is told another one."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _real(*args, **kwargs)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return _real.fromtimestamp(NOW, tz)

    @classmethod
    def utcnow(cls) -> Any:
        return _real.fromtimestamp(NOW, datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return _real.fromtimestamp(NOW)


def _bytes(nbytes: int | None = None) -> bytes:
    size = 32 if nbytes is None else nbytes
    stream = b""
    while len(stream) < size:
        stream += hashlib.sha256(b"%d %s" % (next(_numbers), _COMMAND)).digest()
    return stream[:size]


def _pin() -> None:
    time.time = lambda: NOW
    time.time_ns = lambda: int(NOW) * 1_000_000_000
    time.localtime = lambda seconds=None: _localtime(NOW if seconds is None else seconds)
    time.gmtime = lambda seconds=None: _gmtime(NOW if seconds is None else seconds)
    time.strftime = lambda form, moment=None: _strftime(form, _localtime(NOW) if moment is None else moment)
    # msgspec checks for the real classes, which it looks up whenever it decodes TOML.
    vars(msgspec.toml)["_datetime"] = SimpleNamespace(datetime=_real, date=_real_date, time=datetime.time)
    datetime.datetime = _Pinned  # type: ignore[misc]
    # Always the same one, and not one after the other: then it does not matter who asks first.
    uuid.uuid4 = lambda: uuid.UUID(int=0x601D, version=4)
    secrets.token_bytes = _bytes
    secrets.token_hex = lambda nbytes=None: _bytes(nbytes).hex()
    secrets.token_urlsafe = lambda nbytes=None: urlsafe_b64encode(_bytes(nbytes)).rstrip(b"=").decode()


if "GOLDEN_NOW" in os.environ:
    _pin()
if "GOLDEN_ONE_CORE" in os.environ:  # where there are two, helper processes share a backfill in any order
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
