"""The command line of the CCT zoo: `python cli.py`, or `cct-zoo` once installed.

A command parses, makes one call and prints; the commands live in `zoo/commands/` and are
imported only when they are asked for, so that `--help` answers at once.
"""

import importlib
import keyword
import sys

import click

COMMANDS = {  # name -> module of zoo.commands that holds it
    "systems": "describe",
    "contingencies": "describe",
    "show": "describe",
    "schema": "describe",
    "import": "imports",
    "import-contingencies": "imports",
    "generate-contingencies": "families",
    "screen": "families",
    "pipeline": "pipeline",
    "sweep": "sweep",
    "add-expert": "experts",
    "remove-expert": "experts",
    "compare": "compare",
    "register-contingency": "register",
    "distill": "heads",
    "heads": "heads",
    "checkpoints": "checkpoints",
    "deploy": "deployments",
    "rollback": "deployments",
    "history": "deployments",
    "retire": "deployments",
    "cct": "query",
    "serve": "serve",
    "token": "token",
    "verify": "upkeep",
    "gc": "upkeep",
    "sync-runs": "tracking",
    "ui": "tracking",
    "models": "train",
    "train": "train",
    "train-moe": "train_family",
    "train-separate": "train_family",
    "benchmark": "benchmark",
    "boundary": "boundary",
    "certify": "certify",
    "simulate": "simulate",
    "reference-cct": "simulate",
    "sensitivity": "sensitivity",
    "surface": "surface",
}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"zoo.commands.{COMMANDS[cmd_name]}")
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_" if keyword.iskeyword(name) else name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="cct-zoo", prog_name="cct-zoo")
def zoo() -> None:
    """A model zoo for critical clearing times (CCT) of power grids.

    Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 conflict, 5 invalid description, 6 deployment
    refused by its gate, 7 stored data damaged, 130 interrupted.
    """


def main() -> None:
    """Run the command line; every mistake a user can mend is one sentence, and ends with an exit code."""
    from contingencies.errors import ZooError

    try:
        zoo.main(standalone_mode=False)
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
