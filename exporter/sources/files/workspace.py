"""Reads a session's workspace.yaml: facts about the session that are not in its events.

The CLI may replace the file at any time, so facts that cannot be read are just missing.
"""

import os
import re
import stat
from dataclasses import dataclass
from typing import Final

from exporter.sources.files.session_file import open_inside

SIZE_BYTES_MAX: Final = 1024 * 1024

# A line that every YAML reader reads the same way: a key and a plain scalar without a comment. Files that consist of
# such lines (all files seen so far) are read without the YAML library, which takes twenty times as long.
PLAIN_LINE: Final = re.compile(r"([a-z_]+): ([A-Za-z0-9/](?:[^\s#:]|:(?=\S)|(?<=\S)#| (?=\S))*)")
NULLS: Final = frozenset({"null", "Null", "NULL"})
_KEYS: Final = ("name", "cwd", "git_root", "repository", "branch", "mc_task_id", "mc_session_id", "mc_last_event_id")


@dataclass(frozen=True, slots=True)
class Workspace:
    """The facts of one workspace.yaml as written, None where absent, in the order of `_KEYS`. Not redacted."""

    title: str | None
    cwd: str | None
    git_root: str | None
    repository: str | None
    branch: str | None
    mc_task_id: str | None
    mc_session_id: str | None
    mc_last_event_id: str | None


def read_workspace(path: str) -> Workspace | None:
    """Read a workspace.yaml; None if there is none, it has no YAML keys or is over 1 MiB. Never raises or blocks."""
    text = read_small(path)
    if text is None:
        return None
    facts = plain_facts(text)
    if facts is None:
        facts = yaml_facts(text)
    return None if facts is None else Workspace(*map(facts.get, _KEYS))


def read_small(path: str) -> str | None:
    """Return the text of a regular file within the limit, None for anything else; a pipe does not block."""
    try:
        with open(path, "rb", opener=open_inside) as file:
            status = os.fstat(file.fileno())
            is_small = stat.S_ISREG(status.st_mode) and status.st_size <= SIZE_BYTES_MAX
            return file.read(SIZE_BYTES_MAX).decode("utf-8-sig") if is_small else None
    except (OSError, ValueError):  # ValueError: a null byte in the path, or no UTF-8
        return None


def plain_facts(text: str) -> dict[str, str] | None:
    """Return the keys and scalars of a file that consists of plain lines; None for any other file."""
    facts: dict[str, str] = {}
    for line in text.removesuffix("\n").split("\n"):
        match = PLAIN_LINE.fullmatch(line)
        if match is None or not line.isprintable():
            return None
        facts[match[1]] = match[2]
    return {key: value for key, value in facts.items() if value not in NULLS}


def yaml_facts(text: str) -> dict[str, str] | None:
    """Return the keys and scalars at the top of a YAML document, as text; None if it is not a mapping.

    Scalars stay as written: a title of `2026-11-18` or `1e3` is a title. No objects are constructed, so aliases cannot
    multiply. The library's C parser is not used because deep nesting crashes it.
    """
    import yaml  # imported here because hardly any file needs it

    try:
        document = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        return None
    if not isinstance(document, yaml.MappingNode):
        return None
    return {
        key.value: value.value
        for key, value in document.value
        if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.ScalarNode) and not value.tag.endswith(":null")
    }
