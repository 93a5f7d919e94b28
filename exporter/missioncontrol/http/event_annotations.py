"""What there is to say of an event beside itself: whose it is, and what it is to the model, the screen, the store."""

from collections.abc import Callable
from typing import Any, Final

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.projection import Projected, ProjectEvent
from exporter.missioncontrol.ingest.agent_attribution import AgentTree

MODEL, SCREEN = "model", "screen"
VISIBLE: Final = (MODEL, SCREEN)
"""What `visible` may ask for: what the model was given, or what a person is shown."""


def about(body: bytes, agent: str | None, family: AgentTree, project: ProjectEvent | None) -> dict[str, Any]:
    """Return the agents from the outermost to the event's own, and what the event is to whom, where that is known."""
    told: dict[str, Any] = {"agent_path": family.path(agent)}
    meant = _project(body, project)
    if meant is not None:
        told |= {
            "model_visible": meant.model_visible,
            "ui_visible": meant.ui_visible,
            "durable": meant.durable,
        }
    return told


def sees(visible: str, project: ProjectEvent) -> Callable[[bytes], bool]:
    """Return what tells whether the model, or a person, sees an event."""

    def test(body: bytes) -> bool:
        meant = _project(body, project)
        return meant is not None and (meant.model_visible if visible == MODEL else meant.ui_visible)

    return test


def _project(body: bytes, project: ProjectEvent | None) -> Projected | None:
    envelope = decode(body) if project is not None else None
    if project is None or not isinstance(envelope, Envelope):
        return None
    return project(envelope.type, bytes(envelope.data), envelope.ephemeral)
