"""Made-up event lines, and what strict JSON is, for the tests of the core."""

import json


def event(
    identity: str,
    *,
    parent: str | None = None,
    kind: str = "user.message",
    data: str = "{}",
    ephemeral: bool = False,
) -> bytes:
    """One event line as the CLI writes it, without its newline."""
    flag = ',"ephemeral":true' if ephemeral else ""
    parent_json = json.dumps(parent)
    return (
        f'{{"type":"{kind}","data":{data},"id":"{identity}","timestamp":"2026-11-18T10:00:00.000Z",'
        f'"parentId":{parent_json}{flag}}}'
    ).encode()


def _refuse_constant(text: str) -> object:
    raise ValueError(text)


def strict_json(text: bytes) -> object:
    """What a strict reader makes of it: no NaN, no Infinity, no byte order mark; raises ValueError."""
    if text.startswith(b"\xef\xbb\xbf"):
        raise ValueError("byte order mark")
    # Numbers stay text: a strict reader has no opinion on how large one may be.
    return json.loads(text.decode(), parse_constant=_refuse_constant, parse_int=str, parse_float=str)


def is_strict_json(text: bytes) -> bool:
    try:
        strict_json(text)
    except (ValueError, RecursionError):
        return False
    return True
