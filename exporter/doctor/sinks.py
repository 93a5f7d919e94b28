"""Checks of where events go: reachable, authorised, private on the way, and of the same time as we are.

And of the CLI's own telemetry: what goes to the same place twice is counted twice.
"""

import asyncio
import json
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from exporter.core.delivery.verdict import Accepted, Later, Missing, Suspect, acceptance_fault
from exporter.doctor.check import Check, Probe, described, existing, shown_size, shown_url
from exporter.doctor.facts import Facts
from exporter.doctor.way import DIRECT, Way
from exporter.sinks.mission_control import NO_SESSION_ID, judge, read_session
from exporter.sinks.transport import ANSWER_BYTES_MAX, HttpAnswer, NoAnswerError, distrusted
from exporter.version import VERSION

ENABLED: Final = "COPILOT_OTEL_ENABLED"
ENDPOINT: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
FILE: Final = "COPILOT_OTEL_FILE_EXPORTER_PATH"
VARIABLES: Final = (ENABLED, ENDPOINT, FILE)
_DEFAULT_ENDPOINT: Final = "http://localhost:4318"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_FREE_BYTES_MIN: Final = 256 << 20
_TIMEOUT_SECONDS: Final = 3.0
_CLOCK_SECONDS_MAX: Final = 60.0
_QUESTION: Final = b'{"id":"exporter doctor?"}'
_LARGE_QUESTION: Final = b'{"id":"exporter doctor?","title":"%s"}' % (b"." * (5 << 19))
"""More than a proxy takes by default, and less than a receiver does."""
_TAKEN: Final = (200, 202, 204, 400)
"""Answers of an endpoint to an empty request of a signal that it takes."""
_UNSUPPORTED: Final = (404, 405, 415, 501)
_ORDER: Final = ("failed", "warning", "note", "ok")
_AGENT: Final = {"User-Agent": f"session-exporter/{VERSION}", "Session-Exporter": VERSION}


