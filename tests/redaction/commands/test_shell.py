"""A command line taken apart: whose output reaches the tool, whatever the line is made of."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redaction.commands.shell import Run, Words, runs
from tests.cli.program import ROOT

FILTERS = frozenset(("head", "tr", "tee"))


def passes_on(words: Words) -> bool:
    return bool(words) and words[0] in FILTERS


def reaching(command: str) -> list[str]:
    return [" ".join(run.words) for run in runs(command, passes_on)]


@pytest.mark.parametrize(
    "command",
    [
        "show a",
        "cd /srv && X=1 show a; ls",
        "show a | head -1 | tr -d x",
        "show a |& tee copy",
        "(cd /srv; show a) | head",
        "{ show a; } 2>/dev/null",
        "if test -f x; then show a; fi",
        "while read l; do show a; done < list",
        "case $x in a) show a;; esac",
        "f() { show a; }; f",
        "show a >&2",
        "show a > /dev/stdout",
        "show a 2> errors",
        "show a 3>&1",
        "cat <<EOF\nshow b > f\nEOF\nshow a",
        "((x=1<<3))\nshow a",
        "cat <<A <<-B\nA\n\tB\nshow a",
        "show a; cat <<''\n",
        "show \\\n a",
        "show 'a'",
        'show "a" # > file',
        "! show a &",
        "for i in 1 2\ndo\nshow a\ndone",
        "((((((((((((((((((((show a))))))))))))))))))))",
    ],
)
def test_a_command_whose_output_reaches_the_tool_is_told(command: str) -> None:
    assert [one.removeprefix("X=1 ") for one in reaching(command) if "show" in one] == ["show a"]


@pytest.mark.parametrize(
    "command",
    [
        "x=$(show a)",
        'echo "$(show "a")" b',
        "x=`show a`",
        "diff <(show a) b",
        "show a > file",
        "show a >> file; ls",
        "show a &> file",
        "show a 1>file 2>&1",
        "(show a; ls) > file",
        "for i in 1 2; do show a; done > file",
        "{ show a; } | wc -c",
        "show a | wc -c",
        "show a | head | sha256sum",
        "show a | while read l; do ls; done",
        "cat <<EOF\nshow a\nEOF",
        "cat <<-'END'\n\tshow a\n\tEND\nls",
        "((x=1<<3)); cat <<EOF\nshow a\nEOF",
        "cat <<-A\n\tA\ncat <<A\nshow a\n\tA\nA",
        "# show a",
        "echo 'show a'",
        "echo ${x:-$(show a)}",
    ],
)
def test_output_that_goes_elsewhere_is_not_told(command: str) -> None:
    assert not [one for one in reaching(command) if one.startswith("show")]


def test_what_a_command_is_piped_into_and_reads_is_told_with_it() -> None:
    assert list(runs("(show a < /run/x | head -1) | tr a b", passes_on)) == [
        Run(("tr", "a", "b")),
        Run(("head", "-1"), (("tr", "a", "b"),)),
        Run(("show", "a", "/run/x"), (("head", "-1"), ("tr", "a", "b"))),
    ]


def test_words_are_read_as_a_shell_reads_them() -> None:
    (run,) = runs(r"""show 'a b'c "d \"e\" $f" g\ h $'i\'j' ${k} -x="l m" $(n o)p""", passes_on)

    assert run.words == ("show", "a bc", 'd "e" $f', "g h", r"i\'j", "${k}", "-x=l m", "$()p")


_WORD = st.text("ab-/.=\u00e9", min_size=1, max_size=6).filter(lambda word: not word.startswith("-"))


@given(
    st.lists(st.tuples(_WORD, st.lists(st.text("a b'\"$\\|;&>\n#()", max_size=6), max_size=3)), min_size=1, max_size=4)
)
def test_a_line_of_quoted_words_is_taken_apart_into_them(commands: list[tuple[str, list[str]]]) -> None:
    def quoted(word: str) -> str:
        return "'" + word.replace("'", "'\\''") + "'"

    line = " && ".join(" ".join([program, *map(quoted, words)]) for program, words in commands)

    assert [run.words for run in runs(line, passes_on)] == [(program, *words) for program, words in commands]


@given(st.text("ab '\"$`(){}|&;<>\\\n#=0if done", max_size=60), st.text("ab \n", max_size=9))
def test_any_text_is_read_and_what_follows_a_finished_line_is_read_as_well(text: str, last: str) -> None:
    assert list(runs(text, passes_on)) == list(runs(text, passes_on))
    assert list(runs(last + "\nshow a", passes_on))[-1].words == ("show", "a")


UNITS = [
    *(
        "$(",
        "(",
        "{ ",
        "|a",
        "a|",
        "'",
        '"',
        "`",
        "${",
        "<<a\n",
        "a;",
        "if a;",
        "\\",
        "$'\\",
        "{ a;} |",
        "((",
        "case x in (",
    ),
    *("<<a\n\ta\n", "<<a <<b\na\n", "1", ">", '$("', "a ", "# ", "\\\n", "(a", ")", "a<b ", "fi ", "\n"),
]


MEASURE = """
import sys, time
from tests.redaction.commands.test_shell import _count, passes_on, runs

def seconds(size):
    text = (sys.argv[1] * size)[:size]
    begun = time.process_time()
    _count(runs(text, passes_on))
    return time.process_time() - begun

print(min(seconds(8_000) for _ in range(3)), min(seconds(64_000) for _ in range(2)))
"""
"""In a process of its own: what the tests before this one left costs the collector of garbage more than the text."""


@pytest.mark.alone
@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_takes_time_in_proportion(unit: str) -> None:
    measured = subprocess.run([sys.executable, "-c", MEASURE, unit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    least, most = map(float, measured.stdout.split())

    assert most < 8 * 5 * least + 0.02


def _count(found: Iterator[Run]) -> int:
    return sum(1 for _ in found)
