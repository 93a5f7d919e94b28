"""The address under which a reverse proxy serves the receiver: its host, a path of its own, and who is believed.

Behind a proxy every connection comes from the proxy, so nobody is believed for coming from this machine, and no
forwarding header is read: who comes in has a token, or a cookie that was given for one.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from exporter.errors import UsageError
from exporter.missioncontrol.http.guard import PEER
from exporter.missioncontrol.pages.formats import ROOT

_PATH: Final = re.compile(r"(?:/(?!\.(?:[./]|$))[A-Za-z0-9._~-]+)*")
# What begins an address of ours: a proxy may take the public path off, and then it could not be told from them.
_TAKEN: Final = {
    *("agents", "api", "enter", "feed", "health", "healthz", "metrics", "readyz", "sessions"),
    *("icon.svg", "script.js", "style.css"),
    *("audit", "fleet", "shared", "shares"),
}


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """`https://mc.example.com/mc` in its parts; `root` is `/mc`, or empty."""

    scheme: str
    host: str
    port: int | None
    root: str

    @classmethod
    def of(cls, text: str) -> "PublicUrl":
        """Read an address; raises `UsageError` for one that cannot be served."""
        hint = "write it as people open it, such as https://mc.example.com/mc"
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port, parts = None, None, urlsplit("")
        root = parts.path.rstrip("/")
        if parts.scheme not in ("http", "https") or not host or parts.username is not None:
            raise UsageError(f"--public-url {text} is not the http or https address of a host", hint=hint)
        if parts.query or parts.fragment or not _PATH.fullmatch(root):
            raise UsageError(f"--public-url {text} has more than a host and a plain path", hint=hint)
        if root.split("/")[1:2] and root.split("/")[1] in _TAKEN:
            raise UsageError(f"--public-url {text} begins with a path of Mission Control itself", hint=hint)
        return cls(parts.scheme, host, port, root)

    @property
    def origin(self) -> str:
        """The address without a path, as a browser names the site of a page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if self.port is None else f':{self.port}'}"

    def __str__(self) -> str:
        return f"{self.origin}{self.root}/"


class BehindProxy:
    """Takes requests as the proxy hands them on, with the path of the public address or without it."""

    def __init__(self, app: ASGIApp, public: PublicUrl) -> None:
        self._app = app
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            root, path = self._public.root, scope["path"]
            if root and (path == root or path.startswith(f"{root}/")):
                scope["path"] = path.removeprefix(root) or "/"
            scope["scheme"] = self._public.scheme
            scope.setdefault("state", {})[PEER] = "remote"
            ROOT.set(root)
        await self._app(scope, receive, send)
