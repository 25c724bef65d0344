"""The command `penstock`: what its commands are, in the order of its help."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from penstock import __version__
from penstock.cli.commands.calibrate import calibrate
from penstock.cli.commands.demo import demo
from penstock.cli.commands.explain import explain
from penstock.cli.commands.join import join
from penstock.cli.commands.kernels import kernels
from penstock.cli.commands.profile import profile
from penstock.cli.commands.size import size

__all__ = ["app", "main"]


def _without_values(parameters: list[Any]) -> list[Any]:
    """Flags take no value, and the help must not show one."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


app: Final = typer.Typer(
    cls=_Group,
    help="Sliding-window joins over streams.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def main() -> None:
    """The entry point."""
    app(prog_name="penstock")


@app.callback(invoke_without_command=True)
def penstock(
    context: typer.Context,
    # Not eager: then words after it would go unseen.
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Sliding-window joins over streams."""
    if version:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


for command in (join, profile, explain, size, demo, calibrate):
    app.command(command.__name__, cls=_Command)(command)
app.add_typer(kernels, name="kernels")
