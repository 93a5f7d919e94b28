"""What the store refuses, as an answer that says what can be done about it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.store.session_row import DeletedSessionError, ExpiredSessionError, UnknownSessionError


@contextmanager
def translated() -> Iterator[None]:
    """Make an `ApiError` of what the store refuses."""
    try:
        yield
    except UnknownSessionError as error:
        raise ApiError(
            404, "unknown_session", f"There is no session {error}.", hint="Register it with POST /agents/sessions."
        ) from error
    except ExpiredSessionError as error:
        raise ApiError(
            410, "expired_session", f"Session {error} is past its time here.", hint="Only a restore brings it back."
        ) from error
    except DeletedSessionError as error:
        raise ApiError(
            410, "deleted_session", f"Session {error} was deleted here.", hint="Only a restore brings it back."
        ) from error
    except OverflowError as error:
        raise ApiError(
            400, "number_too_large", f"A number in it is too large: {error}.", hint="Numbers have at most 64 bits."
        ) from error
    except sqlite3.Error as error:
        raise ApiError(
            503,
            "store_failed",
            f"The store did not take it: {error}.",
            hint="Nothing was stored; send it again.",
            headers={"Retry-After": "1"},
        ) from error