@dataclass(frozen=True, slots=True)
class MissionControlProbe:
    """A configured Mission Control. `token` is what would be sent; `token_fault` says why it cannot be read."""

    name: str
    url: str
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    token_fault: str | None = None
    way: Way = DIRECT

    async def probe(self) -> Probe:
        """Ask what delivery asks first, a registration, and judge the answer as delivery does.

        The id is none that a session may have: a Mission Control refuses it after a look at the token, so that asking
        makes no session. One that takes any id has one session of that name, however often it is asked.
        """
        private = _private(self.name, self.url, "the token" if self.token else "", self.token_file)
        if self.token_fault:
            remedy = "correct token_file; the token is read again before every request"
            return Probe((Check(self.name, "failed", self.token_fault, remedy), *private))
        headers = {**_AGENT, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        headers["Content-Type"] = "application/json"
        url = self.url.rstrip("/") + "/sessions"
        answer = await _ask(url, headers, _QUESTION, self.way)
        if isinstance(answer, HttpAnswer):
            judged = self._judged(answer)
            sizes = await self._sizes(url, headers) if judged.verdict == "ok" else ()
            return Probe((judged, *sizes, *private), _ahead(answer))
        return Probe((_unreachable(self.name, self.url, answer, self.way, "check certificate_file"), *private))

    async def _sizes(self, url: str, headers: Mapping[str, str]) -> tuple[Check, ...]:
        """Ask with a body as large as that of an ordinary event may be, which a proxy before the receiver may refuse.

        A receiver of ours says 413 as JSON: that is its limit of a registration, and no event is sent so.
        """
        answer = await _ask(url, headers, _LARGE_QUESTION, self.way)
        if not isinstance(answer, HttpAnswer) or answer.status != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return ()
        if answer.headers.get("content-type", "").startswith("application/json"):
            return ()
        who = answer.headers.get("server", "") or "a program without a name"
        detail = f"{who} before the receiver refuses a request of {shown_size(len(_LARGE_QUESTION))} (413)"
        remedy = "larger events go to quarantine: raise its limit, for nginx client_max_body_size 64m"
        return (Check(self.name, "warning", detail, remedy),)

    def _judged(self, answer: HttpAnswer) -> Check:
        where, status, judged = shown_url(self.url), answer.status, judge(answer)
        way = self.way.told(self.url)
        if status in (401, 403):
            what = "the token" if self.token else "a request without a token"
            remedy = "put a valid token in token_file" if self.token else "set token_file to a file with the token"
            return Check(self.name, "failed", f"{where} refuses {what} ({status})", remedy)
        if isinstance(judged, Accepted) and read_session(answer.body) is None:
            judged = Later(NO_SESSION_ID)
        is_from_elsewhere = 200 <= status < 300
        if isinstance(judged, Suspect):  # a refusal, but of what?
            page = acceptance_fault(status, answer.headers.get("content-type", ""), answer.body, whole=answer.whole)
            is_from_elsewhere, judged = page is not None, judged if page is None else Later(page)
        if isinstance(judged, Accepted | Suspect):
            return Check(self.name, "ok", f"{where} answers and accepts {'the token' if self.token else 'us'}{way}")
        if isinstance(judged, Missing):
            remedy = "check mission_control.url: it ends in /agents at our own receiver"
            return Check(self.name, "failed", f"{where} has no Mission Control at this address (404)", remedy)
        if is_from_elsewhere and isinstance(judged, Later):
            remedy = "check mission_control.url, and whether a sign-in page or a proxy is in between"
            return Check(self.name, "failed", f"{where}: {judged.reason}", remedy)
        return _unexpected(self.name, where, status)


@dataclass(frozen=True, slots=True)
class OtlpProbe:
    """A configured OTLP endpoint. `headers` are what would be sent; `headers_fault` says why they cannot be read."""

    name: str
    endpoint: str
    protocol: str = "http/protobuf"
    append_path: bool = True
    signals: tuple[str, ...] = ("traces",)
    ask_grpc: "Callable[[str], int | str] | None" = field(default=None, repr=False)
    """Sends an empty request of a signal over gRPC; returns the status of the answer, or why none came."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers_file: Path | None = None
    headers_fault: str | None = None
    way: Way = DIRECT

    async def probe(self) -> Probe:
        """Send a request without records for each signal that will be sent: an endpoint of OTLP takes it.

        A signal that is not taken fails only if none is: delivery leaves it out where others are taken.
        """
        private = _private(self.name, self.endpoint, "the headers" if self.headers else "", self.headers_file)
        if self.headers_fault:
            return Probe((Check(self.name, "failed", self.headers_fault, "correct headers_file"), *private))
        if self.protocol == "grpc":
            unreachable = await self._grpc()
            answers = {one: await self._grpc_status(one) for one in self.signals} if unreachable is None else {}
            return Probe((unreachable or self._of_all(answers), *private))
        headers = {**_AGENT, "Content-Type": "application/x-protobuf", **self.headers}
        asked = {one: await _ask(self._url(one), headers, b"", self.way) for one in self.signals}
        for signal, answer in asked.items():
            if not isinstance(answer, HttpAnswer):
                remedy = "check certificate_file, client_certificate_file and client_key_file"
                return Probe((_unreachable(self.name, self._url(signal), answer, self.way, remedy), *private))
        found = {one: answer for one, answer in asked.items() if isinstance(answer, HttpAnswer)}
        checks = {one: self._judged(shown_url(self._url(one)), answer) for one, answer in found.items()}
        refused = {one: answer.status for one, answer in found.items() if answer.status in _UNSUPPORTED}
        ahead = _ahead(next(iter(found.values())))
        others = [check for one, check in checks.items() if one not in refused]
        worst = min(others or list(checks.values()), key=lambda check: _ORDER.index(check.verdict))
        if worst.verdict == "ok":
            worst = self._of_all({one: answer.status for one, answer in found.items()})
        return Probe((worst, *private), ahead)

    def _url(self, signal: str) -> str:
        return f"{self.endpoint.rstrip('/')}/v1/{signal}" if self.append_path else self.endpoint

    def _of_all(self, answers: Mapping[str, int | str]) -> Check:
        """Say which signals work, where at least one does; the others are left out when they are delivered."""
        works = [one for one, answer in answers.items() if answer in _TAKEN]
        refused = {one: answer for one, answer in answers.items() if answer in _UNSUPPORTED}
        where, way = shown_url(self.endpoint), self.way.told(self.endpoint)
        if not works:
            told = ", ".join(f"{one}: {answer}" for one, answer in answers.items())
            remedy = (
                'check the endpoint, and the setting protocol: gRPC is usually on port 4317, "http/protobuf" on 4318'
            )
            return Check(self.name, "failed", f"{where}{way} takes no OTLP ({told})", remedy)
        detail = f"{where} takes {', '.join(works)}{way}"
        if len(works) + len(refused) < len(answers):
            left = ", ".join(f"{one}: {answers[one]}" for one in answers if one not in works and one not in refused)
            return Check(self.name, "warning", f"{detail}; {left}", "try again later; nothing is lost")
        if refused:
            off = ", ".join(f"{one} ({status})" for one, status in refused.items())
            remedy = f"to say so: signals = {json.dumps(works)}"
            return Check(self.name, "note", f"{detail}; not {off}, which will be off", remedy)
        return Check(self.name, "ok", detail)

    async def _grpc_status(self, signal: str) -> int | str:
        return await asyncio.to_thread(self.ask_grpc, signal) if self.ask_grpc is not None else 200

    def _judged(self, where: str, answer: HttpAnswer) -> Check:
        status, kind = answer.status, answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if 200 <= status < 300 and (not answer.whole or (answer.body and kind == "text/html")):
            remedy = "check the endpoint, and whether a sign-in page or a proxy is in between"
            return Check(self.name, "failed", f"{where} answers as no OTLP endpoint does ({status})", remedy)
        if status in _TAKEN:
            return Check(self.name, "ok", f"{where} answers ({status}){self.way.told(self.endpoint)}")
        if status in (401, 403):
            refused = f"{where} refuses {'the headers' if self.headers else 'us'} ({status})"
            return Check(self.name, "failed", refused, "put valid headers in headers_file")
        if status in (404, 405, 501):
            remedy = "check the endpoint: OTLP over HTTP is usually on port 4318, without /v1/traces in the setting"
            return Check(self.name, "failed", f"{where} takes no OTLP ({status})", remedy)
        if status == 415:
            return Check(self.name, "failed", f"{where} takes no http/protobuf (415)", 'try protocol = "grpc"')
        return _unexpected(self.name, where, status)

    async def _grpc(self) -> Check | None:
        """Return what is amiss if no connection is taken."""
        tried = self.way.proxy[0] if self.way.proxy else self.endpoint
        parts = urlsplit(tried)
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                _, writer = await asyncio.open_connection(parts.hostname, parts.port or 4317)
        except (OSError, TimeoutError) as error:
            return _unreachable(self.name, tried, error, DIRECT)
        writer.close()
        return None


class _CertificateError(Exception):
    """A certificate that the settings name cannot be used."""


async def _ask(url: str, headers: Mapping[str, str], body: bytes, way: Way) -> HttpAnswer | Exception:
    """Post a body as delivery does; return the answer, or why none came."""
    try:
        client = way.client(url, _TIMEOUT_SECONDS)
    except OSError as error:
        return _CertificateError(f"a certificate cannot be read: {described(error)}")
    try:
        return await asyncio.to_thread(client.request, "POST", "", headers, body, answer_bytes_max=ANSWER_BYTES_MAX)
    except NoAnswerError as error:
        return error
    finally:
        client.close()


def _ahead(answer: HttpAnswer) -> float | None:
    """Return by how many seconds the clock of the answer is ahead of ours, if it says the time."""
    try:
        sent = parsedate_to_datetime(answer.headers["date"])
    except (KeyError, ValueError):
        return None
    return (sent if sent.tzinfo else sent.replace(tzinfo=UTC)).timestamp() - time.time()


def clock(probes: list[Probe]) -> Iterator[Check]:
    """Compare our clock with those of the sinks; says nothing when none sent the time."""
    ahead = [probe.ahead_seconds for probe in probes if probe.ahead_seconds is not None]
    if not ahead:
        return
    worst = max(ahead, key=abs)
    if abs(worst) > _CLOCK_SECONDS_MAX:
        way = "behind" if worst > 0 else "ahead of"
        remedy = "let this machine set its clock (timedatectl set-ntp true), or correct the receiver's"
        yield Check("clock", "warning", f"{abs(worst):,.0f} seconds {way} a sink's", remedy)
    else:
        yield Check("clock", "ok", "the same as the sinks' within a minute")


def _private(name: str, url: str, secret: str, path: Path | None) -> Iterator[Check]:
    """Warn when others can read what is sent, or the file that holds its secret; its reader reports a missing one."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "http" and host not in ("localhost", "::1") and not host.startswith("127."):
        read = f"events{f' and {secret}' if secret else ''} can be read on the way: {shown_url(url)}"
        yield Check(f"{name} privacy", "warning", read, "use https:// if it has it")
    if path is None or sys.platform == "win32":
        return
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return
    if mode & 0o077:
        yield Check(
            f"{name} secret", "warning", f"{path} is open to other users (mode {mode:o})", f"run chmod 600 {path}"
        )
    else:
        yield Check(f"{name} secret", "ok", f"{path} is private")


def _unreachable(name: str, url: str, error: Exception, way: Way, certificate_remedy: str = "") -> Check:
    if isinstance(error, _CertificateError):
        return Check(name, "failed", str(error), certificate_remedy)
    remedy = "check the address, the network and that it runs; what is not delivered stays on this machine until then"
    if why := distrusted(error):
        what, _, todo = why.partition("; ")
        return Check(name, "failed", f"{shown_url(url)}{way.told(url)}: {what}", todo or remedy)
    if way.proxy:
        remedy = f'check the proxy that {way.proxy[1]} names, or set proxy = "none" for this sink'
    return Check(name, "failed", f"{shown_url(url)}{way.told(url)} does not answer: {described(error)}", remedy)


def _unexpected(name: str, where: str, status: int) -> Check:
    if 300 <= status < 400:
        remedy = "set the address that it leads to; a redirect is never followed, least of all with a token"
        return Check(name, "warning", f"{where} redirects ({status})", remedy)
    if status == 429 or status >= 500:
        return Check(name, "warning", f"{where} has trouble of its own ({status})", "try again later; nothing is lost")
    return Check(name, "warning", f"{where} answers with {status}", "check the address")


@dataclass(frozen=True, slots=True)
class ArchiveProbe:
    """A configured archive."""

    name: str
    path: Path

    async def probe(self) -> Probe:
        """Write a file and take it away again: only that shows that a file system takes one."""
        return Probe(tuple(self._checks()))

    def _checks(self) -> Iterator[Check]:
        there = existing(self.path)
        try:
            with tempfile.TemporaryFile(dir=there) as file:
                file.write(b"written by exporter doctor")
            free = shutil.disk_usage(there).free
        except OSError as error:
            remedy = "make it writable, or name another directory; the events stay in their files until then"
            yield Check(self.name, "failed", f"{there} cannot be written: {described(error)}", remedy)
            return
        detail = f"{self.path}, {shown_size(free)} free" + ("" if there == self.path else "; made when it is needed")
        mode = stat.S_IMODE(there.stat().st_mode)
        if free < _FREE_BYTES_MIN:
            yield Check(self.name, "warning", detail, "free some space; what does not fit waits in the session files")
        elif there == self.path and sys.platform != "win32" and mode & 0o077:
            remedy = f"what is in it is private all the same; to hide even that it is there: chmod 700 {self.path}"
            yield Check(self.name, "note", f"{detail}; open to other users (mode {mode:o})", remedy)
        else:
            yield Check(self.name, "ok", detail)


def cli_telemetry(facts: Facts) -> Iterator[Check]:
    """Compare where the CLI sends its own telemetry, as far as this environment shows, with our endpoints."""
    name, given = "CLI telemetry", {key: value for key, value in facts.cli_telemetry.items() if value}
    enabled = given.get(ENABLED, "").strip().lower() in ("true", "1")
    if not (enabled or given.keys() & {ENDPOINT, FILE}):
        yield Check(name, "ok", "off in this environment")
        return
    if FILE in given and ENDPOINT not in given:
        yield Check(name, "ok", "written to a file, so nothing is counted twice")
        return
    endpoint = given.get(ENDPOINT, _DEFAULT_ENDPOINT)
    ours = [one for one in facts.sinks if isinstance(one, OtlpProbe)]
    same = [one.name for one in ours if _place(one.endpoint) == _place(endpoint)]
    detail = f"sent to {shown_url(endpoint)}"
    if same:
        detail += f", where {', '.join(same)} delivers too: tokens are counted twice there"
        remedy = f"start the CLI without {ENDPOINT} and {ENABLED}, or take {', '.join(same)} out of the configuration"
        yield Check(name, "warning", detail, remedy)
    else:
        yield Check(name, "ok", f"{detail}, which is none of our endpoints")


def _place(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return url, 0
    host = "localhost" if host in _LOOPBACK else host
    return host, port or (443 if parts.scheme == "https" else 80)
