"""What libraries log, as lines of our own log."""

import logging
from typing import Final

from exporter.cli.output.output import Output
from exporter.core.notice import NoticeName

_LEVELS: Final = {"CRITICAL": "error", "ERROR": "error", "WARNING": "warning"}


class LibraryLog(logging.Handler):
    """Writes the constant text of what a library says, without its values, which may hold content."""

    def __init__(self, out: Output) -> None:
        super().__init__(logging.WARNING)
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        facts = {"logger": record.name}
        if record.exc_info and record.exc_info[0] is not None:
            facts["error"] = record.exc_info[0].__name__
        is_constant = isinstance(record.msg, str) and record.name != "asyncio"  # that one builds a text of its context
        text = record.msg if is_constant else "an error that nobody awaited"
        self._out.log(NoticeName.LIBRARY, _LEVELS.get(record.levelname, "warning"), text, facts)
