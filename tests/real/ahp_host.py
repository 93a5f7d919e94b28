"""Real agent hosts: VS Code's, from the npm package `code-server`, in the cage, with a stand-in for GitHub.

`install` puts them beside the CLI, in the same cache; the SQLite add-on that they need is built once. A host that
cannot be installed here (no npm, no compiler, a registry without the package) raises `InstallError`, which says why.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tests.real.cage import Cage, kill, stop
from tests.real.cli import INHERITED, wait_until
from tests.real.install import (
    NODE,
    NPM_OPTIONS,
    InstallError,
    _install_node,
    _node_binary,
    directory,
    locked,
    part,
)
from tests.real.model import _Handler, serve

CLASSIC = "4.117.0"
CHAT = "4.139.1"
ADDON = "vscode-sqlite3.node"
BUILD_SECONDS_MAX = 600


def host(version: str) -> tuple[Path, Path]:
    """Where Node and the `lib/vscode` of a host are, installed first if they are missing."""
    root = directory()
    root.mkdir(parents=True, exist_ok=True)
    with locked(root):
        node = part(root / f"node-{NODE}", _node_binary, _install_node)
        return node, part(root / f"code-server-{version}", _vscode, lambda place: _install_host(place, version, node))


def _vscode(place: Path) -> Path | None:
    vscode = place / "package/lib/vscode"
    return vscode if (place / ".complete").exists() else None


def _install_host(place: Path, version: str, node: Path) -> None:
    _run(place, "npm", "pack", f"code-server@{version}", *NPM_OPTIONS)
    (archive,) = place.glob("*.tgz")
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    archive.unlink()
    vscode = place / "package/lib/vscode"
    # No scripts: no other native part is needed. That `spdlog` is missing is noise in the host's log.
    _run(vscode, "npm", "install", "--omit=dev", "--ignore-scripts", *NPM_OPTIONS, node=node)
    release = vscode / "node_modules/@vscode/sqlite3/build/Release"
    release.mkdir(parents=True, exist_ok=True)
    built = place.parent / ADDON  # N-API: one file serves both versions
    if not built.exists():
        _build(release.parent.parent, node)
        shutil.copy(release / ADDON, built)
    else:
        shutil.copy(built, release / ADDON)
    (place / ".complete").touch()


def _build(sqlite: Path, node: Path) -> None:
    headers = node.parent.parent  # of the platform package, which has them beside the binary
    modules = subprocess.run(["npm", "root", "-g"], capture_output=True, text=True, check=True).stdout.strip()
    script = Path(modules) / "npm/node_modules/node-gyp/bin/node-gyp.js"
    gyp = [str(node), str(script)] if script.exists() else ["npx", "--yes", "node-gyp"]
    _run(sqlite, *gyp, "rebuild", f"--nodedir={headers}")


def _run(place: Path, *command: str, node: Path | None = None) -> None:
    if shutil.which(command[0]) is None:
        raise InstallError(f"{command[0]} is not here: install it (Debian, Ubuntu: apt-get install npm)")
    environment = dict(os.environ)
    if node is not None:
        environment["PATH"] = f"{node.parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        command,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        raise InstallError(f"{' '.join(command[:3])} failed ({done.returncode}):\n{done.stdout[-2000:]}")


TOKEN = "token-of-the-host"
_USER = {"login": "nobody", "copilot_plan": "individual_pro", "access_type_sku": "made_up", "chat_enabled": True}
_QUOTA = {kind: {"unlimited": True} for kind in ("chat", "completions", "premium_interactions")}
_LIMITS = {"max_context_window_tokens": 128_000, "max_output_tokens": 16_000, "max_prompt_tokens": 112_000}
_SUPPORTS = {"tool_calls": True, "parallel_tool_calls": True, "streaming": True, "vision": False}
MODELS = ("gpt-5.4", "claude-sonnet-4.5", "gpt-4o-mini")


class _GitHub(_Handler):
    """What a host asks of GitHub, beside the scripted model."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        here = f"http://{self.headers.get('Host', '127.0.0.1')}"
        if path.endswith("/copilot_internal/user"):
            ends = {"api": here, "telemetry": f"{here}/telemetry", "proxy": here}
            self._answer(200, {**_USER, "endpoints": ends, "organization_list": [], "quota_snapshots": _QUOTA})
        elif path.endswith("/models"):
            self._answer(200, {"object": "list", "data": [_model(name) for name in MODELS]})
        elif path.endswith("/user"):
            self._answer(200, {"login": "nobody", "id": 1, "name": "Nobody"})
        else:
            self._answer(200 if "managed_settings" in path else 404, {})

    def do_POST(self) -> None:
        if self.path.partition("?")[0].endswith(("/chat/completions", "/responses")):
            super().do_POST()
        else:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(404, {})


