"""The command line helps: grouped commands, examples that parse, and what a user may have meant."""

import shlex

import click
import pytest

import cli
from registry.home import Home
from tests.cases import write_contingency
from tests.registry.makers import contingency, head, measured


def command_of(words):
    """The command that an example calls, and its arguments."""
    command, rest = cli.zoo.get_command(None, words[0]), words[1:]
    if isinstance(command, click.Group):
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_shows_an_example_that_it_accepts(name):
    command = cli.zoo.get_command(None, name)
    for part in command.commands.values() if isinstance(command, click.Group) else [command]:
        assert part.epilog.startswith("Example: cct-zoo "), part.name
        words = shlex.split(part.epilog.removeprefix("Example: cct-zoo ").partition(" > ")[0])
        meant, arguments = command_of(words)
        assert meant is part
        part.make_context(name, arguments)  # refuses options and values that it does not know


def test_help_stands_under_headings_with_whole_summaries(run):
    code, out, _ = run("--help")
    assert code == 0
    headings = [line.partition(":")[0] for line in out.splitlines() if line[:1].isalpha() and ":" in line]
    assert headings[1:] == ["Options", "Ask", "Study", "Learn", "Deploy", "Maintain"]
    assert "..." not in out.partition("Options:")[2]


def test_a_misspelt_command_or_name_is_met_with_what_may_have_been_meant(run, tmp_path):
    assert run("refrence-cct")[0] == 2 and "Did you mean reference-cct" in run("refrence-cct")[2]
    code, _, error = run("reference-cct", "ieee30-line-3-4-restor", "--alpha", "1", "--home", str(tmp_path))
    assert code == 3 and "Did you mean ieee30-line-3-4-restore" in error
    code, _, error = run("screen", "wscc", "--fault", "line", "--clearing", "restore")
    assert code == 3 and "Did you mean wscc9" in error


@pytest.mark.parametrize("fraction", ["0", "1.5", "nan"])
def test_a_fraction_that_is_none_is_refused_by_the_option(run, fraction):
    code, _, error = run("train", "es-pinn", "ieee9-mech-g2-restore", "--fraction", fraction)
    assert code == 2 and "--fraction" in error


def test_an_answer_outside_the_domain_names_the_domain_and_its_exit_code(run, tmp_path):
    name, home = "fault-a", ("--home", str(tmp_path / "home"))
    with Home.open(tmp_path / "home") as opened:
        opened.add_head(opened.register([contingency(name)])[0].row, head(), measured())
        opened.deploy(name, reason="first")
    code, out, _ = run("cct", name, "--alpha", "1.5", *home)
    assert code == 3 and "out-of-domain (the domain is alpha 0 to 1)" in out
    code, out, _ = run("cct", name, "--alpha", "1.5", "--json", *home)
    assert code == 0 and '"domain"' in out
    code, out, _ = run("cct", name, "--alpha", "1.5", "--csv", "-", *home)
    assert code == 0 and "out-of-domain" in out


def test_a_curve_tells_censored_severities_as_one_interval(run, tmp_path):
    path = write_contingency(
        tmp_path,
        "name: short\nsystem: ieee9\nfault: {kind: mechanical, generator: 2, coefficient: 1.25}\n"
        "clearing: {action: restore-mechanical}\nwindow: {t_f: 0.2, T: 1.0, t_c: [0.25, 0.8]}\n",
    )
    code, out, _ = run("reference-cct", str(path), "--curve")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("short  alpha 0 to ") and "right-censored" in lines[0]
    assert sum("censored" in line for line in lines) == 1


def test_show_prints_tables(run):
    _, out, _ = run("show", "wscc9")
    lines = out.splitlines()
    header = lines.index("machines:") + 1
    assert lines[header].split()[:4] == ["bus", "H_s", "x_d_pu", "D_pu"]
    assert lines[header + 1].split()[:2] == ["1", "23.64"]
    assert len({len(line) for line in lines[header : header + 4]}) == 1  # columns stand under each other
    assert "{" not in run("show", "ieee30-line-3-4-restore")[1]
