"""What PowerShell prints: its quotes, escapes and expressions, in its own tool and behind `pwsh`."""

import json

import pytest

from redaction.commands.powershell import as_shell
from redaction.commands.table import PrintingCommands, built_in_table

COMMANDS = PrintingCommands(built_in_table().command)


def rule_of(command: str, tool: str = "powershell") -> str | None:
    call = json.dumps({"toolCallId": "call_1", "toolName": tool, "arguments": {"command": command}})
    found = COMMANDS.rule_of(call.encode())
    return found.id if found is not None else None


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("C:\\tools\\gh.exe auth token", "printed.github"),
        ('& "C:\\Program Files\\GitHub CLI\\gh.exe" auth token', "printed.github"),
        ("Get-Secret -Name 'it''s' -AsPlainText", "printed.powershell"),
        ("Get-Secret `\n  -Name db `\n  -AsPlainText", "printed.powershell"),
        ("(Get-Secret db -AsPlainText).Trim()", "printed.powershell"),
        ("Get-Secret db -AsPlainText | select -First 1", "printed.powershell"),
        ("$s = Get-Secret db; $s | ConvertFrom-SecureString -AsPlainText", "printed.powershell"),
        ("if ($x) { gh auth token }", "printed.github"),
        ("cd C:\\src; $env:GITHUB_TOKEN", "printed.variable"),
        ('Write-Host "token: $env:GITHUB_TOKEN"', "printed.variable"),
        ("[Environment]::GetEnvironmentVariable('DEPLOY_TOKEN')", "printed.variable"),
        ("Get-ChildItem env:DB_PASSWORD | Format-List", "printed.variable"),
        ("(Get-Item env:DB_PASSWORD).Value", "printed.variable"),
        ("$cred.GetNetworkCredential().Password", "printed.powershell"),
        ("[Runtime.InteropServices.Marshal]::PtrToStringAuto($p)", "printed.powershell"),
        ("$t = gh auth token", None),
        ("$env:X_TOKEN = gh auth token", None),
        ("gh auth token | Out-Null", None),
        ("gh auth token | Set-Clipboard", None),
        ("gh auth token > C:\\t.txt", None),
        ("'gh auth token'", None),
        ("Write-Output 'see `gh auth token`'", None),
        ("<# gh auth token #> dir", None),
        ("@'\ngh auth token\n'@ | Out-File t.txt", None),
        ("@'\nit's; gh auth token\n'@ | Out-File t.txt", None),
        ("@'\r\nit's; gh auth token\r\n'@ | Out-File t.txt", None),
        ('@"\n5" wide; gh auth token\n"@ | Out-File t.txt', None),
        ('@"\r\n5" wide; gh auth token\r\n"@ | Out-File t.txt', None),
        ("$env:PATH", None),
    ],
)
def test_what_reaches_the_tool_is_told_by_powershells_own_quoting(command: str, rule: str | None) -> None:
    assert rule_of(command) == rule


@pytest.mark.parametrize(
    "command",
    ['pwsh -NoProfile -Command "$env:GITHUB_TOKEN"', "powershell.exe -c 'cd C:\\x; $env:GITHUB_TOKEN'"],
)
def test_a_shell_that_starts_powershell_hands_its_command_on(command: str) -> None:
    assert rule_of(command.replace('"', "'"), "bash") == "printed.variable"


def test_the_same_text_is_no_such_command_for_another_shell() -> None:
    assert rule_of("C:\\tools\\gh.exe auth token", "bash") is None


def test_a_tool_without_a_name_is_read_as_a_shell() -> None:
    call = json.dumps({"toolName": None, "arguments": {"command": "gh auth token"}})

    assert COMMANDS.rule_of(call.encode()) is not None


@pytest.mark.parametrize(
    "text", ['"' * 20_000, "`" * 20_000, "@'\n" * 9_000, "$x" * 20_000, "a(" * 20_000, "\\" * 20_000]
)
def test_hostile_text_is_written_in_time_that_grows_with_it(text: str) -> None:
    assert len(as_shell(text)) < 20 * len(text)
