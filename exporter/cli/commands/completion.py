"""`exporter completion`: the script with which a shell completes commands, options and session ids."""

import click
from click.shell_completion import get_completion_class

from exporter.cli.command import CommandContext, argument, command
from exporter.cli.registry import COMPLETE_VARIABLE


@command()
@argument("shell", type=click.Choice(("bash", "zsh", "fish")), help="name of the shell")
def completion(context: CommandContext, shell: str) -> int:
    """Prints a completion script. Bash must be version 4.4 or later.

    Examples:
    source <(exporter completion bash)  # for the current shell; add it to ~/.bashrc to keep it
    source <(exporter completion zsh)  # for the current shell; add it to ~/.zshrc to keep it
    exporter completion fish | source  # for the current shell; add it to config.fish to keep it
    """
    script = get_completion_class(shell)
    assert script is not None
    context.out.write(script(click.get_current_context().command, {}, "exporter", COMPLETE_VARIABLE).source())
    return 0
