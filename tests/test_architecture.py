"""The rooms and their one-way doors; what may be imported when; every command has help."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import click
import pytest

import cli

ROOT = Path(__file__).parent.parent
ROOMS = ("contingencies", "espinn_moe", "registry", "zoo")  # each may import itself and those before it
ZOO_ROOMS = (  # likewise, inside the zoo; those of one line do not know each other
    ("work", "plots", "lookup"),
    ("surrogates",),
    ("judging",),
    ("training",),
    ("heads",),
    ("studies",),
    ("paper",),
    ("facade",),
    ("commands",),
)
HEAVY = ("torch", "pandapower", "mlflow", "numba", "matplotlib", "pandas")


def modules():
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield room, path


@functools.cache
def imported_names(path):
    """Names that a module imports anywhere; every module is parsed once for all tests."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@pytest.mark.parametrize(("room", "path"), list(modules()), ids=lambda value: str(getattr(value, "name", value)))
def test_imports_point_one_way(room, path):
    later = (*ROOMS[ROOMS.index(room) + 1 :], "cli", "tests", "benchmarks")
    wrong = [name for name in imported_names(path) if name.split(".")[0] in later]
    assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


@pytest.mark.parametrize("path", sorted((ROOT / "zoo").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way_inside_the_zoo(path):
    level = {room: k for k, rooms in enumerate(ZOO_ROOMS) for room in rooms}
    room = path.relative_to(ROOT / "zoo").parts[0].removesuffix(".py")
    if room == "__init__":
        return
    others = {name.split(".")[1] for name in imported_names(path) if name.startswith("zoo.")} - {room}
    wrong = {other for other in others if level[other] >= level[room]}
    assert not wrong, f"{path.relative_to(ROOT)} imports zoo.{', zoo.'.join(sorted(wrong))}"


@pytest.mark.parametrize(
    ("package", "only"),
    [
        ("mlflow", {"registry/tracking.py"}),
        ("pandapower", {"contingencies/formats/pandapower.py", "contingencies/formats/pandapower_tables.py"}),
    ],
)
def test_a_heavy_neighbour_is_met_at_one_door(package, only):
    users = {
        str(path.relative_to(ROOT))
        for _, path in modules()
        if any(name.split(".")[0] == package for name in imported_names(path))
    }
    assert users <= only


def loaded_after(code):
    """Which heavy packages a fresh interpreter has loaded after running `code`."""
    check = f"{code}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.parametrize("room", ROOMS)
def test_importing_a_room_loads_nothing_heavy(room):
    assert loaded_after(f"import {room}") == []


def test_the_query_path_loads_nothing_heavy():
    facade = "import zoo; zoo.Registry, zoo.Client, zoo.deploy, zoo.to_frame"
    assert loaded_after(f"import espinn_moe.head, registry.query; from registry import Registry; {facade}") == []
    assert loaded_after("import registry.service.app, registry.client") == []


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(name):
    command = cli.zoo.get_command(None, name)
    assert command is not None
    assert command.name == name
    assert command.help
    for part in command.commands.values() if isinstance(command, click.Group) else [command]:
        assert part.help
        assert all(parameter.help for parameter in part.params if parameter.param_type_name == "option"), name
        assert any("--json" in parameter.opts for parameter in part.params) or name == "ui"


def test_help_loads_nothing_heavy():
    done = subprocess.run([sys.executable, "cli.py", "--help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "critical clearing times" in done.stdout
    assert loaded_after("import cli\nfor name in cli.COMMANDS: cli.zoo.get_command(None, name)") == []


def test_no_module_grows_into_two():
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for _, path in modules()}
    assert not {name: lines for name, lines in long.items() if lines > 450}
