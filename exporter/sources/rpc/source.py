"""The source for sessions of a CLI server (`copilot --headless --port N`, `--ui-server`): it only reads.

It is one connection per server. Sessions are found by `session.list` and by `session.lifecycle`; each one wanted is
read without attaching to it, from the last stored event. A session that the server has not loaded is read
from its file by the server and is never loaded for us.

Every method that is called, and what the schema of CLI 1.0.102 says of its stability:

- `connect`: experimental, internal
- `ping`: experimental; for servers older than `connect`
- `session.list`: in no schema; the SDKs use it
- `session.eventLog.read`: experimental
- `session.eventLog.tail`: experimental
- `sessions.readPersistedEvents`: experimental
- `session.resume`: in no schema; the SDKs use it; called only where pushing is asked for
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from exporter.core.events.envelope import REFUSALS
from exporter.core.names import SESSION_NAME
from exporter.sources.remote import Callbacks, LostError, Observed, ServerSource, Want
from exporter.sources.rpc.connection import METHOD_NOT_FOUND, REQUESTS, AnswerTooLongError, CallError, RpcConnection
from exporter.sources.rpc.messages import Connected, Lifecycle, decode_or, read_pushed, read_sessions
from exporter.sources.rpc.session import Follower, FollowerContext, State

NOTIFICATIONS: Final = ("session.lifecycle", "session.event", "shell.output", "shell.exit")
_KNOWN_METHODS: Final = frozenset((*NOTIFICATIONS, "host.event", *REQUESTS))
PROTOCOLS: Final = range(2, 4)
BODY_BYTES_MAX: Final = 32 << 20
REST_SECONDS: Final = 1.0
SESSIONS_MAX: Final = 1000
_NO_TOKEN, _WRONG_TOKEN = -32001, -32002
_UNTROUBLED: Final = (State.CATCHING_UP, State.LIVE, State.COLD)


class RpcSource(ServerSource):
    """Observes one server until cancelled, over as many connections as it takes.

    `open_streams` connects; `token` is asked before every connection, so that a new one is picked up. `push` has the
    events of loaded sessions pushed, which attaches to them: that leaves no trace in them, but a session ends only
    when the last client has left it, so that one which its owner has closed goes on until we hang up.
    """

    def __init__(
        self,
        open_streams: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]],
        token: Callable[[], str | None],
        callbacks: Callbacks,
        *,
        push: bool = False,
        on_shell: Callable[[str, bytes], None] | None = None,
        body_bytes_max: int = BODY_BYTES_MAX,
        pause_seconds: tuple[float, float] | None = None,
    ) -> None:
        super().__init__("server", callbacks, pause_seconds)
        self.protocol: int | None = None
        self.version: str | None = None
        self.server_requests = 0
        self._open_streams = open_streams
        self._token = token
        self._shared = FollowerContext(callbacks, self.counts, push)
        self._on_shell = on_shell
        self._body_bytes_max = body_bytes_max
        self._followers: dict[str, Follower] = {}
        self._states: dict[str, State] = {}  # of sessions, as they were when their followers ended
        self._changed_sessions: set[str] = set()
        self._connection: RpcConnection | None = None
        self._failure: Exception | None = None

    @property
    def sessions(self) -> dict[str, State]:
        """Return the state of each session that is or was followed."""
        return {**self._states, **{session: follower.state for session, follower in self._followers.items()}}

    def is_live(self, session: str) -> bool:
        """Tell whether the server has a session loaded, and it is followed now."""
        follower = self._followers.get(session)
        return follower is not None and follower.state is State.LIVE

    def observed(self) -> Observed:
        """Return the present state in the form that all sources share."""
        sessions = self.sessions
        is_reading = any(one in (State.CATCHING_UP, State.FULL) for one in sessions.values())
        troubles = {session: state.value for session, state in sessions.items() if state not in _UNTROUBLED}
        return self._report(len(sessions), troubles, is_reading=is_reading)

    async def _observe(self) -> None:
        reader, writer = await self._open_streams()
        connection = RpcConnection(
            reader, writer, self._on_notification, self._on_request, body_bytes_max=self._body_bytes_max
        )
        self.connections += 1
        self._connection = connection
        listening = asyncio.create_task(connection.run())
        try:
            await self._handshake(connection)
            self.is_connected = True
            for session in read_sessions(await connection.call("session.list")):
                self._consider(session.sessionId, session.modifiedTime)
            self.state = "following"
            await listening
        except LostError:
            if self._failure is not None:
                raise self._failure from None
            raise
        except CallError as error:
            raise LostError(_refused(error.code)) from None
        except AnswerTooLongError:
            raise LostError("the server's list of sessions exceeds the size limit") from None
        finally:
            self._connection = None
            connection.close()
            tasks = [listening, *(follower.task for follower in self._followers.values() if follower.task is not None)]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._followers.clear()
            self._changed_sessions.clear()

    async def _handshake(self, connection: RpcConnection) -> None:
        token = self._token()
        try:
            given: dict[str, Any] = {} if token is None else {"token": token}
            result = await connection.call("connect", **given)
        except CallError as error:
            if error.code == _WRONG_TOKEN and token is None:
                raise CallError(_NO_TOKEN) from None
            if error.code != METHOD_NOT_FOUND:
                raise
            result = await connection.call("ping")
        try:
            parsed = msgspec.json.decode(result, type=Connected)
        except REFUSALS:
            raise LostError("the server does not speak the CLI's JSON-RPC: no protocol version") from None
        self.protocol, self.version = parsed.protocolVersion, parsed.version[:64]
        if parsed.protocolVersion not in PROTOCOLS:
            spoken = f"{PROTOCOLS.start} to {PROTOCOLS.stop - 1}"
            raise LostError(f"the server speaks protocol {parsed.protocolVersion}, this exporter {spoken}: update it")

    def _on_notification(self, method: str, params: msgspec.Raw) -> None:
        if method == "session.lifecycle":
            parsed = decode_or(Lifecycle(), params, Lifecycle)
            if parsed.type == "session.deleted":
                self._callbacks.deleted(parsed.sessionId)
            else:
                self._consider(parsed.sessionId, "")
        elif method == "session.event" and self._shared.push:
            pushed = read_pushed(params)
            follower = self._followers.get(pushed.sessionId)
            if follower is not None:
                follower.push(pushed.event)
        elif method in ("shell.output", "shell.exit") and self._on_shell is not None:
            self._on_shell(method, bytes(params))
        else:
            self._count_method(method)

    def _on_request(self, method: str) -> None:
        self.server_requests += 1
        self._count_method(method)

    def _count_method(self, method: str) -> None:
        if method not in _KNOWN_METHODS:
            self.counts.count_method(method)

    def _consider(self, session: str, changed: str) -> None:
        """Follow a session if it is wanted; one that is being followed is checked again when its follower ends."""
        if SESSION_NAME.fullmatch(session) is None:  # it becomes a file name
            return
        if session in self._followers:
            self._changed_sessions.add(session)
            return
        want = self._callbacks.want(session, changed)
        if want is Want.NOTHING or self._connection is None or len(self._followers) >= SESSIONS_MAX:
            return
        follower = Follower(session, self._connection, self._shared, live_only=want is Want.LIVE)
        self._followers[session] = follower
        follower.task = asyncio.create_task(self._follow(session, follower))

    async def _follow(self, session: str, follower: Follower) -> None:
        try:
            while True:
                self._changed_sessions.discard(session)
                await follower.run()
                # A loaded session sends many notifications per second; one that cannot be read is tried once.
                await asyncio.sleep(REST_SECONDS)
                if session not in self._changed_sessions:
                    break
        except LostError:
            pass
        except Exception as error:  # the task's edge: a journal that cannot be written ends the source, loudly
            self._failure = error
            if self._connection is not None:
                self._connection.close()
        finally:
            self._states[session] = follower.state
            while len(self._states) > SESSIONS_MAX:
                self._states.pop(next(iter(self._states)))
            self._followers.pop(session, None)


def _refused(code: int) -> str:
    if code == _NO_TOKEN:
        return "the server requires a token: name the file that holds it (COPILOT_CONNECTION_TOKEN of the server)"
    if code == _WRONG_TOKEN:
        return "the server refused the token: put the one it was started with (COPILOT_CONNECTION_TOKEN) into the file"
    return f"the server refused a call (error {code})"
