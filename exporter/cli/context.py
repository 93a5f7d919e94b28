"""What a command gets: its arguments, where to write, the settings, and a way to ask the exporter."""

import asyncio
import os
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporter.cli.output.output import Output
from exporter.cli.output.progress import ProgressBar

if TYPE_CHECKING:
    from config.load import Loaded


@dataclass(frozen=True, slots=True)
class CommandContext:
    """One run of one command."""

    args: Namespace
    out: Output

    def load(self, *, fallbacks: bool = True, file: Path | None = None) -> "Loaded":
        """The settings in force; raises ConfigError that names the place, the key and what was expected."""
        from config.load import load

        given = Path(self.args.config) if self.args.config else None
        flags = {"state_dir": self.args.state_dir, "copilot_home": self.args.copilot_home}
        return load(file=file or given, environ=os.environ, flags=flags, fallbacks=fallbacks)

    def ask(self, request: dict[str, object]) -> dict[str, Any]:
        """The answer of the daemon if one runs, else of this process; progress is shown meanwhile."""
        settings = self.load().settings
        from exporter import app

        with ProgressBar(self.out) as progress:
            return asyncio.run(app.ask(settings, request, progress.update))
