"""`exporter completion`: the script with which a shell completes commands, options and session ids."""

import click
from click.shell_completion import get_completion_class

from exporter.cli.command import argument, command
from exporter.cli.context import CommandContext
from exporter.cli.registry import COMPLETE_VARIABLE


@command(
    examples={
        "source <(exporter completion bash)": "for this shell; put it into ~/.bashrc to keep it",
        "source <(exporter completion zsh)": "for this shell; put it into ~/.zshrc to keep it",
        "exporter completion fish | source": "for this shell; put it into config.fish to keep it",
    }
)
@argument("shell", type=click.Choice(("bash", "zsh", "fish")), help="the shell to write it for")
def completion(context: CommandContext, shell: str) -> int:
    """Writes the completion script for a shell; bash must be of version 4.4 or later."""
    script = get_completion_class(shell)
    assert script is not None
    context.out.write(script(click.get_current_context().command, {}, "exporter", COMPLETE_VARIABLE).source())
    return 0
