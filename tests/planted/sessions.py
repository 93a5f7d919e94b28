"""Session files in which secrets stand wherever the CLI writes text: prompts, answers, arguments, results, titles."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from tests.planted.made import SEED, Kind, Secret, secrets

CANARY: Final = "canary of the planted sessions"
"""A text that is no secret, in every place; whoever does not find it there looks in the wrong place."""
TOKEN_FORMS: Final[tuple[Callable[[str], str], ...]] = (
    lambda text: text,
    lambda text: f"The value is {text}, as you see.",
    lambda text: f"export VALUE={text}",
    lambda text: f'const client = new Client("{text}");',
    lambda text: f"Use `{text}` here",
    lambda text: f"https://host.example/?v={text}&w=1",
    lambda text: f"src/app.py:12:{text}",
    lambda text: f"- name: x\n  value: {text}",
    lambda text: f"@@ -1 +1 @@\n-{text}\n+{text}",
    lambda text: f"<code>{text}</code>",
    lambda text: f"\x1b[01;31m{text[: len(text) // 2]}\x1b[m\x1b[K{text[len(text) // 2 :]}\x1b[0m",
)
_PROSE: Final = ("I looked at the file.", "Then the tests were run.", "Nothing else has changed.", f"({CANARY})")
_SECRETS_PER_EVENT: Final = range(6, 19)
_TIMESTAMP: Final = "2026-11-18T09:58:24.100Z"


class Session:
    """One session with so many secrets from the first on; `write` puts it where the CLI does."""

    def __init__(self, kinds: Sequence[Kind], first: int, number: int) -> None:
        self.secrets = list(secrets(kinds, first, number))
        self._tokens = {kind.id for kind in kinds if kind.is_token}
        self._chance = Random(f"{SEED} {first}")
        self.id = self._uuid()
        self._parent: str | None = None
        self._lines: list[bytes] = []

    def write(self, home: Path) -> None:
        """Write the session and its title below the CLI's directory."""
        directory = home / "session-state" / self.id
        directory.mkdir(parents=True)
        context = {"cwd": "/home/dana/lighthouse", "repository": "works/lighthouse", "branch": "main"}
        self._event("session.start", {"sessionId": self.id, "copilotVersion": "1.0.102", "context": context})
        rest = list(self.secrets)
        title = next(one for one in rest if one.kind in self._tokens)
        while rest:
            size = self._chance.choice(_SECRETS_PER_EVENT)
            self._turn([self._block(one) for one in rest[:size]])
            rest = rest[size:]
        (directory / "workspace.yaml").write_text(
            f"id: {self.id}\ncwd: /home/dana/lighthouse\nname: {json.dumps(f'{CANARY}: why {title.text}')}\n"
        )
        (directory / "events.jsonl").write_bytes(b"\n".join(self._lines) + b"\n")

    def _block(self, secret: Secret) -> str:
        form = self._chance.choice(TOKEN_FORMS) if secret.kind in self._tokens else TOKEN_FORMS[0]
        return f"{self._chance.choice(_PROSE)}\n\n{form(secret.text)}\n\n"

    def _turn(self, blocks: list[str]) -> None:
        """Put the blocks at one of the places where text stands, as text or as JSON in JSON."""
        text = "".join(blocks) + CANARY
        nested: object = text
        for _ in range(self._chance.randint(0, 2)):
            nested = json.dumps({"output": nested, "exit": 0})
        place = self._chance.randint(0, 4)
        call = f"call_{self._chance.getrandbits(64):016x}"
        if place == 0:
            self._event("user.message", {"content": text, "attachments": []})
        elif place == 1:
            self._event("assistant.message", {"messageId": self._uuid(), "content": text, "reasoningText": CANARY})
        elif place == 2:
            arguments = {"command": f"cat > .env <<'END'\n{text}\nEND", "description": CANARY}
            self._event("tool.execution_start", {"toolCallId": call, "toolName": "bash", "arguments": arguments})
        elif place == 3:
            requests = [{"toolCallId": call, "name": "create", "arguments": {"path": "a.txt", "file_text": nested}}]
            self._event("assistant.message", {"messageId": self._uuid(), "content": "", "toolRequests": requests})
        else:
            self._event("tool.execution_start", {"toolCallId": call, "toolName": "bash", "arguments": {}})
            result = {"content": nested, "detailedContent": text}
            self._event("tool.execution_complete", {"toolCallId": call, "success": True, "result": result})

    def _event(self, kind: str, data: dict[str, Any]) -> None:
        event = {"type": kind, "data": data, "id": self._uuid(), "timestamp": _TIMESTAMP, "parentId": self._parent}
        self._parent = str(event["id"])
        self._lines.append(json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode())

    def _uuid(self) -> str:
        return str(UUID(int=self._chance.getrandbits(128), version=4))
