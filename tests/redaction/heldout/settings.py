"""Where a token stands: assignments in configuration and code, headers, flags, logs and prose."""

import re
from dataclasses import dataclass

from tests.redaction.heldout.dice import Dice

# K is the name in capitals, k in small letters, c in camel case, d with dashes, h with spaces, V the value, W any word.
NAMED = {
    "env": "K=V",
    "env-among-others": "NODE_ENV=production\nPORT=8080\nK=V\nLOG_LEVEL=info",
    "env-quoted": 'K="V"',
    "env-single-quoted": "K='V'",
    "env-comment": "K=V  # rotate in W",
    "env-commented-out": "# K=V",
    "shell-export": "export K=V",
    "shell-export-quoted": 'export K="V" && make deploy',
    "shell-prefix": "K=V python manage.py migrate",
    "shell-trace": "+ export K=V\n+ K=V\n+ ./deploy.sh",
    "fish-set": "set -gx K V",
    "csh-setenv": "setenv K V",
    "powershell-env": '$env:K = "V"',
    "batch-set": "set K=V",
    "setx": 'setx K "V" /M',
    "yaml": "k: V",
    "yaml-quoted": 'service:\n  name: W\n  k: "V"\n  retries: 3',
    "yaml-single-quoted": "k: 'V'",
    "yaml-name-value": "env:\n  - name: K\n    value: V",
    "yaml-name-value-quoted": 'envVars:\n  - name: "K"\n    value: "V"',
    "yaml-list-env": "environment:\n  - K=V",
    "github-workflow": "      - run: make publish\n        env:\n          K: V",
    "toml": '[W]\nk = "V"',
    "ini": "[W]\nk = V",
    "properties": "W.d=V",
    "json": '{"W": true, "c": "V"}',
    "json-pretty": '{\n  "name": "W",\n  "K": "V",\n  "port": 443\n}',
    "json-compact": '{"k":"V","n":1}',
    "json-mcp-config": '{"mcpServers": {"W": {"command": "npx", "args": ["-y", "@W/mcp"], "env": {"K": "V"}}}}',
    "json-name-value": '[{"name": "K", "value": "V"}, {"name": "PORT", "value": "80"}]',
    "xml-element": "<W>\n  <c>V</c>\n</W>",
    "xml-add-key": '<add key="c" value="V" />',
    "plist": "<key>K</key>\n<string>V</string>",
    "terraform": 'provider "W" {\n  k = "V"\n}',
    "tfvars": 'k = "V"',
    "terraform-output": "Outputs:\n\nk = V\nregion = eu-west-1",
    "dockerfile-env": "FROM alpine\nENV K=V\nRUN make",
    "dockerfile-env-space": "ENV K V",
    "dockerfile-arg": "ARG K=V",
    "docker-run": "docker run --rm -e K=V acme/W:latest",
    "gradle": 'buildConfigField "String", "K", "\\"V\\""',
    "python": 'K = "V"',
    "python-keyword": 'client = Client(k="V", timeout=30)',
    "python-dict": 'config = {"k": "V", "retries": 3}',
    "python-environ": 'os.environ["K"] = "V"',
    "python-environ-default": 'token = os.environ.get("K", "V")',
    "python-repr": "KeyError: 'region'\nlocals: {'self': <W.Client object at 0x7f3a>, 'k': 'V'}",
    "python-fixture": 'monkeypatch.setenv("K", "V")',
    "javascript": 'const c = "V";',
    "javascript-object": "module.exports = { c: 'V', debug: false };",
    "javascript-fallback": 'const key = process.env.K || "V";',
    "javascript-template": "const c = `V`;",
    "typescript-field": "private readonly c: string = 'V';",
    "go": 'c := "V"',
    "go-const": 'const c = "V"',
    "go-struct": 'cfg := Config{\n\tName: "W",\n\tC: "V",\n}',
    "go-setenv": 'os.Setenv("K", "V")',
    "java": 'private static final String K = "V";',
    "java-builder": 'builder.c("V").build();',
    "kotlin": 'val c = "V"',
    "csharp": 'var c = "V";',
    "ruby": "K = 'V'.freeze",
    "ruby-hash": "config = { k: 'V', host: 'W' }",
    "ruby-rocket": '"k" => "V"',
    "php-define": "define('K', 'V');",
    "php-array": "'k' => env('K', 'V'),",
    "rust": 'const K: &str = "V";',
    "swift": 'let c = "V"',
    "c-define": '#define K "V"',
    "header": "X-D: V",
    "curl-header": "curl -H 'X-D: V' https://api.example.com/v2/W",
    "flag-equals": "W-cli deploy --d=V --region eu",
    "flag-space": "W-cli deploy --d V --region eu",
    "helm-set": "helm upgrade W ./chart --set config.c=V",
    "gh-secret-set": "gh secret set K --body 'V'",
    "vercel-style-listing": "  K    V    Production",
    "config-listing": "=== W Config Vars\nK:         V\nPORT:      80",
    "logfmt": 'time=2026-08-11T10:00:01Z level=debug msg="loaded" k=V attempt=1',
    "log-line": "2026-08-11 10:00:01,221 DEBUG W.settings: c=V",
    "markdown-list": "- **K**: `V`",
    "markdown-table": "| Variable | Value |\n|---|---|\n| K | V |",
    "markdown-colon": "K: V",
    "prose-label": "Please use this h: V",
    "prose-is": "my h is V and it should work now",
    "csv": "name,value\nK,V",
    "query": "https://api.example.com/v1/W?k=V&page=2",
    "http-form": "k=V&format=json",
    "sql-insert": "INSERT INTO settings (name, value) VALUES ('k', 'V');",
    "node-inspect": "{ W: [Object], c: 'V', ttl: 60 }",
    "ruby-inspect": '#<W::Client @region="eu", @k="V">',
    "go-spew": '(*W.Config){C: (string) (len=40) "V"}',
    "java-to-string": "Config(host=W, c=V, port=443)",
}
BARE = {
    "bare": "V",
    "bare-prose": "it printed V so I pasted that into the page",
    "bare-parenthesis": "rotated today (old one was V).",
    "bare-backtick": "I used `V` for the test.",
    "bare-quoted": 'fn("V")',
    "bare-positional": "W login V",
    "bare-echo": "echo V | W auth --with-token",
    "bare-list": "one:\n* V\n* W",
    "bare-array": '["V", "W"]',
    "bare-path": "https://api.example.com/hook/V/send",
    "bare-angle": "<V>",
    "bare-neutral-name": 'value = "V"',
    "bare-after-colon": "got:V",
    "bare-comma": "W,V,2026-08-11",
    "bare-tab": "W\tV\tok",
    "bare-debugger": "(Pdb) p settings.K\n'V'",
    "bare-assertion": "E       AssertionError: assert 'V' == ''\nE        +  where 'V' = Settings().k",
    "bare-sentence-end": "The answer was V.",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A place for a key and a value; in a bare one the key is not there."""

    name: str
    template: str
    bare: bool

    def holds(self, value: str) -> bool:
        """Whether a person would write this value there without changing it."""
        around = re.search(r"(.?)V(.?)", self.template)
        assert around is not None
        quoted = around[1] in "\"'`" and around[1] != ""
        return quoted or not re.search(r"[\s;$#&]", value)

    def put(self, dice: Dice, key: str, value: str) -> str:
        """The text with the key and the value in place."""
        small = key.lower()
        words = small.split("_")
        forms = {
            "K": key.upper(),
            "k": small,
            "c": words[0] + "".join(word.title() for word in words[1:]),
            "C": "".join(word.title() for word in words),
            "d": small.replace("_", "-"),
            "D": "-".join(word.title() for word in words),
            "h": " ".join(words),
            "V": value,
            "W": dice.word(),
        }
        return re.sub(r"(?<![A-Za-z])[KkcCdDhVW](?![A-Za-z])", lambda match: forms[match[0]], self.template)


SETTINGS = [Setting(name, text, False) for name, text in NAMED.items()]
SETTINGS += [Setting(name, text, True) for name, text in BARE.items()]
