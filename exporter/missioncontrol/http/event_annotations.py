"""Annotations of an event: its agents, and whether the model, the screen and the store have it."""

from collections.abc import Callable
from typing import Any, Final

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.projection import Projected, ProjectEvent
from exporter.missioncontrol.ingest.agent_attribution import AgentTree

MODEL, SCREEN = "model", "screen"
VISIBLE: Final = (MODEL, SCREEN)
"""Values of the parameter `visible`: events that the model is given, or that a person is shown."""


def about(body: bytes, agent: str | None, family: AgentTree, project: ProjectEvent | None) -> dict[str, Any]:
    """Return the agents from the outermost to the event's own, and where the event is visible if that is known."""
    annotations: dict[str, Any] = {"agent_path": family.path(agent)}
    meant = _project(body, project)
    if meant is not None:
        annotations |= {
            "model_visible": meant.model_visible,
            "ui_visible": meant.ui_visible,
            "durable": meant.durable,
        }
    return annotations


def sees(visible: str, project: ProjectEvent) -> Callable[[bytes], bool]:
    """Return a test of whether the model, or a person, sees an event."""

    def test(body: bytes) -> bool:
        meant = _project(body, project)
        return meant is not None and (meant.model_visible if visible == MODEL else meant.ui_visible)

    return test


def _project(body: bytes, project: ProjectEvent | None) -> Projected | None:
    envelope = decode(body) if project is not None else None
    if project is None or not isinstance(envelope, Envelope):
        return None
    return project(envelope.type, bytes(envelope.data), envelope.ephemeral)
