"""Every command of the table, with each of the programs, words and options that it names."""

from pathlib import Path
from typing import Final

from redaction.commands.table import PrintingCommands, built_in_table
from tests.rows import each, with_each_choice

COMMANDS: Final = PrintingCommands(built_in_table().command)


def _forms() -> dict[str, str]:
    """The row of each command."""
    found, row = dict[str, str](), ""
    for line in Path(__file__).with_name("forms.txt").read_text().splitlines():
        if not line:
            row = ""
        elif not row:
            row = line
        elif not line.startswith("#"):
            found |= dict.fromkeys(with_each_choice(line), row)
    return found


FORMS: Final = _forms()


@each(FORMS)
def test_each_form_of_a_command_is_known(command: str) -> None:
    told = COMMANDS.of(command)

    assert told is not None
    assert told.id == FORMS[command]
