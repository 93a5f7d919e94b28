"""What each scope of a token permits, by method and path, whatever the session."""

import re
from typing import Final

from starlette.requests import Request

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.store.tokens import OWNER, Holder, Scope

HOLDER: Final = "token_holder"
"""The key in the scope's state for the `Holder` of the token or cookie that was presented; absent without one."""

_UPLOADS: Final = "/agents/"
_TENANTS: Final = re.compile(r"/api/v1/tenants(/.*)?")
_AUDIT: Final = re.compile(r"/audit|/api/v1/audit|/fleet|/api/v1/fleet")
_FIGURES: Final = re.compile(
    r"/|/audit|/fleet|/metrics|/readyz|/style\.css|/script\.js|/icon\.svg"
    r"|/api/v1/(?:sessions(?:/[^/]+)?|redactions|audit|fleet)"
)
_OF_OPERATORS: Final = re.compile(r"/metrics|/readyz|/fleet|/api/v1/fleet|/style\.css|/script\.js|/icon\.svg")
_PAGES: Final = {
    "/": "Sessions",
    "/feed": "Feed",
    "/health": "Redaction & health",
    "/fleet": "Fleet",
    "/shares": "Share links",
    "/audit": "Audit log",
}
_REFUSALS: Final[dict[Scope, tuple[str, str, str]]] = {
    "upload": ("upload_only", "This token is for uploading.", "Use one that may read."),
    "read": ("read_only", "This token is for reading.", "Use one that may do more."),
    "auditor": ("figures_only", "This token shows figures, and no content.", "Use one that may read."),
    "operator": ("operators_only", "This token manages tenants, and shows nothing of them.", "Use one of the tenant."),
    "all": ("operators_only", "Tenants are managed by an operator.", "Make a token with --scope operator."),
}


def forbidden(holder: Holder, method: str, path: str, door: str) -> ApiError | None:
    """Return why a token does not permit a request; None when it does. Everybody may ask at the door."""
    if _permits(holder.scope, method in ("GET", "HEAD"), path, door):
        return None
    kind, message, hint = _REFUSALS["all" if _TENANTS.fullmatch(path) else holder.scope]
    return ApiError(403, kind, message, hint=hint)


def holder_of(request: Request) -> Holder:
    """Return who asks: the holder of the token or cookie that was presented, the owner without one."""
    holder: Holder = getattr(request.state, HOLDER, OWNER)
    return holder


def pages_of(holder: Holder) -> list[tuple[str, str]]:
    """Return path and name of the pages that somebody may open."""
    return [(path, name) for path, name in _PAGES.items() if _permits(holder.scope, True, path, "")]


def _permits(scope: Scope, reads: bool, path: str, door: str) -> bool:
    if scope == "upload":
        return path.startswith(_UPLOADS)
    if path == door:
        return True
    if scope == "operator":
        return _TENANTS.fullmatch(path) is not None or (reads and _OF_OPERATORS.fullmatch(path) is not None)
    if scope == "auditor":
        return reads and _FIGURES.fullmatch(path) is not None
    if _TENANTS.fullmatch(path):
        return False
    return scope == "all" or (reads and not _AUDIT.fullmatch(path))
