"""Reads a command line as the program does, without running what it names."""

import click

from exporter.cli.command import CommandContext
from exporter.cli.groups import Group, Root
from exporter.cli.output.output import Output


def parse(*arguments: str) -> click.Context:
    """The command that these arguments name, with their values; raises what the program reports of a wrong one."""
    context = CommandContext(Output(as_json=False, quiet=False, color=False))
    ctx = Root().make_context("exporter", list(arguments), obj=context)
    while isinstance(ctx.command, Group):
        name, command, rest = ctx.command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
        assert command is not None
        ctx = command.make_context(name, rest, parent=ctx)
    return ctx
