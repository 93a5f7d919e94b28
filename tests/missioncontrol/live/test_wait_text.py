"""What a session waits for is said in words, wherever it is shown."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.missioncontrol.live.waiting import ASKING, words

Make = Callable[..., bytes]
NOW = "2026-11-18T10:00:00.000Z"


def permission(**request: Any) -> tuple[str, dict[str, Any]]:
    return "permission.requested", {"requestId": "r", "permissionRequest": request}


CASES = [
    (
        permission(kind="shell", fullCommandText="rm -r  build", intention="Clean up", warning="It deletes"),
        "Run rm -r build · Clean up · It deletes",
    ),
    (
        permission(kind="shell", fullCommandText="ls", requestSandboxBypass=True),
        "Run ls · outside of the sandbox",
    ),
    (permission(kind="write", fileName="/x/a.py", diff="+secret", intention="Add it"), "Write /x/a.py · Add it"),
    (permission(kind="read", path="/etc/hosts", intention="Look"), "Read /etc/hosts · Look"),
    (permission(kind="url", url="https://example.com/"), "Fetch https://example.com/"),
    (permission(kind="mcp", serverName="files", toolName="list", toolTitle="List"), "Use the tool List of files"),
    (
        permission(kind="memory", fact="Tabs are two wide", reason="Said twice"),
        "Remember Tabs are two wide · Said twice",
    ),
    (permission(kind="custom-tool", toolName="deploy", toolDescription="d"), "Use the tool deploy"),
    (permission(kind="hook", toolName="bash", hookMessage="Are you sure?"), "Use the tool bash · Are you sure?"),
    (permission(kind="extension-management", operation="reload", extensionName="e"), "Reload the extension e"),
    (permission(kind="workflow", operation="run", name="nightly", description="d"), "Run the workflow nightly"),
    (permission(kind="telepathy", path="/p"), "telepathy: /p"),
    (permission(kind="shell"), "shell"),
    (("permission.requested", {"promptRequest": {"kind": "read", "path": "/p"}}), "Read /p"),
    (("permission.requested", {}), ""),
    (("user_input.requested", {"question": "Which?", "choices": ["one", 2, "two"]}), "Which? · one / two"),
    (("user_input.requested", {"question": "Why?"}), "Why?"),
    (
        ("elicitation.requested", {"message": "Who?", "requestedSchema": {"properties": {"name": {}, "age": {}}}}),
        "Who? · name / age",
    ),
    (("elicitation.requested", {"message": "Sign in", "url": "https://e.com"}), "Sign in · https://e.com"),
    (("exit_plan_mode.requested", {"summary": "Do it", "actions": ["go", "stay"]}), "Do it · go / stay"),
    (("exit_plan_mode.requested", {"planContent": "# Plan\nFirst"}), "# Plan First"),
]


@pytest.mark.parametrize(("asked", "said"), CASES, ids=[said or "nothing" for _, said in CASES])
def test_what_is_asked_is_said(asked: tuple[str, dict[str, Any]], said: str) -> None:
    assert words(*asked) == said


NAMES = ("kind", "permissionRequest", "promptRequest", "fullCommandText", "path", "question", "choices", "message")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["shell", "mcp", "workflow"]),
    lambda deeper: (
        st.lists(deeper, max_size=3)
        | st.dictionaries(st.sampled_from([*NAMES, "requestedSchema", "properties", "actions"]), deeper, max_size=4)
    ),
    max_leaves=8,
)


@given(st.sampled_from(ASKING), st.dictionaries(st.sampled_from(NAMES), ANYTHING))
def test_data_of_any_shape_is_said_somehow(name: str, data: dict[str, Any]) -> None:
    assert isinstance(words(f"{name}.requested", data), str)


def test_what_is_said_is_never_long() -> None:
    data = {"question": "y" * 10**6, "choices": ["z" * 10**6] * 100}

    assert len(words("user_input.requested", data)) < 10_000


@pytest.mark.anyio
async def test_the_feed_the_api_and_the_page_say_it(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    events = [
        make_event(f"e{number}", asked[0], data={**asked[1], "requestId": f"r{number}"})
        for number, (asked, _) in enumerate(CASES)
    ]
    await client.post("/agents/sessions/s/events", content=make_body(*events))
    await client.post(
        "/agents/sessions/s/events",
        content=make_body(make_event("done", "permission.completed", data={"requestId": "r0"})),
    )

    answer = (await client.get("/api/v1/notifications?type=wait")).json()
    page = (await client.get("/feed?type=permission&status=answered")).text
    timeline = (await client.get("/sessions/s")).text

    assert [entry["text"] for entry in answer["notifications"]][::-1] == [said for _, said in CASES]
    assert {"category": "wait", "type": "permission", "status": "answered", "count": 1} in answer["counts"]
    assert "Run rm -r build · Clean up" in page
    assert "Write /x/a.py" not in page
    assert "Use the tool List of files" in timeline
