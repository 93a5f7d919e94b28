"""The formats that the floor engine knows by themselves: one row per secret, with the whole extent of what is masked.

No pattern may need more than linear time: quantifiers that can meet their own beginning again are possessive, so a
flood of prefixes is consumed once. A row's `needles` are lower-case literals of which one is in every text that the
pattern matches.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# What a rule finds: start and end of the secret.
Hits = Iterator[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret; `find` yields the spans in a text, each with everything that must not survive."""

    id: str
    provider: str
    example: str
    needles: tuple[str, ...]
    find: Callable[[str], Hits]
    confidence: str = "high"
    hint: Callable[[str], object] | None = None  # asked about the whole line too, where the needles say little


def by_pattern(pattern: re.Pattern[str]) -> Callable[[str], Hits]:
    """Finds every match: its group 1 where it has one, else the whole of it."""
    group = min(pattern.groups, 1)

    def find(text: str) -> Hits:
        for match in pattern.finditer(text):
            yield match.span(group)

    return find


# id, provider, example (D stands for a run of made-up characters), needles, pattern.
ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "github-token",
        "GitHub",
        "ghp_D",
        "ghp_ gho_ ghu_ ghs_ ghr_",
        r"gh[pousr]_[A-Za-z0-9_-]{20,}+(?:\.[A-Za-z0-9_-]{8,}+){0,2}",
    ),
    ("github-pat", "GitHub", "github_pat_D", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,}+"),
    (
        "gitlab-token",
        "GitLab",
        "glpat-D",
        "glpat- gldt- glft- glsoat- glrt- glrtr- glcbt- glimt- glptt- glagent- gloas- glwt- glffct- gr1348941",
        r"(?:gl(?:pat|dt|ft|soat|rtr?|cbt|imt|ptt|agent|oas|wt|ffct)-|GR1348941)[A-Za-z0-9_-]{20,}+"
        r"(?:\.[0-9a-z]{2}\.[0-9a-z]{7,}+)?",
    ),
    ("stripe-key", "Stripe", "sk_live_D", "k_live_ k_test_ k_prod_", r"[rs]k_(?:live|test|prod)_[0-9A-Za-z]{16,}+"),
    ("stripe-webhook", "Stripe", "whsec_D", "whsec_", r"whsec_[A-Za-z0-9+/]{24,}+=*"),
    ("slack-token", "Slack", "xoxb-D", "xox", r"(?i)xox[a-z](?:\.xox[a-z])?-(?=[a-z-]*\d)[a-z0-9-]{8,}+"),
    ("slack-app-token", "Slack", "xapp-1-D", "xapp-", r"(?i)xapp-\d-[a-z0-9]+-\d+-[a-z0-9]{16,}+"),
    (
        "slack-webhook",
        "Slack",
        "https://hooks.slack.com/services/T1/B1/D",
        "hooks.slack.com",
        r"(?i)https?://hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[a-z0-9_/]{6,}+",
    ),
    (
        "aws-access-key-id",
        "AWS",
        "AKIADDDDDDDDDDDDDDDD",
        "a3t abia acca akia asia",
        r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16,}+",
    ),
    (
        "aws-secret-key",
        "AWS",
        "aws_secret_access_key = D",
        "aws",
        r"""(?i)aws[\w.\- ]{0,30}?(?:sec|key|pwd|pw|pass|token)\w{0,20}["'`\\\]\s]{0,6}"""
        r"""(?:=>|:=|=|:|,)\s{0,4}["'`\\]{0,6}"""
        r"(?-i:(?=[0-9A-Za-z/+]{0,39}[0-9/+])([0-9A-Za-z/+]{40})(?![0-9A-Za-z/+]))",
    ),
    (
        "azure-account-key",
        "Azure",
        "AccountKey=D",
        "accountkey= accesskey= sharedaccesskey=",
        r"(?i)(?:account|access)key=([a-z0-9+/%=]{20,}+)",
    ),
    (
        "npmrc-auth",
        "npm",
        "//registry.example/:_authToken=D",
        "_authtoken _auth= _password=",
        r"""(?i)(?:_authtoken|(?<![\w.\-])_(?:auth|password))\s*+=\s*+["']?(?!\$)(npm_[^\s"'\\\x00]++|[^\s"'\\\x00]{8,}+)""",
    ),
    ("npm-token", "npm", "npm_D", "npm_", r"npm_[A-Za-z0-9]{30,}+"),
    ("pypi-token", "PyPI", "pypi-AgEIcHlwaS5vcmcD", "pypi-", r"pypi-Ag[A-Za-z0-9_-]{50,}+"),
    ("sendgrid-key", "SendGrid", "SG.D.D", "sg.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{24,}+"),
    ("twilio-key", "Twilio", "SKD", "ac sk", r"(?:AC|SK)[a-z0-9]{32}"),
    ("telegram-token", "Telegram", "123456789:D", ":", r"\d{8,10}:[0-9A-Za-z_-]{35,}+"),
    (
        "discord-token",
        "Discord",
        "MD.D.D",
        ".",
        r"[MNO][A-Za-z\d_-]{23,25}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,}+",
    ),
    (
        "discord-webhook",
        "Discord",
        "https://discord.com/api/webhooks/1/D",
        "/api/webhooks/",
        r"/api/webhooks/\d+/[A-Za-z0-9_-]{24,}+",
    ),
    ("mailchimp-key", "Mailchimp", "D-us1", "-us", r"[0-9a-z]{32}-us[0-9]{1,2}"),
    ("anthropic-key", "Anthropic", "sk-ant-D", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}+"),
    (
        "openai-key",
        "OpenAI",
        "sk-proj-D",
        "sk-",
        r"sk-(?:(?:proj|svcacct|admin|service|None|or-v1)-[A-Za-z0-9_-]{20,}+|(?=[A-Za-z]*\d)[A-Za-z0-9]{32,}+)",
    ),
    ("square-secret", "Square", "sq0csp-D", "sq0", r"sq0[a-z]{3}-[0-9A-Za-z_-]{22,}+"),
    ("google-api-key", "Google", "AIzaD", "aiza", r"AIza[0-9A-Za-z_-]{35,}+"),
    ("google-oauth-secret", "Google", "GOCSPX-D", "gocspx-", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    ("google-oauth-token", "Google", "ya29.D", "ya29.", r"ya29\.[A-Za-z0-9_-]{24,}+(?:\.[A-Za-z0-9_-]+)*"),
    ("huggingface-token", "Hugging Face", "hf_D", "hf_", r"hf_[A-Za-z0-9]{30,}+"),
    ("groq-key", "Groq", "gsk_D", "gsk_", r"gsk_[A-Za-z0-9]{40,}+"),
    ("xai-key", "xAI", "xai-D", "xai-", r"xai-[A-Za-z0-9]{60,}+"),
    ("perplexity-key", "Perplexity", "pplx-D", "pplx-", r"pplx-[A-Za-z0-9]{40,}+"),
    ("databricks-token", "Databricks", "dapiD", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    ("digitalocean-token", "DigitalOcean", "dop_v1_D", "do dor doo", r"do[por]_v1_[0-9a-f]{40,}+"),
    ("vault-token", "HashiCorp", "hvs.D", "hvs. hvb. hvr.", r"hv[sbr]\.[A-Za-z0-9_-]{24,}+"),
    ("terraform-token", "HashiCorp", "D.atlasv1.D", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}+"),
    ("shopify-token", "Shopify", "shpat_D", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}+"),
    ("grafana-token", "Grafana", "glsa_D", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_+/=]{32,}+"),
    ("docker-token", "Docker", "dckr_pat_D", "dckr_", r"dckr_[op]at_[A-Za-z0-9_-]{20,}+"),
    ("supabase-token", "Supabase", "sbp_D", "sbp_ sb_secret_", r"(?:sbp|sb_secret)_[A-Za-z0-9_-]{24,}+"),
    ("notion-token", "Notion", "ntn_D", "ntn_", r"ntn_[A-Za-z0-9]{40,}+"),
    ("linear-key", "Linear", "lin_api_D", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}+"),
    ("rubygems-key", "RubyGems", "rubygems_D", "rubygems_", r"rubygems_[0-9a-f]{40,}+"),
    ("postman-key", "Postman", "PMAK-D", "pmak-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{24,}+"),
    ("age-key", "age", "AGE-SECRET-KEY-1D", "age-secret-key-1", r"(?i)AGE-SECRET-KEY-1[0-9a-z]{20,}+"),
)

# Rows whose needles are in nearly every line; their pattern needs no context, so it is its own hint.
SELF_EVIDENT = frozenset({"twilio-key", "telegram-token", "discord-token", "mailchimp-key"})


def token_rules() -> tuple[Rule, ...]:
    """The rows of the table, compiled."""
    rules = []
    for name, provider, example, needles, source in ROWS:
        pattern = re.compile(source)
        hint = pattern.search if name in SELF_EVIDENT else None
        rules.append(Rule(name, provider, example, tuple(needles.split()), by_pattern(pattern), "high", hint))
    return tuple(rules)
