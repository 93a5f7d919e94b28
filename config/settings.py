"""Every setting: one field is its type, default, meaning and bounds; everything else is made from these structs."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from config.archive import Archive
from config.fields import Shown
from config.otel import Otel
from config.redaction import Redaction

KIB = 1024
MIB = 1024 * KIB

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]


class MissionControl(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Mission Control that sessions are delivered to."""

    url: Annotated[
        str,
        Meta(
            description="Where it is, as the CLI's own uploader would be told: the address that ends in /agents.",
            examples=["https://mc.example.com/agents"],
            extra={"url": True},
        ),
    ]
    token_file: Annotated[
        str | None,
        Meta(
            description="File that holds the token; read again whenever the token is needed, so it may change.",
            examples=["~/.config/exporter/mc.token"],
            extra={"path": True, "instead_of": "token"},
        ),
    ] = None
    token: Annotated[
        str | None,
        Meta(
            description="The token itself, sent as Authorization: Bearer to this address and nowhere else.",
            examples=["the-token"],
            extra={"secret": True, "instead_of": "token_file"},
        ),
    ] = None
    allow_http: Annotated[
        bool, Meta(description="Send the token over http:// to an address that is not loopback, readable on the way.")
    ] = False
    max_event_bytes: Annotated[
        int,
        Meta(
            description="Larger events go to quarantine, unless the receiver says that it takes more.",
            ge=64 * KIB,
            le=64 * MIB,
        ),
    ] = 8 * MIB
    certificate_file: Annotated[
        str | None,
        Meta(
            description="Certificates (PEM) to trust instead of the system's.",
            examples=["~/.config/exporter/mc-ca.pem"],
            extra={"path": True},
        ),
    ] = None
    connections: Annotated[int, Meta(description="Sessions delivered at the same time.", ge=1, le=64)] = 4
    timeout_seconds: Annotated[
        float, Meta(description="How long one request may take before it is sent again later.", ge=0.1, le=600)
    ] = 30.0
    owner_id: Annotated[
        Name | None,
        Meta(description="Owner that sessions are registered for.", examples=["1"]),
    ] = None
    repo_id: Annotated[
        Name | None,
        Meta(description="Repository that sessions are registered for.", examples=["2"]),
    ] = None
    live: Annotated[
        bool, Meta(description="Also send ephemeral events, redacted; the receiver shows them and stores none.")
    ] = False
    compression: Annotated[
        Literal["auto", "none"], Meta(description="auto: what the receiver says it can read; none: never.")
    ] = "auto"


class Source(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where events come from besides the CLI's files."""

    url: Annotated[
        str,
        Meta(
            description="rpc://HOST:PORT: a CLI server (copilot --headless --port N, or --ui-server), which is only "
            "asked and never told anything; ahp+ws://HOST:PORT or ahp+wss://HOST: an agent host, such as VS Code's, "
            "which is only listened to; tap: what the extension of exporter tap install shows live; file: the CLI's "
            "files, which are followed in any case.",
            examples=["rpc://127.0.0.1:4321"],
        ),
    ]
    token_file: Annotated[
        str | None,
        Meta(
            description="File that holds the server's COPILOT_CONNECTION_TOKEN, or the agent host's connection token; "
            "read again before every connection.",
            examples=["~/.config/exporter/rpc.token"],
            extra={"path": True},
        ),
    ] = None
    push: Annotated[
        bool,
        Meta(
            description="Have the server send the events of loaded sessions instead of asking for them. That attaches "
            "to them without a trace, but a session that its owner has closed ends only when the exporter hangs up."
        ),
    ] = False


class Limits(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much the exporter uses at most."""

    max_line_bytes: Annotated[
        int, Meta(description="Longer lines of a session file go to quarantine.", ge=64 * KIB, le=256 * MIB)
    ] = 16 * MIB
    open_files: Annotated[int, Meta(description="Session files held open at the same time.", ge=1, le=65_536)] = 64
    quarantine_bytes: Annotated[
        int,
        Meta(description="Size of the quarantine; when it is full the session stops.", ge=MIB, le=1024 * 1024 * MIB),
    ] = 256 * MIB
    quarantine_days: Annotated[int, Meta(description="How long quarantined events are kept.", ge=1, le=3650)] = 30
    keep_days: Annotated[
        int,
        Meta(
            description="Mission Control here forgets a session so long after its last event; 0: never.",
            ge=0,
            le=36_500,
        ),
    ] = 365
    keep_gb: Annotated[
        int, Meta(description="When all take more gigabytes, the oldest sessions go too; 0: never.", ge=0, le=1_000_000)
    ] = 20
    cache_bytes: Annotated[
        int,
        Meta(
            description="A sink further behind than this reads the file by itself instead of with the others.",
            ge=64 * KIB,
            le=1024 * MIB,
        ),
    ] = 8 * MIB
    journal_bytes: Annotated[
        int,
        Meta(
            description="Size of the journals, which hold the events of sessions without a file until every sink has "
            "them; when it is reached their source is not read on.",
            ge=MIB,
            le=1024 * 1024 * MIB,
        ),
    ] = 256 * MIB
    poll_seconds: Annotated[
        float,
        Meta(description="How often files are looked at where the system cannot report changes.", ge=0.05, le=3600),
    ] = 1.0
    incomplete_line_seconds: Annotated[
        float, Meta(description="A last line that stays incomplete for longer is reported.", ge=1, le=86_400)
    ] = 30.0


class Settings(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that can be set; paths are absolute once loaded."""

    copilot_home: Annotated[
        str,
        Meta(
            description="The CLI's own directory; sessions are read from session-state in it, nothing is written.",
            extra={"path": True},
        ),
    ] = "~/.copilot"
    state_dir: Annotated[
        str, Meta(description="Where marks, quarantine and the embedded store are kept.", extra={"path": True})
    ] = "~/.local/state/exporter"
    cache_dir: Annotated[str, Meta(description="Where compiled rules are kept.", extra={"path": True})] = (
        "~/.cache/exporter"
    )
    history_days: Annotated[
        int,
        Meta(
            description="Sessions that changed in the last days are delivered; older ones only by backfill.",
            ge=0,
            le=36_500,
            extra={"flag": "--days"},
        ),
    ] = 7
    give_up_seconds: Annotated[
        float,
        Meta(description="How long backfill and run --until-idle go on without an accepted request.", ge=0, le=86_400),
    ] = 60.0
    drain_seconds: Annotated[float, Meta(description="How long a stop waits for what is being sent.", ge=0, le=60)] = (
        1.5
    )
    port: Annotated[
        int, Meta(description="Port of the embedded Mission Control on loopback; 0 takes any.", ge=0, le=65_535)
    ] = 8411
    host_name: Annotated[
        Name | None,
        Meta(
            description="Name of this machine in reports, instead of its own.",
            examples=["laptop"],
        ),
    ] = None
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Meta(description="What is logged.")] = "info"
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
