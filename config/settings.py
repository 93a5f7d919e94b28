"""Every setting: one field is its type, default and bounds, and a line of the docstring of its struct its meaning.

Everything else (checks, example, schema, variables, flags) is made from these structs.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from config.fields import Shown, setting

KIB = 1024
MIB = 1024 * KIB
KNOWN_ENV = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*_KEY")

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
Signal: TypeAlias = Literal["traces", "metrics", "logs"]


class MissionControl(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Mission Control that sessions are delivered to.

    url: Address that ends in /agents, as for the uploader of the CLI.
    token_file: File with the token. It is read whenever the token is needed, so it may change.
    token: Token, sent as Authorization: Bearer to this address only.
    allow_http: Send the token over http:// to an address that is not loopback; anybody on the way can read it.
    max_event_bytes: Larger events are quarantined, unless the receiver announces a higher limit.
    certificate_file: CA certificates (PEM) to trust instead of those of the system.
    proxy: Proxy of requests: env: that of HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY; none; or its address. An
        address on loopback never has one.
    connections: Number of sessions that are delivered at the same time.
    timeout_seconds: Timeout of one request, after which it is retried.
    owner_id: Owner that sessions are registered for.
    repo_id: Repository that sessions are registered for.
    live: Also send ephemeral events, redacted. The receiver shows them and does not store them.
    compression: auto: compress requests in a way that the receiver announces; none: never.
    """

    url: Annotated[str, setting("https://mc.example.com/agents", address="http")]
    token_file: Annotated[str | None, setting("~/.config/exporter/mc.token", path=True, instead_of="token")] = None
    token: Annotated[str | None, setting("the-token", secret=True, instead_of="token_file")] = None
    allow_http: bool = False
    max_event_bytes: Annotated[int, setting(ge=64 * KIB, le=64 * MIB)] = 8 * MIB
    certificate_file: Annotated[str | None, setting("~/.config/exporter/mc-ca.pem", path=True)] = None
    proxy: Annotated[str, setting("http://proxy.example.com:3128", address="proxy")] = "env"
    connections: Annotated[int, setting(ge=1, le=64)] = 4
    timeout_seconds: Annotated[float, setting(ge=0.1, le=600)] = 30.0
    owner_id: Annotated[Name | None, setting("1")] = None
    repo_id: Annotated[Name | None, setting("2")] = None
    live: bool = False
    compression: Literal["auto", "none"] = "auto"


