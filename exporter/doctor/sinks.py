"""Checks of where events go: reachable, authorised, private on the way, and of the same time as we are."""

import asyncio
import ssl
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from exporter.doctor.check import Check, described, shown_url
from exporter.doctor.facts import MissionControlFacts, OtlpFacts
from exporter.sinks.trust import distrusted, trust
from exporter.version import VERSION

_TIMEOUT_SECONDS: Final = 3.0
_TOTAL_SECONDS: Final = 8.0
_CLOCK_SECONDS_MAX: Final = 60.0
_PROBE: Final = "/sessions/exporter-doctor-check"
_AGENT: Final = {"User-Agent": f"session-exporter/{VERSION}", "Session-Exporter": VERSION}


@dataclass(frozen=True, slots=True)
class Probe:
    """The checks of one sink, and how many seconds its clock is ahead of ours where it told the time."""

    checks: tuple[Check, ...]
    ahead_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    content_type: str
    ahead_seconds: float | None


async def probe_mission_control(one: MissionControlFacts) -> Probe:
    """Ask for a session that is not there: a Mission Control that knows us says 404 (or 200), never 401."""
    before = [*_private(one.name, one.url, "the token" if one.token else ""), *_secret_file(one.name, one.token_file)]
    if one.token_fault:
        remedy = "correct token_file; the token is read again before every request"
        return Probe((Check(one.name, "failed", one.token_fault, remedy), *before))
    headers = {**_AGENT, **({"Authorization": f"Bearer {one.token}"} if one.token else {})}
    try:
        trusted = trust(str(one.certificate_file) if one.certificate_file else None)
    except OSError as error:
        fault = f"a certificate cannot be read: {described(error)}"
        return Probe((Check(one.name, "failed", fault, "check certificate_file"), *before))
    answer = await _ask("GET", one.url.rstrip("/") + _PROBE, headers, trusted)
    if isinstance(answer, Exception):
        return Probe((_unreachable(one.name, one.url, answer), *before))
    return Probe((_mission_control(one, answer), *before), answer.ahead_seconds)


def _mission_control(one: MissionControlFacts, answer: _Answer) -> Check:
    where, status = shown_url(one.url), answer.status
    if status in (401, 403):
        what = "the token" if one.token else "a request without a token"
        remedy = "put a valid token in token_file" if one.token else "set token_file to a file with the token"
        return Check(one.name, "failed", f"{where} refuses {what} ({status})", remedy)
    if status in (200, 404, 410):
        if answer.content_type == "text/html":
            remedy = "check mission_control.url: it ends in /agents at our own receiver"
            return Check(one.name, "warning", f"{where} answers with a web page ({status})", remedy)
        return Check(one.name, "ok", f"{where} answers and accepts {'the token' if one.token else 'us'}")
    return _unexpected(one.name, where, status)


async def probe_otlp(one: OtlpFacts) -> Probe:
    """Send a request without any span: an endpoint that speaks OTLP takes it, or says what it misses."""
    before = [
        *_private(one.name, one.endpoint, "the headers" if one.headers else ""),
        *_secret_file(one.name, one.headers_file),
    ]
    if one.headers_fault:
        return Probe((Check(one.name, "failed", one.headers_fault, "correct headers_file"), *before))
    if one.protocol == "grpc":
        return Probe((await _grpc(one), *before))
    signal = "traces" if "traces" in one.signals else one.signals[0]
    url = f"{one.endpoint.rstrip('/')}/v1/{signal}" if one.append_path else one.endpoint
    try:
        context = _trust(one)
    except OSError as error:
        remedy = "check certificate_file, client_certificate_file and client_key_file"
        return Probe((Check(one.name, "failed", f"a certificate cannot be read: {described(error)}", remedy), *before))
    headers = {**_AGENT, "Content-Type": "application/x-protobuf", **one.headers}
    answer = await _ask("POST", url, headers, context)
    if isinstance(answer, Exception):
        return Probe((_unreachable(one.name, url, answer), *before))
    return Probe((_otlp(one, shown_url(url), answer.status), *before), answer.ahead_seconds)


