"""A command line of PowerShell, written as `shell` reads one: the same words, separators and groups.

An expression, which PowerShell prints, becomes an argument of `write-output`, and the arguments of a method words.
"""

import re
from typing import Final

# A string or here-string, a comment, an escape, a backslash, which escapes nothing, a variable, the end or beginning of
# a block, or the bracket of a method's arguments.
_SPECIAL: Final = re.compile(
    r"@'\r?\n(?P<here>.*?)(?:\n'@|\Z)|@\"\r?\n(?P<filled>.*?)(?:\n\"@|\Z)"
    r"|'(?P<single>(?:[^']|'')*+)(?:'|\Z)|\"(?P<double>(?:[^\"`]|`.|\"\")*+)(?:\"|\Z)"
    r"|(?P<comment><#.*?(?:#>|\Z)|`\r?\n)|`(?P<escaped>.)|(?P<backslash>\\)|(?P<variable>\$\{[^{}]*\})"
    r"|(?P<block>[{}])|(?<=[\w\]])(?P<arguments>\()",
    re.DOTALL,
)
_IN_DOUBLE: Final = re.compile(r"`(.)|([\"\\])", re.DOTALL)
# An expression where a command may begin, unless something is assigned to it.
_EXPRESSION: Final = re.compile(
    r"(?:\A|(?<=[\n;{(]))(?P<blanks>[ \t]*)(?=\[[\w.]+\]::|\$[\w:{])(?!\$[\w:{}.\[\]]+[ \t]*[-+*/]?=(?!=))"
)
_SELECT: Final = re.compile(r"\|(\s*)select(?=\s)", re.IGNORECASE)


def as_shell(command: str) -> str:
    """The command line in the words of a shell."""
    return _EXPRESSION.sub(
        r"\g<blanks>write-output ", _SELECT.sub(r"|\1select-object", _SPECIAL.sub(_written, command))
    )


def _written(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "single" | "here" as group:
            text = found[group] if group == "here" else found[group].replace("''", "'")
            return "'" + text.replace("'", "'\\''") + "'"
        case "double" | "filled" as group:
            text = found[group] if group == "filled" else found[group].replace('""', '"')
            return '"' + _IN_DOUBLE.sub(r"\\\1\2", text) + '"'
        case "escaped":
            return "\\" + found["escaped"]
        case "backslash":
            return "\\\\"
        case "variable":
            return found["variable"]
        case "block":
            return f" ;{found['block']} "
        case _:
            return " "
