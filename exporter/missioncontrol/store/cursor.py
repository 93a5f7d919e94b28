"""Cursors: where a list continues, as a text that is good for an address and means nothing to anybody else."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from exporter.missioncontrol.store.session_row import BadCursorError


def encode_cursor(*values: object) -> str:
    """Return the cursor of a place that these values name."""
    return urlsafe_b64encode(msgspec.json.encode(values)).decode()


def decode_cursor(cursor: str, type: Any) -> Any:
    """Return the values of a cursor as this type of tuple; raise `BadCursorError` when it is none of its kind."""
    try:
        return msgspec.json.decode(urlsafe_b64decode(cursor.encode()), type=type)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadCursorError(cursor) from error
