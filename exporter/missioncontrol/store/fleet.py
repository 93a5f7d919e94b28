"""The exporters of a tenant as a fleet: who runs what, what is behind or fails, and whose settings differ."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from exporter.missioncontrol.store.amounts import amount
from exporter.missioncontrol.store.port import Database

SILENT_SECONDS, BEHIND_SECONDS = 120, 300
_GONE: Final = timedelta(days=30)
_EXPORTERS_MAX: Final = 20_000
_HASH: Final = re.compile(r"[0-9a-f]{16}")
_KEYS_MAX: Final = 1000
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
ALERTS: Final = {
    "silent": f"no report for {SILENT_SECONDS // 60} minutes",
    "failing": "a sink reports an error",
    "behind": f"events wait for {BEHIND_SECONDS // 60} minutes or longer",
    "copied": "several installations report under its id",
    "quarantined": "events are held back on its machine",
    "outdated": "another exporter has a newer version",
    "settings": "settings differ from those of most exporters",
}
"""What is said of an exporter, the most urgent first."""


def known_settings(report: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of an exporter's settings: its `hash` and `keys`; nothing for a report of before."""
    kept = report.get("settings")
    return kept if isinstance(kept, dict) and _is_hash(kept.get("hash")) and isinstance(kept.get("keys"), dict) else {}


def settings_told(report: dict[str, Any], known: dict[str, Any]) -> dict[str, Any] | None:
    """Return what to keep of the settings that an exporter tells; it need not repeat what is known of the same hash."""
    told = report.get("settings")
    if not isinstance(told, dict) or not _is_hash(told.get("hash")):
        return None
    keys = told.get("keys")
    if isinstance(keys, dict) and len(keys) <= _KEYS_MAX and all(map(_is_hash, keys.values())):
        return {"hash": told["hash"], "keys": keys}
    before = known_settings(known)
    return before if before.get("hash") == told["hash"] else None


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


def fleet(database: Database, now: str) -> list[dict[str, Any]]:
    """Return every exporter that was heard of within 30 days, those with the most urgent alerts first."""
    at = datetime.fromisoformat(now)
    since, lately = (
        (at - ago).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for ago in (_GONE, timedelta(seconds=SILENT_SECONDS))
    )
    rows = database.execute(
        "SELECT id, report, reported_at FROM exporters WHERE reported_at >= ? ORDER BY reported_at DESC, id LIMIT ?",
        (since, _EXPORTERS_MAX),
    )
    found, settings = [], dict[str, dict[str, str]]()
    for id, text, reported_at in rows:
        report = msgspec.json.decode(text)
        told = known_settings(report)
        if told:
            settings[told["hash"]] = told["keys"]
        found.append(_row(id, report, reported_at, told.get("hash")))
    newest = max((_version(one["version"]) for one in found), default=())
    differing = _differing(settings, Counter(one["settings"] for one in found if one["settings"]))
    for one in found:
        one["differs"] = differing.get(one["settings"], [])
        one["alerts"] = [name for name in ALERTS if _holds(name, one, lately, newest)]
    return sorted(found, key=_urgency)


def counted(exporters: Iterable[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how many exporters have each version, and how many each alert."""
    exporters = list(exporters)
    versions = Counter(str(one["version"] or "unknown") for one in exporters)
    alerts = Counter(alert for one in exporters for alert in one["alerts"])
    return {
        "versions": dict(sorted(versions.items(), key=lambda one: (_version(one[0]), one[0]), reverse=True)),
        "alerts": {name: alerts[name] for name in ALERTS if alerts[name]},
    }


def _row(id: str, report: dict[str, Any], reported_at: str, settings: str | None) -> dict[str, Any]:
    sinks = report.get("sinks")
    told = [sink for sink in sinks if isinstance(sink, dict)] if isinstance(sinks, list) else []
    errors = [f"{sink.get('name') or ''}: {sink['last_error']}" for sink in told if sink.get("last_error")]
    return {
        "id": id,
        "host": report.get("host"),
        "version": report.get("version"),
        "last_seen": reported_at,
        "lag_seconds": max((amount(sink.get("lag_seconds")) or 0 for sink in told), default=0),
        "lag_events": max((amount(sink.get("lag_events")) or 0 for sink in told), default=0),
        "errors": len(errors),
        "error": "; ".join(errors) or None,
        "quarantined": amount(report.get("quarantined")) or 0,
        "copies": amount(report.get("copies")) or 0,
        "settings": settings,
    }


def _holds(alert: str, one: dict[str, Any], lately: str, newest: tuple[int, ...]) -> bool:
    if alert == "silent":
        return str(one["last_seen"]) < lately
    holds = {
        "failing": one["errors"] > 0,
        "behind": one["lag_seconds"] >= BEHIND_SECONDS,
        "copied": one["copies"] > 0 and one["last_seen"] >= lately,
        "quarantined": one["quarantined"] > 0,
        "outdated": _version(one["version"]) < newest,
        "settings": bool(one["differs"]),
    }
    return bool(holds[alert])


def _urgency(one: dict[str, Any]) -> tuple[int, str]:
    order = list(ALERTS)
    return (order.index(one["alerts"][0]) if one["alerts"] else len(order), str(one["id"]))


def _version(text: object) -> tuple[int, ...]:
    return tuple(map(int, _NUMBER.findall(str(text))[:4])) if isinstance(text, str) else ()


def _differing(settings: dict[str, dict[str, str]], exporters: "Counter[str]") -> dict[str, list[str]]:
    """Return for each hash of all settings the keys whose value is another one than that of most exporters.

    A key that only some exporters have counts among those, so that another version alone is no difference. Of values
    that are equally common one is taken, so that the difference shows at the others.
    """
    values: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for hashed, keys in settings.items():
        for key, value in keys.items():
            values[key][value] += exporters[hashed]
    usual = {key: max(counts, key=lambda value: (counts[value], value)) for key, counts in values.items()}
    return {
        hashed: sorted(key for key, value in keys.items() if value != usual[key]) for hashed, keys in settings.items()
    }
