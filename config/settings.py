"""Every setting: one field is its type, default, meaning and bounds; everything else is made from these structs."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from config.archive import Archive
from config.fields import Shown, setting
from config.otel import Otel
from config.redaction import Redaction

KIB = 1024
MIB = 1024 * KIB

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]


class MissionControl(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Mission Control that sessions are delivered to."""

    url: Annotated[
        str,
        setting(
            "Address that ends in /agents, as for the uploader of the CLI.", "https://mc.example.com/agents", url=True
        ),
    ]
    token_file: Annotated[
        str | None,
        setting(
            "File with the token. It is read whenever the token is needed, so it may change.",
            "~/.config/exporter/mc.token",
            path=True,
            instead_of="token",
        ),
    ] = None
    token: Annotated[
        str | None,
        setting(
            "Token, sent as Authorization: Bearer to this address only.",
            "the-token",
            secret=True,
            instead_of="token_file",
        ),
    ] = None
    allow_http: Annotated[
        bool, setting("Send the token over http:// to an address that is not loopback; anybody on the way can read it.")
    ] = False
    max_event_bytes: Annotated[
        int,
        setting(
            "Larger events are quarantined, unless the receiver announces a higher limit.", ge=64 * KIB, le=64 * MIB
        ),
    ] = 8 * MIB
    certificate_file: Annotated[
        str | None,
        setting(
            "CA certificates (PEM) to trust instead of those of the system.", "~/.config/exporter/mc-ca.pem", path=True
        ),
    ] = None
    connections: Annotated[int, setting("Number of sessions that are delivered at the same time.", ge=1, le=64)] = 4
    timeout_seconds: Annotated[float, setting("Timeout of one request, after which it is retried.", ge=0.1, le=600)] = (
        30.0
    )
    owner_id: Annotated[Name | None, setting("Owner that sessions are registered for.", "1")] = None
    repo_id: Annotated[Name | None, setting("Repository that sessions are registered for.", "2")] = None
    live: Annotated[
        bool, setting("Also send ephemeral events, redacted. The receiver shows them and does not store them.")
    ] = False
    compression: Annotated[
        Literal["auto", "none"], setting("auto: compress requests in a way that the receiver announces; none: never.")
    ] = "auto"


class Source(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A source of events in addition to the files of the CLI."""

    url: Annotated[
        str,
        setting(
            "rpc://HOST:PORT: a CLI server (copilot --headless --port N, or --ui-server), which is only read from; "
            "ahp+ws://HOST:PORT or ahp+wss://HOST: an agent host, such as that of VS Code, which is only listened to; "
            "tap: what the extension of exporter tap install shows live; file: the files of the CLI, which are always "
            "followed.",
            "rpc://127.0.0.1:4321",
        ),
    ]
    token_file: Annotated[
        str | None,
        setting(
            "File with the COPILOT_CONNECTION_TOKEN of the server or the connection token of the agent host. It is "
            "read before every connection.",
            "~/.config/exporter/rpc.token",
            path=True,
        ),
    ] = None
    push: Annotated[
        bool,
        setting(
            "true: the server sends the events of loaded sessions; false: the exporter asks for them. With true the "
            "exporter attaches to these sessions, which leaves no trace in them; but a session that its owner has "
            "closed ends only when the exporter disconnects."
        ),
    ] = False


class Limits(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Upper limits of what the exporter uses."""

    max_line_bytes: Annotated[
        int, setting("Longer lines of a session file are quarantined.", ge=64 * KIB, le=256 * MIB)
    ] = 16 * MIB
    open_files: Annotated[int, setting("Number of session files that are open at the same time.", ge=1, le=65_536)] = 64
    quarantine_bytes: Annotated[
        int, setting("Size of the quarantine. When it is full, the session stops.", ge=MIB, le=1024 * 1024 * MIB)
    ] = 256 * MIB
    quarantine_days: Annotated[int, setting("Days after which quarantined events are deleted.", ge=1, le=3650)] = 30
    keep_days: Annotated[
        int,
        setting(
            "Days after its last event when the embedded Mission Control deletes a session; 0: never.", ge=0, le=36_500
        ),
    ] = 365
    keep_gb: Annotated[
        int,
        setting(
            "Gigabytes of all sessions above which the embedded Mission Control deletes the oldest ones; 0: no limit.",
            ge=0,
            le=1_000_000,
        ),
    ] = 20
    cache_bytes: Annotated[
        int,
        setting(
            "A sink that is behind by more than this reads the file by itself and not with the others.",
            ge=64 * KIB,
            le=1024 * MIB,
        ),
    ] = 8 * MIB
    journal_bytes: Annotated[
        int,
        setting(
            "Size of the journals, which hold the events of sessions without a file until they are delivered to every "
            "sink. At this size their source is paused.",
            ge=MIB,
            le=1024 * 1024 * MIB,
        ),
    ] = 256 * MIB
    poll_seconds: Annotated[
        float, setting("Interval of checking files where the system cannot report changes.", ge=0.05, le=3600)
    ] = 1.0
    incomplete_line_seconds: Annotated[
        float, setting("A last line that is incomplete for longer than this is reported.", ge=1, le=86_400)
    ] = 30.0


class Settings(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All settings; paths are absolute once loaded."""

    copilot_home: Annotated[
        str, setting("Directory of the CLI. Sessions are read from session-state in it; nothing is written.", path=True)
    ] = "~/.copilot"
    state_dir: Annotated[str, setting("Directory of marks, quarantine and the embedded store.", path=True)] = (
        "~/.local/state/exporter"
    )
    cache_dir: Annotated[str, setting("Directory of the compiled rules.", path=True)] = "~/.cache/exporter"
    history_days: Annotated[
        int,
        setting(
            "Sessions that changed within this number of days are delivered; older ones only by backfill.",
            ge=0,
            le=36_500,
            flag="--days",
        ),
    ] = 7
    give_up_seconds: Annotated[
        float,
        setting("Time without an accepted request after which backfill and run --until-idle end.", ge=0, le=86_400),
    ] = 60.0
    drain_seconds: Annotated[float, setting("Time that a stop waits for requests in flight.", ge=0, le=60)] = 1.5
    port: Annotated[
        int, setting("Port of the embedded Mission Control on loopback; 0: any free port.", ge=0, le=65_535)
    ] = 8411
    host_name: Annotated[
        Name | None, setting("Name of this machine in reports, instead of its host name.", "laptop")
    ] = None
    log_level: Annotated[Literal["debug", "info", "warning", "error"], setting("Lowest level that is logged.")] = "info"
    source: Annotated[
        tuple[Source, ...],
        Meta(description="Where events come from besides the CLI's files; nothing is connected to unless it is named."),
    ] = ()
    mission_control: Annotated[
        dict[str, MissionControl],
        Meta(description="Where sessions are delivered; for more than one, [mission_control.NAME] each."),
    ] = field(default_factory=dict)
    otel: Annotated[
        dict[str, Otel],
        Meta(description="Where traces, metrics and logs are sent; for more than one, [otel.NAME] each."),
    ] = field(default_factory=dict)
    archive: Annotated[
        dict[str, Archive],
        Meta(description="Where sessions are kept as files, redacted; for more than one, [archive.NAME] each."),
    ] = field(default_factory=dict)
    redaction: Annotated[Redaction, Meta(description="What is masked besides the built-in rules, and what is not.")] = (
        field(default_factory=Redaction)
    )
    limits: Annotated[Limits, Meta(description="How much the exporter uses at most.")] = field(default_factory=Limits)
