"""Reads a session's workspace.yaml: the facts about a session that are not in its events.

The CLI may replace the file at any time, so any defect only makes facts missing.
"""

import os
import re
import stat
from dataclasses import dataclass
from typing import Final

SIZE_BYTES_MAX: Final = 1024 * 1024

# A line that any YAML reader understands in one way: a key and a plain scalar without a comment in it. Files of only
# such lines (all that were ever seen) are read without the YAML library, which needs twenty times as long.
PLAIN_LINE: Final = re.compile(r"([a-z_]+): ([A-Za-z0-9/](?:[^\s#:]|:(?=\S)|(?<=\S)#| (?=\S))*)")
NULLS: Final = frozenset({"null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class Workspace:
    """The facts of one workspace.yaml as written, None where absent. Not redacted."""

    title: str | None
    cwd: str | None
    git_root: str | None
    repository: str | None
    branch: str | None
    mc_task_id: str | None
    mc_session_id: str | None
    mc_last_event_id: str | None


def read_workspace(path: str) -> Workspace | None:
    """None when there is no such file, it holds no YAML keys, or it is longer than 1 MiB; never raises, never waits."""
    content = read_small(path)
    if content is None:
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    facts = plain_facts(text)
    if facts is None:
        facts = yaml_facts(text)
    return None if facts is None else workspace_of(facts)


def workspace_of(facts: dict[str, str]) -> Workspace:
    """The facts under the names that the rest of the program uses."""
    return Workspace(
        title=facts.get("name"),
        cwd=facts.get("cwd"),
        git_root=facts.get("git_root"),
        repository=facts.get("repository"),
        branch=facts.get("branch"),
        mc_task_id=facts.get("mc_task_id"),
        mc_session_id=facts.get("mc_session_id"),
        mc_last_event_id=facts.get("mc_last_event_id"),
    )


def read_small(path: str) -> bytes | None:
    """The content of a regular file within the limit; a pipe in its place does not block."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > SIZE_BYTES_MAX:
            return None
        return os.read(descriptor, SIZE_BYTES_MAX)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def plain_facts(text: str) -> dict[str, str] | None:
    """The keys and scalars of a file that holds nothing but plain lines; None for any other."""
    facts: dict[str, str] = {}
    for line in text.removesuffix("\n").split("\n"):
        match = PLAIN_LINE.fullmatch(line)
        if match is None or not line.isprintable():
            return None
        facts[match[1]] = match[2]
    return {key: value for key, value in facts.items() if value not in NULLS}


def yaml_facts(text: str) -> dict[str, str] | None:
    """The keys and scalars at the top of a YAML document, as text; None when it is no such thing.

    Scalars stay as they were written: a title of `2026-11-18` or `1e3` is a title. Nothing is constructed, so aliases
    cannot multiply. The library's C parser is not used because it dies on deep nesting.
    """
    import yaml  # late: a file that needs it was never seen

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
