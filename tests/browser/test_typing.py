"""With a tap in the CLI the page shows text while it is written, masked; then the words of the file stand there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.cli import SESSION, Cli
from tests.browser.conftest import Watched
from tests.browser.program import environment, running

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.real
SECRET = "ghp_Vb3xKq9TzR2mWc7LnD5sYh8JpF4gA6uE1tQo"


@pytest.mark.timeout(120)
def test_text_and_output_appear_while_they_are_written(tmp_path: Path, context: BrowserContext) -> None:
    cli = Cli(tmp_path)
    cli.write("session.start", selectedModel="m", context={"cwd": "/srv"})
    cli.write("user.message", content="Which token do we use?")
    with running({**environment(tmp_path), "EXPORTER_SOURCE": '[{"url": "tap"}]'}, "up", "--no-open") as address:
        watched = Watched(context.new_page(), address.rstrip("/")).watch()
        page = watched.open(f"/sessions/{SESSION}")
        page.locator(".entry.user", has_text="Which token").wait_for()
        page.locator(".live.on").wait_for()

        cli.show("assistant.message_start", messageId="m1")
        cli.show("assistant.reasoning_delta", reasoningId="r1", deltaContent="It is in the settings.\n")
        cli.show("assistant.reasoning_delta", reasoningId="r1", deltaContent="I look there.\n")
        expect(page.locator(".entry.typing.thinking")).to_contain_text("I look there.")
        for words in ("The token ", "that we use ", f"is {SECRET} ", "and nothing else.\n"):
            cli.show("assistant.message_delta", messageId="m1", deltaContent=words)
        typing = page.locator(".entry.typing")
        expect(typing).to_have_count(1)
        expect(typing).to_contain_text("The token that we use is [REDACTED:")
        expect(typing).to_have_attribute("aria-busy", "true")
        assert SECRET not in page.content()

        cli.write("assistant.message", messageId="m1", content=f"The token that we use is {SECRET} and nothing else.")
        page.locator(".entry.assistant:not(.typing)", has_text="and nothing else.").wait_for()
        expect(typing).to_have_count(0)
        cli.write("tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "make all"})
        page.locator(".entry.tool.running", has_text="make all").locator("summary").click()
        cli.show("tool.execution_progress", toolCallId="c1", progressMessage="step 1 of 2")
        expect(page.locator(".entry.tool.running .progress")).to_have_text("step 1 of 2")
        cli.show("tool.shell_output", toolCallId="c1", stream="stdout", text="compiling\n", sequence=0)
        expect(page.locator(".entry.tool.running pre.stream")).to_have_text("compiling\n")
        for output in ("compiling\n", "compiling\nlinking\n"):
            cli.show("tool.execution_partial_result", toolCallId="c1", partialOutput=output)
        expect(page.locator(".entry.tool.running pre.stream")).to_have_text("compiling\nlinking\n")
        cli.write("tool.execution_complete", toolCallId="c1", success=True, result={"content": "built"})
        expect(page.locator(".entry.tool:not(.running) pre.result")).to_contain_text("built")
        expect(page.locator("pre.stream")).to_have_count(0)
        assert SECRET not in page.content()

        cli.show("assistant.message_start", messageId="m2")
        cli.show("assistant.message_delta", messageId="m2", deltaContent="This is never ")
        expect(typing).to_contain_text("This is")
        cli.write("abort", reason="user")
        expect(typing).to_have_count(0)
        cli.close()
    assert watched.complaints == []
