"""The settings of redaction."""

from typing import Annotated, Literal

from config.fields import Shown, setting

KNOWN_ENV = ("*TOKEN*", "*SECRET*", "*PASSWORD*", "*_KEY")


class Allow(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something that is not masked although a rule finds it; exactly one of its keys is given."""

    value: Annotated[str | None, setting("This very text.", "AKIAIOSFODNN7EXAMPLE")] = None
    regex: Annotated[str | None, setting("Texts that match as a whole.", "EXAMPLE-[0-9]+")] = None
    rule: Annotated[
        str | None, setting("All findings of this rule (see exporter redact rules).", "aws-access-key-id")
    ] = None
    path: Annotated[
        str | None,
        setting(
            "Content of these files in tool calls that read or write them, except known values.",
            "fixtures/**",
        ),
    ] = None


class Redaction(Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is masked in addition to the findings of the built-in rules, and what is not masked."""

    known_env: Annotated[
        tuple[str, ...], setting("Patterns of names of environment variables; their values are masked in every form.")
    ] = KNOWN_ENV
    known_files: Annotated[
        tuple[str, ...],
        setting(
            "Files whose lines are masked in every form in which they are written.",
            ["~/.config/exporter/mc.token"],
            path=True,
        ),
    ] = ()
    extra_rules: Annotated[
        tuple[str, ...],
        setting(
            "Files with rules of your own, in the format of docs/redaction-rules.md.",
            ["~/.config/exporter/rules.toml"],
            path=True,
        ),
    ] = ()
    known_env_of_cli: Annotated[
        bool, setting("Apply known_env also to the CLI process that writes the session (Linux; held in memory only).")
    ] = False
    marker: Annotated[
        Literal["tag", "stars"],
        setting(
            "What replaces a secret: tag: [REDACTED:rule:tag], where the same secret always has the same tag; "
            "stars: ******."
        ),
    ] = "tag"
    opaque: Annotated[
        Literal["pass", "drop"],
        setting(
            "Encrypted fields (encryptedContent, reasoningOpaque), which only the provider of the model can read: "
            "pass: they are not changed; drop: their content is removed."
        ),
    ] = "pass"
    plugins: Annotated[
        tuple[str, ...],
        setting(
            "Python files with plugins of detect-secrets, which run in this process.",
            ["~/.config/exporter/plugins/in_house.py"],
            path=True,
        ),
    ] = ()
    baselines: Annotated[
        tuple[str, ...],
        setting(
            "Baselines of detect-secrets; what they audit as no secret is not masked.",
            ["~/.config/exporter/secrets.baseline"],
            path=True,
        ),
    ] = ()
    budget_ms: Annotated[
        float, setting("An event whose redaction takes longer is quarantined and never delivered.", ge=1, le=600_000)
    ] = 10_000.0
    allow: Annotated[tuple[Allow, ...], setting("What is not masked although a rule finds it.")] = ()
