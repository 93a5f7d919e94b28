"""The functions of a redactor, joined; it imports nothing that a command which only redacts does not need."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from exporter.core.events.redaction import RedactEvent

if TYPE_CHECKING:
    from exporter.core.events.live_text import TextStream
    from exporter.core.events.tool_calls import Commands
    from exporter.pipeline.redaction_helper import RedactionHelper


@dataclass(frozen=True, slots=True)
class Redactors:
    """The functions of the redactor: for events, for single texts, and for texts that come in pieces.

    It is for one thread, unless no `make_another` is given. Without `stream`, no text is shown while it is written.
    `commands` print secrets; any thread may ask. `helper` redacts beside this process; `start_helper` starts one.
    """

    event: RedactEvent
    text: Callable[[str], str]
    make_another: "Callable[[], Redactors] | None" = None
    stream: "Callable[[str], TextStream] | None" = None
    commands: "Commands | None" = None
    helper: "RedactionHelper | None" = None
    start_helper: "Callable[[], RedactionHelper | None] | None" = None

    def helped(self) -> "Redactors":
        """Return the same with a helper, where there can be one. Call it before there are threads or open databases."""
        helper = self.start_helper() if self.start_helper is not None else None
        return self if helper is None else replace(self, helper=helper)

    def close(self) -> None:
        """End the helper, if there is one."""
        if self.helper is not None:
            self.helper.close()

    def another(self) -> "Redactors":
        """Return the same for another thread; its rules are not compiled again."""
        return self.make_another() if self.make_another is not None else self
