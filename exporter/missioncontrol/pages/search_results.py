"""What full-text search found, as a list of links with the words in their surroundings."""

from typing import Any

from exporter.missioncontrol.pages.markup import address, anchor, counted, escape, marked, moment, session_path


def found_events(results: list[dict[str, Any]], words: str, *, with_session: bool, has_more: bool) -> str:
    """Return the list, the newest first, or a sentence when nothing was found; `has_more` says that it goes on."""
    if not results:
        return _status(f"No event says “{escape(words)}”.")
    items = "".join(_item(result, with_session) for result in results)
    count = f"the newest {len(results)}" if has_more else counted(len(results), "event")
    return f'<section class="found"><h2>In what was said and done <small>{count}</small></h2><ol>{items}</ol></section>'


def nothing_to_look_for(words: str) -> str:
    """Return a sentence for words that no event can be found by; nothing when there are none at all."""
    if not words.strip():
        return ""
    return _status(f"There is nothing to look for in “{escape(words)}”: events are found by letters and digits.")


def _status(said: str) -> str:
    # A section, as the list is one: the page's script tells parts of a page by what they are, and keeps the two apart
    # from other sentences.
    return f'<section class="found" aria-label="Found"><p class="quiet" role="status">{said}</p></section>'


def _item(result: dict[str, Any], with_session: bool) -> str:
    link = f"{address(session_path(result['session']), at=result['event'])}#{anchor(result['event'])}"
    session = f"<span>{escape(str(result['title'] or result['session']))}</span>" if with_session else ""
    return (
        f'<li><a href="{link}">{_snippet(result["snippet"])}</a><span class="quiet">{session}'
        f"<span>{escape(result['type'])}</span>{moment(result['timestamp'])}</span></li>"
    )


def _snippet(snippet: dict[str, Any]) -> str:
    parts: list[str] = []
    text, end = snippet["text"], 0
    for start, stop in snippet["marks"]:
        if start >= end:
            parts += (marked(text[end:start]), f"<em>{escape(text[start:stop])}</em>")
            end = stop
    parts.append(marked(text[end:]))
    before, behind = snippet["cut"]
    return f"{'…' if before else ''}{''.join(parts)}{'…' if behind else ''}"
