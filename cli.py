"""The command line of the CCT zoo: `python cli.py`, or `cct-zoo` once installed.

A command parses, makes one call and prints; the commands live in `zoo/commands/` and are
imported only when they are asked for, so that `--help` answers at once.
"""

import _thread
import importlib
import keyword
import sys
import threading

import click

SECTIONS: dict[str, dict[str, str]] = {  # heading of --help -> name of a command -> its module in zoo.commands
    "Ask: critical clearing times, by simulation or by deployed heads": {
        "reference-cct": "simulate",
        "simulate": "simulate",
        "cct": "query",
        "compare": "compare",
        "advise": "advise",
        "sensitivity": "sensitivity",
        "surface": "surface",
        "systems": "describe",
        "contingencies": "describe",
        "show": "describe",
    },
    "Study: grids of your own, families of faults": {
        "screen": "screening",
        "generate-contingencies": "families",
        "import": "imports",
        "import-contingencies": "imports",
        "register-contingency": "register",
        "schema": "describe",
    },
    "Learn: train surrogates and judge them": {
        "models": "train",
        "train": "train",
        "train-moe": "train_family",
        "train-separate": "train_family",
        "add-expert": "experts",
        "remove-expert": "experts",
        "checkpoints": "checkpoints",
        "boundary": "boundary",
        "certify": "certify",
        "sweep": "sweep",
        "benchmark": "benchmark",
    },
    "Deploy: heads that answer in microseconds": {
        "pipeline": "pipeline",
        "distill": "heads",
        "heads": "heads",
        "deploy": "deployments",
        "rollback": "deployments",
        "retire": "deployments",
        "history": "deployments",
        "serve": "serve",
        "token": "token",
    },
    "Maintain: the registry and the records of runs": {
        "verify": "upkeep",
        "gc": "upkeep",
        "sync-runs": "tracking",
        "ui": "tracking",
    },
}
COMMANDS = {name: module for commands in SECTIONS.values() for name, module in commands.items()}
AGAIN_S = 0.05  # until a Ctrl-C that could not be raised is tried again
WHOLE = 1000  # characters: summaries are not cut, they wrap


class LazyGroup(click.Group):
    """A group whose commands are imported on first use, and listed under headings."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"zoo.commands.{COMMANDS[cmd_name]}")
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_" if keyword.iskeyword(name) else name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from contingencies.errors import did_you_mean

            raise click.UsageError(f"No such command {args[0][:60]!r}.{did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for heading, names in SECTIONS.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            rows = [(f"{name:{width}}", found.get_short_help_str(WHOLE)) for name, found in commands.items() if found]
            with formatter.section(heading):
                formatter.write_dl(rows)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="cct-zoo", prog_name="cct-zoo")
def zoo() -> None:
    """A model zoo for critical clearing times (CCT) of power grids.

    'cct-zoo COMMAND --help' has options and an example.

    Exit codes: 0 ok, 1 error, 2 usage, 3 not found, or a head asked out of its domain, 4 conflict, 5 invalid
    description, 6 deployment refused by its gate, 7 stored data damaged, 130 interrupted.
    """


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Ctrl-C within a callback of compiled code, where nothing can be raised: interrupt soon again, outside of it."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        timer = threading.Timer(AGAIN_S, _thread.interrupt_main)
        timer.daemon = True  # a command that ends meanwhile does not wait for it
        timer.start()
    else:
        sys.__unraisablehook__(unraisable)


def main() -> None:
    """Run the command line; every mistake a user can mend is one sentence, and ends with an exit code."""
    from contingencies.errors import ZooError

    sys.unraisablehook = _interrupt_again
    try:
        code = zoo.main(standalone_mode=False)  # other than None where a command ended with an exit code
        if code:
            sys.exit(code)
    except ZooError as error:
        for sentence in error.sentences:
            click.echo(f"Error: {sentence}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
