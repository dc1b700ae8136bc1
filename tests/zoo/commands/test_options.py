"""Numbers on the command line: finite and in a range, whatever the command."""

import math

import click
import pytest
from click.testing import CliRunner

import cli
from zoo.commands.options import Finite


def numeric_parameters():
    for name in cli.zoo.list_commands(click.Context(cli.zoo)):
        command = cli.zoo.get_command(click.Context(cli.zoo), name)
        for parameter in command.params:
            kinds = parameter.type.types if isinstance(parameter.type, click.Tuple) else [parameter.type]
            for kind in kinds:
                if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
                    yield pytest.param(kind, id=f"{name} {parameter.name}")


@pytest.mark.parametrize("kind", list(numeric_parameters()))
def test_every_number_on_the_command_line_has_finite_limits(kind) -> None:
    assert math.isfinite(kind.min) and math.isfinite(kind.max)
    for text in ("nan", "inf", "-inf", "1e999", "9" * 30):
        with pytest.raises(click.BadParameter):
            kind.convert(text, None, None)


def test_a_number_in_its_range_is_taken_as_it_is() -> None:
    assert Finite(0, 10).convert("2.5", None, None) == 2.5
    with pytest.raises(click.BadParameter, match="range"):
        Finite(0, 10).convert("-1", None, None)


def test_a_gate_of_nan_is_refused_on_the_command_line(tmp_path) -> None:
    arguments = ["deploy", "x", "--reason", "y", "--max-ms", "nan", "--max-mean-ms", "nan", "--home", str(tmp_path)]
    result = CliRunner().invoke(cli.zoo, arguments)
    assert result.exit_code == 2 and "not a finite number" in result.output
