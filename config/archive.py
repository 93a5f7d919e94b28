"""The settings of an archive."""

from typing import Annotated

from msgspec import Meta

from config.fields import Shown

KIB = 1024
MIB = 1024 * KIB


class Archive(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files that sessions are kept in."""

    url: Annotated[
        str,
        Meta(
            description="Where it is: file:// and the absolute path of a directory, which is made if it is not there.",
            examples=["file:///var/backups/copilot-sessions"],
            extra={"file_url": True},
        ),
    ]
    seal_bytes: Annotated[
        int,
        Meta(
            description="Events of a session are written as soon as there are so many bytes of them.",
            ge=64 * KIB,
            le=64 * MIB,
        ),
    ] = 8 * MIB
    seal_seconds: Annotated[
        float,
        Meta(description="Fewer are written when the session ended, or had none for so long.", ge=0.1, le=86_400),
    ] = 60.0