def _model(name: str) -> dict[str, Any]:
    shown = {"id": name, "name": name, "object": "model", "vendor": "nobody", "version": name, "preview": False}
    picked = {"model_picker_enabled": True, "model_picker_category": "versatile", "is_chat_default": True}
    rules = {"policy": {"state": "enabled", "terms": ""}, "supported_endpoints": ["/chat/completions"]}
    bill = {"is_chat_fallback": True, "billing": {"is_premium": False, "multiplier": 0, "restricted_to": []}}
    can = {"family": name, "object": "model_capabilities", "type": "chat", "tokenizer": "o200k_base"}
    return {**shown, **picked, **rules, **bill, "capabilities": {**can, "limits": _LIMITS, "supports": _SUPPORTS}}


class AgentHost:
    """A host of a version, with a home of its own; a context manager. `restart` keeps port and home."""

    def __init__(self, cage: Cage, version: str, home: Path) -> None:
        self.cage, self.version, self.home = cage, version, home
        self.port = cage.free_port()
        self.is_classic = version == CLASSIC
        self._node, self._vscode = host(version)
        self._github = serve(cage.listen(), _GitHub)
        home.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/?tkn={TOKEN}"

    def connect(self) -> socket.socket:
        """A connection to it."""
        return self.cage.connect(self.port)

    def events(self, copilot_session: str) -> Path:
        """Copilot's own log of a session."""
        return self.home / ".copilot/session-state" / copilot_session / "events.jsonl"

    def __enter__(self) -> AgentHost:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._github.shutdown()
        self._github.server_close()

    def restart(self) -> None:
        """End it, and start it again."""
        self.end()
        self.start()

    def end(self) -> None:
        """End it, with what it has started."""
        stop(self._program, 8)
        try:
            os.killpg(self._program.pid, signal.SIGKILL)
        except ProcessLookupError:
            kill(self._program)

    def start(self) -> None:
        """Start it, and wait until it listens."""
        script = self._vscode / "out/bootstrap-fork.js"
        command = [str(self._node), str(script), "--type=agentHost", "--user-data-dir", str(self.home / "data")]
        with (self.home / "host.log").open("ab") as log:
            self._program = self.cage.start(
                command, environment=self._environment(), directory=self.home, stdout=log, stderr=log
            )
        wait_until(self._listens, "the host to listen", 60)

    def _listens(self) -> bool:
        assert self._program.poll() is None, (self.home / "host.log").read_text()[-2000:]
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def _environment(self) -> dict[str, str]:
        here = f"http://127.0.0.1:{self._github.socket.getsockname()[1]}"
        messages = f"{self._vscode}/out/nls.messages.json"
        languages = f'{{"userLocale":"en","osLocale":"en","resolvedLanguage":"en","defaultMessagesFile":"{messages}"}}'
        provider = {"BASE_URL": f"{here}/v1", "TYPE": "openai"} if self.is_classic else {}
        return {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            **{f"COPILOT_PROVIDER_{name}": value for name, value in provider.items()},
            **({"COPILOT_MODEL": "scripted-model"} if self.is_classic else {}),
            "HOME": str(self.home),
            "TERM": "dumb",
            "SHELL": "/bin/bash",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_API_URL": here,
            "COPILOT_DEBUG_GITHUB_API_URL": here,
            "VSCODE_AGENT_HOST_CAPI_URL_OVERRIDE": here,
            "VSCODE_ESM_ENTRYPOINT": "vs/platform/agentHost/node/agentHostMain",
            "VSCODE_NLS_CONFIG": languages,
            "VSCODE_AGENT_HOST_PORT": str(self.port),
            "VSCODE_AGENT_HOST_HOST": "127.0.0.1",
            "VSCODE_AGENT_HOST_CONNECTION_TOKEN": TOKEN,
            "VSCODE_AGENT_HOST_TELEMETRY_LEVEL": "off",
        }


if __name__ == "__main__":
    for each in (CLASSIC, CHAT):
        print(each, *host(each))
