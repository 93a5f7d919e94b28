"""A report to send along with a question: checks, settings and status as JSON, no event content and no secret."""

import json
import os
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exporter.doctor.check import Check
from exporter.doctor.facts import Facts


def write_bundle(path: Path, facts: Facts, checks: Sequence[Check]) -> None:
    """Write the report, for this user only; raises `OSError`, also when the file is there already."""
    parts: dict[str, Any] = {"checks.json": [asdict(check) for check in checks]}
    if facts.rows:
        parts["settings.json"] = [
            {"setting": setting, "value": value, "origin": origin} for setting, value, origin in facts.rows
        ]
    if facts.status is not None:
        parts["status.json"] = facts.status
    clean = _cleaner(facts)
    texts = {name: json.dumps(_each(part, clean), indent=2, ensure_ascii=False) for name, part in parts.items()}
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        try:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in texts.items():
                    archive.writestr(name, text + "\n")
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _cleaner(facts: Facts) -> Callable[[str], str]:
    """Return what masks secrets in a text and shortens the person's home directory to `~`."""
    homes = {str(home) for home in (facts.home, facts.home and facts.home.resolve()) if home and home != Path("/")}
    if not homes:
        return facts.mask
    anywhere = re.compile("|".join(rf"{re.escape(home)}(?![\w.-])" for home in sorted(homes, key=len, reverse=True)))
    return lambda text: anywhere.sub("~", facts.mask(text))


def _each(value: Any, clean: Callable[[str], str]) -> Any:
    """Return the value with every text in it cleaned, names of members included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): _each(member, clean) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_each(member, clean) for member in value]
    return value if isinstance(value, int | float | None) else clean(str(value))
