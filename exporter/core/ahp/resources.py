"""Content that a host holds beside its state: read only if the state refers to it, and only so much of it."""

from typing import Any, Final

from exporter.core.ahp.drafts import id_of
from exporter.core.ahp.values import Json, mapping, number, objects, text

BYTES_MAX: Final = 256 << 10
REFERENCES_MAX: Final = 256


class Resources:
    """The references found in a session's state, each to be read once."""

    def __init__(self) -> None:
        self._found: dict[str, Json] = {}

    def find(self, turns: list[Json]) -> list[str]:
        """Return the references in the answers of turns that are new and not too large."""
        new = []
        for turn in turns:
            for part in objects(turn, "responseParts"):
                refers = [part] if part.get("kind") == "contentRef" else []
                refers += [
                    each for each in objects(mapping(part, "toolCall"), "content") if each.get("type") == "resource"
                ]
                new += [text(each, "uri") for each in refers if self._is_new(each)]
        return new

    def _is_new(self, reference: Json) -> bool:
        uri = text(reference, "uri")
        # A file is no content of the host's, and whatever names one could name any.
        if not uri or uri in self._found or uri.lower().startswith("file:") or len(self._found) >= REFERENCES_MAX:
            return False
        if (number(reference, "sizeHint") or 0) > BYTES_MAX:
            return False
        self._found[uri] = {"contentType": text(reference, "contentType")}
        return True

    def is_found(self, uri: str) -> bool:
        """Tell whether a state referred to it: nothing else may be read, whatever a host would give."""
        return uri in self._found

    def read(self, uri: str, result: Any) -> tuple[str, Json]:
        """Return the id and the data of the event that holds what was read."""
        given = result if isinstance(result, dict) else {}
        content = text(given, "data")
        data: Json = {
            "uri": uri,
            "contentType": text(given, "contentType") or text(self._found.get(uri), "contentType"),
            "encoding": text(given, "encoding"),
            "isTruncated": len(content) > BYTES_MAX,
            "data": content if len(content) <= BYTES_MAX else "",
        }
        return self.id_of(uri), data

    def id_of(self, uri: str) -> str:
        """Return the id of the event about a reference."""
        return id_of("resource", uri)


def turns_in(action: Json) -> list[Json]:
    """Return what an action holds that may refer to something, as turns."""
    kind = text(action, "type")
    if kind == "chat/turnsLoaded":
        return objects(action, "turns")
    if kind == "chat/responsePart":
        return [{"responseParts": [mapping(action, "part")]}]
    if kind in ("chat/toolCallContentChanged", "chat/toolCallComplete"):
        call = {**(mapping(action, "result") or action), "toolCallId": action.get("toolCallId")}
        return [{"responseParts": [{"kind": "toolCall", "toolCall": call}]}]
    return []
