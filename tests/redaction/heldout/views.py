"""How a tool shows a text: diffs, numbered lines, search output, colours, logs, encodings and cut ends."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from tests.redaction.heldout.dice import Dice

Shape = Callable[[Dice, str], str]


def each(line: Callable[[Dice, int, str], str]) -> Shape:
    """A view that changes every line by itself."""

    def shape(dice: Dice, text: str) -> str:
        return "\n".join(line(dice, at, one) for at, one in enumerate(text.split("\n"), dice.randint(1, 400)))

    return shape


def diff(dice: Dice, text: str) -> str:
    """A change that adds the text."""
    name, lines = f"config/{dice.word()}.cfg", text.split("\n")
    head = (
        f"diff --git a/{name} b/{name}\nindex {dice.of('x', 7)}..{dice.of('x', 7)} 100644\n--- a/{name}\n+++ b/{name}\n"
    )
    return f"{head}@@ -1,2 +1,{len(lines) + 2} @@\n # settings\n" + "\n".join("+" + line for line in lines) + "\n # end"


def diff_removed(dice: Dice, text: str) -> str:
    """A change that takes the text away and puts a reference in its place."""
    lines = text.split("\n")
    return (
        f"@@ -4,{len(lines)} +4,1 @@ {dice.word()}\n" + "\n".join("-" + line for line in lines) + "\n+load_from_store()"
    )


def coloured(dice: Dice, text: str) -> str:
    """Colours as a highlighter sets them: words before and values after `=` and `:`."""
    shade = dice.choice(("32", "1;33", "38;5;141"))
    return re.sub(r"(?m)^(\s*)([\w.-]+)(\s?[=:]\s?)(\S+)", rf"\1\033[36m\2\033[0m\3\033[{shade}m\4\033[0m", text)


def coloured_lines(dice: Dice, text: str) -> str:
    """A colour around every line, as a diff in a terminal has it."""
    return "\n".join(f"\033[{dice.choice((31, 32))}m{line}\033[m" for line in text.split("\n"))


def in_json(levels: int) -> Shape:
    """The text as a member of a document, written as JSON so many times."""

    def shape(dice: Dice, text: str) -> str:
        for _ in range(levels):
            text = json.dumps({"status": 200, dice.choice(("body", "text", "stdout", "output")): text, "ok": True})
        return text

    return shape


def unicode_escapes(_dice: Dice, text: str) -> str:
    """The text in JSON as .NET writes it: signs as \\u00XX."""
    escaped = re.sub(r"[+<>&'`]", lambda match: f"\\u{ord(match[0]):04X}", json.dumps(text)[1:-1])
    return f'{{"value":"{escaped}"}}'


def slash_escapes(_dice: Dice, text: str) -> str:
    """The text in JSON as PHP writes it: slashes escaped."""
    return '{"data":' + json.dumps(text).replace("/", "\\/") + "}"


def percent(_dice: Dice, text: str) -> str:
    """The text as the value of a parameter of an address."""
    return "https://paste.example.com/new?lang=sh&text=" + quote(text, safe="")


def heredoc(dice: Dice, text: str) -> str:
    """The text written to a file by a shell."""
    return f"cat > /tmp/{dice.word()}.cfg <<'EOF'\n{text}\nEOF\nchmod 600 /tmp/{dice.word()}.cfg"


def shell_quoted(dice: Dice, text: str) -> str:
    """The text within a command that writes it."""
    escaped = text.replace('"', '\\"')
    return f"printf '%s' \"{escaped}\" >> {dice.word()}.txt"


def deep(dice: Dice, text: str) -> str:
    """The text far down in a long output."""
    filler = "\n".join(f"[{at:05d}] ok {dice.word()} {dice.word()} in {dice.randint(1, 900)} ms" for at in range(250))
    return f"{filler}\n{text}\n{filler[:2000]}"


def trace(dice: Dice, text: str) -> str:
    """The text in the message of an error."""
    shown = text.replace("\n", " ")
    return (
        f'Traceback (most recent call last):\n  File "/srv/{dice.word()}.py", line {dice.randint(1, 300)}, in main\n'
        f"    run(settings)\nValueError: cannot parse: {shown}"
    )


VIEWS: dict[str, Shape] = {
    "plain": lambda _dice, text: text,
    "diff-added": diff,
    "diff-removed": diff_removed,
    "numbered-dots": each(lambda _dice, at, line: f"{at}. {line}"),
    "numbered-tab": each(lambda _dice, at, line: f"{at:6d}\t{line}"),
    "numbered-bar": each(lambda _dice, at, line: f"{at:5d} | {line}"),
    "numbered-arrow": each(lambda _dice, at, line: f"{at:6d}\u2192{line}"),
    "grep-path": each(lambda _dice, at, line: f"deploy/settings.cfg:{at}:{line}"),
    "grep-context": each(lambda _dice, at, line: f"./app/config.txt-{at}-{line}"),
    "indented": each(lambda _dice, _at, line: "        " + line),
    "tabs": each(lambda _dice, _at, line: "\t\t" + line),
    "quoted-mail": each(lambda _dice, _at, line: "> " + line),
    "commented": each(lambda _dice, _at, line: "# " + line),
    "slash-commented": each(lambda _dice, _at, line: "// " + line),
    "compose-prefix": each(lambda _dice, _at, line: f"web-1  | {line}"),
    "log-prefix": each(lambda _dice, at, line: f"2026-08-11T10:00:{at % 60:02d}.1234567Z {line}"),
    "github-log": each(lambda _dice, at, line: f"build\tRun tests\t2026-08-11T10:00:{at % 60:02d}.1234567Z {line}"),
    "cat-ends": each(lambda _dice, _at, line: line + "$"),
    "coloured": coloured,
    "coloured-lines": coloured_lines,
    "crlf": lambda _dice, text: text.replace("\n", "\r\n") + "\r\n",
    "markdown-fence": lambda _dice, text: f"Here it is:\n\n```\n{text}\n```\n\nTell me what to change.",
    "html-pre": lambda _dice, text: f"<pre><code>{text}</code></pre>",
    "in-json": in_json(1),
    "in-json-twice": in_json(2),
    "in-json-thrice": in_json(3),
    "unicode-escapes": unicode_escapes,
    "slash-escapes": slash_escapes,
    "percent": percent,
    "heredoc": heredoc,
    "shell-quoted": shell_quoted,
    "deep": deep,
    "trace": trace,
    "wide-unicode": lambda _dice, text: f"✅ größer — 設定 \U0001f511\n{text}\n→ fertig …",
    "prompt": lambda _dice, text: f"dev@box:~/app$ cat .secrets\n{text}\ndev@box:~/app$ ",
}
CHANGES: dict[str, Callable[[str], str]] = {
    "percent": lambda part: quote(part, safe=""),
    "unicode-escapes": lambda part: re.sub(r"[+<>&'`]", lambda match: f"\\u{ord(match[0]):04X}", part),
    "slash-escapes": lambda part: part.replace("/", "\\/"),
}
BREAKS_LINES = {"trace", "shell-quoted", "percent"}  # not for keys of many lines: a person would not do that
CUT_ENDS = ("", "\n... [output truncated]", "…", "\n<output too long to read at once>", " [12034 characters omitted] ")


@dataclass(frozen=True, slots=True)
class View:
    """A named way to show a text, and what it does to the characters of a secret."""

    name: str

    def show(self, dice: Dice, text: str) -> str:
        """The text as this view has it."""
        return VIEWS[self.name](dice, text)

    def changed(self, part: str) -> str:
        """How a random part looks afterwards."""
        return CHANGES.get(self.name, str)(part)


def cut(dice: Dice, text: str, part: str) -> tuple[str, str] | None:
    """The text cut within the last third of the part, and what is left of the part; None where there is too little."""
    if len(part) < 20 or text.count(part) != 1:
        return None
    kept = part[: dice.randint(len(part) * 2 // 3, len(part) - 1)]
    return text[: text.index(part)] + kept + dice.choice(CUT_ENDS), kept
