"""What becomes of a session as a whole, beside its conversations."""

import base64
from typing import Any

from tests.core.ahp.watching import Watching, sessions_of

URI = "ahp-session:/5ec633bc-a325-43af-b5cb-96785ef1971c"
CHAT = f"ahp-chat://default/{base64.b64encode(URI.encode()).decode()}"
ERROR = {"errorType": "no_model", "message": "the model is not there"}
STATES = sessions_of({CHAT: {"turns": []}})


def errors(watching: Watching) -> list[dict[str, Any]]:
    return [event["data"] for event in watching.durable() if event["type"] == "session.error"]


def test_a_session_that_could_not_be_made_says_why_once_as_a_state_and_as_an_action() -> None:
    failed = Watching({**STATES, URI: {**STATES[URI], "lifecycle": "creationFailed", "creationError": ERROR}})
    failed.begin()
    failed.begin_anew()

    told = Watching(STATES)
    told.begin()
    action = {"type": "session/creationFailed", "session": URI, "error": ERROR}
    told.hear({"jsonrpc": "2.0", "method": "action", "params": {"channel": URI, "serverSeq": 1, "action": action}})

    assert errors(failed) == errors(told) == [ERROR]


def test_an_error_without_a_type_is_one_of_the_creation() -> None:
    failed = Watching({**STATES, URI: {**STATES[URI], "lifecycle": "failed", "creationError": {"message": "no"}}})
    failed.begin()

    assert errors(failed) == [{"errorType": "creation", "message": "no"}]