def _otlp(one: OtlpFacts, where: str, status: int) -> Check:
    if status in (200, 202, 204, 400):
        return Check(one.name, "ok", f"{where} answers ({status})")
    if status in (401, 403):
        remedy = "put valid headers in headers_file"
        return Check(one.name, "failed", f"{where} refuses {'the headers' if one.headers else 'us'} ({status})", remedy)
    if status in (404, 405):
        remedy = "check the endpoint: OTLP over HTTP is usually on port 4318, without /v1/traces in the setting"
        return Check(one.name, "failed", f"{where} takes no OTLP ({status})", remedy)
    if status == 415:
        return Check(one.name, "failed", f"{where} takes no http/protobuf (415)", 'try protocol = "grpc"')
    return _unexpected(one.name, where, status)


async def _grpc(one: OtlpFacts) -> Check:
    parts = urlsplit(one.endpoint)
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 4317)
    except (OSError, TimeoutError) as error:
        return _unreachable(one.name, one.endpoint, error)
    writer.close()
    return Check(one.name, "ok", f"{shown_url(one.endpoint)} takes connections; gRPC itself was not tried")


def _trust(one: OtlpFacts) -> ssl.SSLContext | None:
    if not (one.certificate_file or one.client_certificate_file):
        return None
    context = trust(str(one.certificate_file) if one.certificate_file else None) or ssl.create_default_context()
    if one.client_certificate_file:
        key = str(one.client_key_file) if one.client_key_file else None
        context.load_cert_chain(str(one.client_certificate_file), key)
    return context


async def _ask(method: str, url: str, headers: Mapping[str, str], trust: ssl.SSLContext | None) -> _Answer | Exception:
    """Return the head of an answer, or why none came. Redirects are answers, and the body is not read."""
    import httpx

    try:
        async with (
            asyncio.timeout(_TOTAL_SECONDS),
            httpx.AsyncClient(
                verify=trust or True, timeout=_TIMEOUT_SECONDS, follow_redirects=False, trust_env=False
            ) as client,
            client.stream(method, url, headers=dict(headers)) as response,
        ):
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            return _Answer(response.status_code, kind, _ahead(response.headers.get("date"), datetime.now(UTC)))
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
        return error


def _ahead(date: str | None, now: datetime) -> float | None:
    if date is None:
        return None
    try:
        told = parsedate_to_datetime(date)
    except ValueError:
        return None
    return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp() - now.timestamp()


def clock(probes: list[Probe]) -> Iterator[Check]:
    """Compare our clock with those of the sinks; says nothing when none told the time."""
    told = [probe.ahead_seconds for probe in probes if probe.ahead_seconds is not None]
    if not told:
        return
    worst = max(told, key=abs)
    if abs(worst) > _CLOCK_SECONDS_MAX:
        way = "behind" if worst > 0 else "ahead of"
        remedy = "let this machine set its clock (timedatectl set-ntp true), or correct the receiver's"
        yield Check("clock", "warning", f"{abs(worst):,.0f} seconds {way} a sink's", remedy)
    else:
        yield Check("clock", "ok", "the same as the sinks' within a minute")


def _private(name: str, url: str, secret: str) -> Iterator[Check]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or host in ("localhost", "::1") or host.startswith("127."):
        return
    read = f"events{f' and {secret}' if secret else ''}"
    yield Check(
        f"{name} privacy", "warning", f"{read} can be read on the way: {shown_url(url)}", "use https:// if it has it"
    )


def _secret_file(name: str, path: Path | None) -> Iterator[Check]:
    """Warn when others can read a file that holds a secret; a file that is not there is reported by its reader."""
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


def _unreachable(name: str, url: str, error: Exception) -> Check:
    remedy = "check the address, the network and that it runs; what is not delivered stays on this machine until then"
    if why := distrusted(error):
        what, _, todo = why.partition("; ")
        return Check(name, "failed", f"{shown_url(url)}: {what}", todo or remedy)
    return Check(name, "failed", f"{shown_url(url)} does not answer: {described(error)}", remedy)


def _unexpected(name: str, where: str, status: int) -> Check:
    if 300 <= status < 400:
        remedy = "set the address that it leads to; a redirect is never followed, least of all with a token"
        return Check(name, "warning", f"{where} redirects ({status})", remedy)
    if status == 429 or status >= 500:
        return Check(name, "warning", f"{where} has trouble of its own ({status})", "try again later; nothing is lost")
    return Check(name, "warning", f"{where} answers with {status}", "check the address")
