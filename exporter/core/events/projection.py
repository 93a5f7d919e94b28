"""What an event means to the model, the screen and the store.

The table is in the top-level package `otel`; `wiring` passes it to the modules that show events.
"""

from typing import NamedTuple, Protocol


class Projected(NamedTuple):
    """What one event means; `is_known` is false for a type that the table does not have."""

    model_visible: bool
    ui_visible: bool
    durable: bool
    is_known: bool = True


class ProjectEvent(Protocol):
    """Says what an event is by its type, its data as they were delivered, and its envelope's flag. Never raises."""

    def __call__(self, event_type: str, data: bytes, ephemeral: bool, /) -> Projected: ...