class Otel(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An OTLP endpoint that traces, metrics and logs are sent to.

    endpoint: Address; for http/protobuf /v1/traces, /v1/metrics and /v1/logs are appended.
    append_path: false: the endpoint is the complete address of a single signal, and nothing is appended.
    protocol: Protocol of the endpoint.
    signals: Signals to send.
    content: none: types, ids, times, numbers, tool names; metadata: also names of models, agents, repositories and
        branches; redacted: also texts, arguments and paths, with secrets masked.
    semconv: Names and shape of what is sent: cli: as the newest CLI writes it (1.0.102); latest: the GenAI conventions
        as they are today; legacy: as CLI 1.0.48 writes it; both: cli, with the names of legacy beside it.
    inference_details: Also send each call of a model as a log record (gen_ai.client.inference.operation.details), with
        its messages if content is redacted. Only with semconv = "latest".
    temporality: Temporality of metrics: cumulative: since the start; delta: since the last point.
    metrics_repeat_seconds: Interval at which run repeats cumulative metrics, so that backends go on showing them; 0:
        never.
    idle_metrics: Also repeat metrics that did not change for five minutes. Without it they vanish until they change,
        and fewer points are paid for.
    headers_file: File with headers, one name=value per line.
    headers: Headers of every request, such as authorization, sent to this endpoint only.
    allow_http: Send headers over http:// to an address that is not loopback; anybody on the way can read them.
    timeout_seconds: Timeout of one request, after which it is retried.
    compression: Compression of requests: auto: gzip, but none to an address on loopback; gzip; none.
    certificate_file: CA certificates (PEM) to trust instead of those of the system.
    client_certificate_file: Client certificate (PEM).
    client_key_file: Private key (PEM) of the client certificate.
    proxy: Proxy of requests: env: that of HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY; none; or its address. An
        address on loopback never has one.
    service_name: service.name of everything that is sent; the default is that of the CLI.
    health: Also send the health of the exporter: lag, retries, rejected, masked and quarantined events.
    host_name: Send the name of this machine, as host.name, unless content is none.
    user_name: Send the login name of who owns the file of a session, as user.name, unless content is none.
    resource_attributes: Additional attributes of the resource, such as deployment.environment.
    history_days: Days before its first run from which an endpoint is sent what sessions hold; 0: what begins from then
        on. exporter backfill --sink otel sends the rest.
    """

    endpoint: Annotated[str, setting("http://localhost:4318", address="http")]
    append_path: bool = True
    protocol: Literal["http/protobuf", "grpc"] = "http/protobuf"
    signals: Annotated[tuple[Signal, ...], setting(min_length=1)] = ("traces", "metrics", "logs")
    content: Literal["none", "metadata", "redacted"] = "metadata"
    semconv: Literal["cli", "latest", "legacy", "both"] = "cli"
    inference_details: bool = False
    temporality: Literal["cumulative", "delta"] = "cumulative"
    metrics_repeat_seconds: Annotated[float, setting(ge=0, le=3600)] = 60.0
    idle_metrics: bool = True
    headers_file: Annotated[str | None, setting("~/.config/exporter/otel.headers", path=True, instead_of="headers")] = (
        None
    )
    headers: Annotated[
        dict[str, str], setting({"authorization": "Bearer the-token"}, secret=True, instead_of="headers_file")
    ] = field(default_factory=dict)
    allow_http: bool = False
    timeout_seconds: Annotated[float, setting(ge=0.1, le=600)] = 10.0
    compression: Literal["auto", "gzip", "none"] = "auto"
    certificate_file: Annotated[str | None, setting("/etc/ssl/otel-ca.pem", path=True)] = None
    client_certificate_file: Annotated[str | None, setting("/etc/ssl/otel.pem", path=True)] = None
    client_key_file: Annotated[str | None, setting("/etc/ssl/otel.key", path=True)] = None
    proxy: Annotated[str, setting("http://proxy.example.com:3128", address="proxy")] = "env"
    service_name: Annotated[str, setting(min_length=1, max_length=255)] = "github-copilot"
    health: bool = False
    host_name: bool = True
    user_name: bool = True
    resource_attributes: Annotated[dict[str, str], setting({"deployment.environment": "laptop"})] = field(
        default_factory=dict
    )
    history_days: Annotated[int, setting(ge=0, le=36_500)] = 0


class Archive(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files that sessions are kept in.

    url: Where it is: file:// and the absolute path of a directory, which is made if it is not there.
    seal_bytes: Events of a session are written as soon as there are so many bytes of them.
    seal_seconds: Fewer are written when the session ended, or had none for so long.
    """

    url: Annotated[str, setting("file:///var/backups/copilot-sessions", address="file")]
    seal_bytes: Annotated[int, setting(ge=64 * KIB, le=64 * MIB)] = 8 * MIB
    seal_seconds: Annotated[float, setting(ge=0.1, le=86_400)] = 60.0


class Source(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A source of events in addition to the files of the CLI.

    url: rpc://HOST:PORT: a CLI server (copilot --headless --port N, or --ui-server), which is only read from;
        ahp+ws://HOST:PORT or ahp+wss://HOST: an agent host, such as that of VS Code, which is only listened to; tap:
        what the extension of exporter tap install shows live; file: the files of the CLI, which are always followed.
    token_file: File with the COPILOT_CONNECTION_TOKEN of the server or the connection token of the agent host. It is
        read before every connection.
    push: true: the server sends the events of loaded sessions; false: the exporter asks for them. With true the
        exporter attaches to these sessions, which leaves no trace in them; but a session that its owner has closed ends
        only when the exporter disconnects.
    """

    url: Annotated[str, setting("rpc://127.0.0.1:4321")]
    token_file: Annotated[str | None, setting("~/.config/exporter/rpc.token", path=True)] = None
    push: bool = False


class Allow(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something that is not masked although a rule finds it; exactly one of its keys is given.

    value: This very text.
    regex: Texts that match as a whole.
    rule: All findings of this rule (see exporter redact rules).
    path: Content of these files in tool calls that read or write them, except known values.
    """

    value: Annotated[str | None, setting("AKIAIOSFODNN7EXAMPLE")] = None
    regex: Annotated[str | None, setting("EXAMPLE-[0-9]+")] = None
    rule: Annotated[str | None, setting("aws-access-key-id")] = None
    path: Annotated[str | None, setting("fixtures/**")] = None


class Redaction(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is masked in addition to the findings of the built-in rules, and what is not masked.

    known_env: Patterns of names of environment variables; their values are masked in every form.
    known_files: Files whose lines are masked in every form in which they are written.
    extra_rules: Files with rules of your own, in the format of docs/redaction-rules.md.
    known_env_of_cli: Apply known_env also to the CLI process that writes the session (Linux; held in memory only).
    marker: What replaces a secret: tag: [REDACTED:rule:tag], where the same secret always has the same tag; stars:
        ******.
    weak_passwords: A single word as a password, also with digits behind it, where its place proves that it is one
        (an address, an option, an environment variable): mask; leave.
    opaque: Encrypted fields (encryptedContent, reasoningOpaque), which only the provider of the model can read: pass:
        they are not changed; drop: their content is removed.
    plugins: Python files with plugins of detect-secrets, which run in this process.
    baselines: Baselines of detect-secrets; what they audit as no secret is not masked.
    budget_ms: An event whose redaction takes longer is quarantined and never delivered.
    allow: What is not masked although a rule finds it.
    """

    known_env: tuple[str, ...] = KNOWN_ENV
    known_files: Annotated[tuple[str, ...], setting(["~/.config/exporter/mc.token"], path=True)] = ()
    extra_rules: Annotated[tuple[str, ...], setting(["~/.config/exporter/rules.toml"], path=True)] = ()
    known_env_of_cli: bool = False
    marker: Literal["tag", "stars"] = "tag"
    weak_passwords: Literal["mask", "leave"] = "mask"
    opaque: Literal["pass", "drop"] = "pass"
    plugins: Annotated[tuple[str, ...], setting(["~/.config/exporter/plugins/in_house.py"], path=True)] = ()
    baselines: Annotated[tuple[str, ...], setting(["~/.config/exporter/secrets.baseline"], path=True)] = ()
    budget_ms: Annotated[float, setting(ge=1, le=600_000)] = 10_000.0
    allow: tuple[Allow, ...] = ()


class Limits(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Upper limits of what the exporter uses.

    max_line_bytes: Longer lines of a session file are quarantined.
    open_files: Number of session files that are open at the same time; fewer where `ulimit -n` is low.
    quarantine_bytes: Size of the quarantine. When it is full, the session stops.
    quarantine_days: Days after which quarantined events are deleted.
    keep_days: Days after its last event when the embedded Mission Control deletes a session; 0: never.
    keep_gb: Gigabytes of all sessions above which the embedded Mission Control deletes the oldest ones; 0: no limit.
    cache_bytes: A sink that is behind by more than this reads the file by itself and not with the others.
    journal_bytes: Size of the journals, which hold the events of sessions without a file until they are delivered to
        every sink. At this size their source is paused.
    poll_seconds: Interval of checking files where the system cannot report changes.
    incomplete_line_seconds: A last line that is incomplete for longer than this is reported.
    abandoned_after_hours: What a session has begun is given up after this time without an event, where nobody can tell
        whether its process runs.
    """

    max_line_bytes: Annotated[int, setting(ge=64 * KIB, le=256 * MIB)] = 16 * MIB
    open_files: Annotated[int, setting(ge=1, le=65_536)] = 64
    quarantine_bytes: Annotated[int, setting(ge=MIB, le=1024 * 1024 * MIB)] = 256 * MIB
    quarantine_days: Annotated[int, setting(ge=1, le=3650)] = 30
    keep_days: Annotated[int, setting(ge=0, le=36_500)] = 365
    keep_gb: Annotated[int, setting(ge=0, le=1_000_000)] = 20
    cache_bytes: Annotated[int, setting(ge=64 * KIB, le=1024 * MIB)] = 8 * MIB
    journal_bytes: Annotated[int, setting(ge=MIB, le=1024 * 1024 * MIB)] = 256 * MIB
    poll_seconds: Annotated[float, setting(ge=0.05, le=3600)] = 1.0
    incomplete_line_seconds: Annotated[float, setting(ge=1, le=86_400)] = 30.0
    abandoned_after_hours: Annotated[float, setting(ge=0.001, le=8_760)] = 24.0


class Thresholds(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When `exporter status --check` ends with 4.

    lag_seconds: The oldest event that a sink has not accepted is as old as this, or older.
    quarantined: So many events are in quarantine, or more.
    """

    lag_seconds: Annotated[float, setting(ge=0, le=36_500 * 86_400)] = 300.0
    quarantined: Annotated[int, setting(ge=1, le=1_000_000_000)] = 1


class QuotaSettings(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What each tenant of a receiver may use.

    events_per_second: How many events each receiver takes of a tenant in a second; above it answers 429 with
        Retry-After.
    bytes: How many bytes of a tenant are kept; above it uploads are answered 403 quota_exceeded.
    """

    events_per_second: Annotated[Annotated[int, Meta(ge=1, le=10_000_000)] | None, setting(5000)] = None
    bytes: Annotated[Annotated[int, Meta(ge=1, le=1_000_000 * 10**9)] | None, setting(100_000_000_000)] = None


class ReceiverSettings(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Mission Control that is run for a team.

    store: Address of its store: a path, sqlite:///PATH or postgresql://HOST/DATABASE; --store overrides it.
    store_file: File with the address of the store, for one with a password.
    public_url: Address under which a reverse proxy serves it; --public-url overrides it.
    index: Addresses of index workers, which searches on PostgreSQL ask; --index overrides it.
    index_token_file: File with the token of the index workers.
    quota: What each tenant may use.
    """

    store: Annotated[str | None, setting("postgresql://mc@db.example.com/mc", secret=True, instead_of="store_file")] = (
        None
    )
    store_file: Annotated[str | None, setting("~/.config/exporter/store.url", path=True, instead_of="store")] = None
    public_url: Annotated[str | None, setting("https://mc.example.com/mc")] = None
    index: Annotated[tuple[str, ...], setting(["http://10.0.0.5:8412"])] = ()
    index_token_file: Annotated[str | None, setting("~/.config/exporter/index.token", path=True)] = None
    quota: QuotaSettings = field(default_factory=QuotaSettings)


class Metrics(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What monitors are told over HTTP: /metrics for Prometheus, /healthz (alive), /readyz (follows and can remember).

    listen: Address and port to listen on, such as 127.0.0.1:9464; nothing is listened on without it.
    token_file: File with the token that /metrics needs, as Authorization: Bearer. It is read for every request.
    allow_open: Listen beyond loopback without a token; anybody in the network can read the metrics.
    """

    listen: Annotated[str | None, setting("127.0.0.1:9464", address="listen")] = None
    token_file: Annotated[str | None, setting("~/.config/exporter/metrics.token", path=True)] = None
    allow_open: bool = False


class Settings(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All settings; paths are absolute once loaded.

    copilot_home: Directory of the CLI, a pattern such as /home/*/.copilot, or an array of both. Sessions are read from
        session-state in each; nothing is written. Directories that match later are taken in.
    state_dir: Directory of marks, quarantine and the embedded store.
    cache_dir: Directory of the compiled rules.
    history_days: Sessions that changed within this number of days are delivered; older ones only by backfill.
    give_up_seconds: Time without an accepted request after which backfill and run --until-idle end.
    drain_seconds: Time that a stop waits for requests in flight.
    linger_seconds: Time for which run, asked to stop by SIGTERM, goes on following sessions that are open, until they
        have ended and are delivered; for an exporter that is stopped together with the CLI, as in a pod.
    port: Port of the embedded Mission Control on loopback; 0: any free port.
    host_name: Name of this machine in reports and telemetry, instead of its host name.
    log_level: Lowest level that is logged.
    log_format: Form of the log of run, up and mission-control serve on stderr: text; json: one JSON document a line.
    source: Where events come from besides the CLI's files; nothing is connected to unless it is named.
    mission_control: Where sessions are delivered; for more than one, [mission_control.NAME] each.
    otel: Where traces, metrics and logs are sent; for more than one, [otel.NAME] each.
    archive: Where sessions are kept as files, redacted; for more than one, [archive.NAME] each.
    redaction: What is masked besides the built-in rules, and what is not.
    limits: How much the exporter uses at most.
    check: When exporter status --check finds fault with what is pending.
    receiver: What exporter mission-control serve runs on.
    metrics: What monitors can ask over HTTP.
    """

    copilot_home: Annotated[str | tuple[str, ...], setting(path=True, many=True)] = "~/.copilot"
    state_dir: Annotated[str, setting(path=True)] = "~/.local/state/exporter"
    cache_dir: Annotated[str, setting(path=True)] = "~/.cache/exporter"
    history_days: Annotated[int, setting(ge=0, le=36_500, flag="--days")] = 7
    give_up_seconds: Annotated[float, setting(ge=0, le=86_400)] = 60.0
    drain_seconds: Annotated[float, setting(ge=0, le=60)] = 1.5
    linger_seconds: Annotated[float, setting(ge=0, le=3_600)] = 0.0
    port: Annotated[int, setting(ge=0, le=65_535)] = 8411
    host_name: Annotated[Name | None, setting("laptop")] = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    source: tuple[Source, ...] = ()
    mission_control: dict[str, MissionControl] = field(default_factory=dict)
    otel: dict[str, Otel] = field(default_factory=dict)
    archive: dict[str, Archive] = field(default_factory=dict)
    redaction: Redaction = field(default_factory=Redaction)
    limits: Limits = field(default_factory=Limits)
    check: Thresholds = field(default_factory=Thresholds)
    receiver: ReceiverSettings = field(default_factory=ReceiverSettings)
    metrics: Metrics = field(default_factory=Metrics)
