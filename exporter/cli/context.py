"""What a command gets: where to write, the settings, and a way to ask the exporter."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporter.cli.output.output import Output
from exporter.cli.output.progress import ProgressBar
from exporter.cli.output.table import TerminalView

if TYPE_CHECKING:
    from config.load import Loaded


@dataclass(frozen=True, slots=True)
class CommandContext:
    """One run of one command. `options` are the global ones that were given with a value, by name."""

    out: Output
    verbose: bool = False
    options: dict[str, str] = field(default_factory=dict)

    def load(self, *, fallbacks: bool = True, file: str | None = None) -> "Loaded":
        """The settings in force; raises ConfigError that names the place, the key and what was expected."""
        from config.load import load

        flags: dict[str, object] = dict(self.options)
        given = flags.pop("config", None)
        chosen = file or given
        return load(file=Path(str(chosen)) if chosen else None, environ=os.environ, flags=flags, fallbacks=fallbacks)

    def ask(self, request: dict[str, object]) -> dict[str, Any]:
        """The answer of the daemon if one runs, else of this process; progress is shown meanwhile."""
        settings = self.load().settings
        import asyncio

        from exporter import app

        with ProgressBar(self.out) as progress:
            return asyncio.run(app.ask(settings, request, progress.update))

    def report(self, answer: dict[str, Any], render: Callable[[TerminalView], str]) -> int:
        """Writes the answer for whoever reads it and returns the exit code that it holds."""
        self.out.result(answer, render)
        return int(answer.get("exit", 0))
