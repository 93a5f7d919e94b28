"""The settings of redaction: what is masked besides the built-in rules, and what is not."""

from typing import Annotated, Literal

from msgspec import Meta

from config.fields import Shown

KNOWN_ENV = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*_KEY")


class Allow(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something that looks like a secret and is none; exactly one of its keys is given."""

    value: Annotated[str | None, Meta(description="This very text.", examples=["AKIAIOSFODNN7EXAMPLE"])] = None
    regex: Annotated[str | None, Meta(description="Texts that match as a whole.", examples=["EXAMPLE-[0-9]+"])] = None
    rule: Annotated[
        str | None, Meta(description="What this rule finds (exporter redact rules).", examples=["aws-access-key-id"])
    ] = None
    path: Annotated[
        str | None,
        Meta(
            description="What tool calls write to and read from files with such names; known values are still masked.",
            examples=["fixtures/**"],
        ),
    ] = None


class Redaction(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is masked besides the built-in rules, and what is not."""

    known_env: Annotated[
        tuple[str, ...],
        Meta(description="The values of environment variables with such names are masked in every form."),
    ] = KNOWN_ENV
    known_files: Annotated[
        tuple[str, ...],
        Meta(
            description="The contents of these files are masked in every form.",
            examples=[["~/.config/exporter/mc.token"]],
            extra={"path": True},
        ),
    ] = ()
    extra_rules: Annotated[
        tuple[str, ...],
        Meta(
            description="Files with rules of your own: tables as exporter redact rules lists them.",
            examples=[["~/.config/exporter/rules.toml"]],
            extra={"path": True},
        ),
    ] = ()
    known_env_of_cli: Annotated[
        bool,
        Meta(
            description="Also the environment of the CLI process that writes the session (Linux, held in memory only)."
        ),
    ] = False
    marker: Annotated[
        Literal["tag", "stars"],
        Meta(
            description="What stands where a secret was: tag: [REDACTED:rule:tag], in which the same secret always has "
            "the same tag; stars: ******."
        ),
    ] = "tag"
    opaque: Annotated[
        Literal["pass", "drop"],
        Meta(
            description="What happens to encrypted fields, which nobody but the model's provider can read "
            "(encryptedContent, reasoningOpaque): pass: they are left as they are; drop: their content is taken out."
        ),
    ] = "pass"
    plugins: Annotated[
        tuple[str, ...],
        Meta(
            description="Python files with detect-secrets plugins of your own, run in this process.",
            examples=[["~/.config/exporter/plugins/in_house.py"]],
            extra={"path": True},
        ),
    ] = ()
    baselines: Annotated[
        tuple[str, ...],
        Meta(
            description="Baselines of detect-secrets; what they say is no secret is not masked.",
            examples=[["~/.config/exporter/secrets.baseline"]],
            extra={"path": True},
        ),
    ] = ()
    budget_ms: Annotated[
        float,
        Meta(description="An event that takes longer to redact goes to quarantine, never out.", ge=1, le=600_000),
    ] = 10_000.0
    allow: Annotated[tuple[Allow, ...], Meta(description="What is not a secret although it looks like one.")] = ()
