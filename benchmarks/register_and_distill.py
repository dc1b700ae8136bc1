"""Registering a folder of generated members, and opening and distilling them one by one: this release beside a former.

Run: python benchmarks/register_and_distill.py --former FOLDER [--members 3000] [--sample 3]

The members are line faults of the 39-bus system at many positions, one file each. Registering all of them is measured
through the command. A sample is then distilled from the reference ODE, without the strict one, and for a sample the
boundary of one large family's checkpoint is opened, which a distillation from a surrogate does first; times for all
members are the sample's, extrapolated, and are said to be. FOLDER is a checkout of the former release with its
interpreter in .venv. Seconds are those of the processor, because the machine is shared.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from contingencies.families import generate_family
from contingencies.library import Contingency, load_system
from contingencies.operators import compile_members
from contingencies.recipes import Recipe
from contingencies.spec_files import write_contingencies
from zoo.surrogates.catalogue import create_model
from zoo.surrogates.checkpoints import to_bytes

SYSTEM = "ieee39"
ROOT = Path(__file__).parent.parent

# Runs under both releases, whose modules have other names.
DRIVER = """
import json, sys, time
from pathlib import Path
home_path, weights, sample, parameters = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
from registry.home import Home
from registry.store import contingencies, runs
try:
    from zoo.heads.distill import HeadSettings, distill
    from zoo.heads.sources import checkpoint_source
    options = {"settings": HeadSettings(strict=0)}
except ImportError:
    from zoo.distill import distill
    from zoo.sources import checkpoint_source
    options = {"strict": 0}
from contingencies.library import load_contingency
with Home.open(home_path) as home:
    rows = contingencies.latest(home.database)
    content = Path(weights).read_bytes()
    members = {row.id: k for k, row in enumerate(rows)}
    made = home.add_checkpoint(content, parameters, "surrogate", members)
    checkpoint = runs.get_checkpoint(home.database, made.id)
    chosen = rows[:: max(1, len(rows) // sample)][:sample]
    warm = home.register([load_contingency("ieee9-mech-g2-restore")])[0].row
    distill(home, warm, **options)  # compiles
    marks = [time.process_time()]
    for row in chosen:
        checkpoint_source(home, contingencies.find(home.database, row.name), checkpoint)
        marks.append(time.process_time())
    for row in chosen:
        distill(home, contingencies.find(home.database, row.name), **options)
    print(json.dumps({
        "open_first_s": marks[1] - marks[0], "open_next_s": (marks[-1] - marks[1]) / (sample - 1),
        "distill_s": (time.process_time() - marks[-1]) / sample,
    }))
"""


def members_of_positions(count: int) -> list[Contingency]:
    """So many line faults, at positions spread over every line, in order of name."""
    system = load_system(SYSTEM)
    lines = len(generate_family(system, Recipe("line", "remove-line", impedance=None)).members)
    members: list[Contingency] = []
    for position in np.linspace(0.05, 0.95, -(-count // lines)):
        for member in generate_family(
            system, Recipe("line", "remove-line", impedance=None, position=round(float(position), 6))
        ).members:
            name = f"{member.name}-at-{round(1e6 * position)}"
            members.append(replace(member, spec=member.spec.model_copy(update={"name": name})))
    return sorted(members[:count], key=lambda member: member.name)


def processor_seconds(command: list[str], folder: Path) -> tuple[float, str]:
    """Processor time of a command, and what it prints."""
    before = os.times()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used, done.stdout


def measure(release: Path, python: str, specs: Path, weights: Path, parameters: int, sample: int) -> dict[str, float]:
    """Seconds of registering all, and of opening and distilling one of the sample."""
    with tempfile.TemporaryDirectory() as home:
        register = [python, "cli.py", "register-contingency", str(specs), "--home", home, "--json"]
        register_s, printed = processor_seconds(register, release)
        assert len(json.loads(printed)) == len(list(specs.iterdir()))
        driver = [python, "-c", DRIVER, home, str(weights), str(sample), str(parameters)]
        _, printed = processor_seconds(driver, release)
        return {"register_s": register_s, **json.loads(printed.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--former", type=Path, required=True, help="checkout of the former release, with its .venv")
    parser.add_argument("--members", type=int, default=3000)
    parser.add_argument("--sample", type=int, default=3, help="members that are opened and distilled, at least 2")
    arguments = parser.parse_args()
    members = members_of_positions(arguments.members)
    with tempfile.TemporaryDirectory() as folder:
        specs, weights = Path(folder) / "specs", Path(folder) / "weights"
        write_contingencies(members, specs)
        surrogate = create_model("moe-chained", compile_members(members))
        surrogate.calibrated.fill_(True)
        weights.write_bytes(to_bytes("moe-chained", surrogate, members))
        sides = {
            name: measure(release, python, specs, weights, surrogate.n_parameters, arguments.sample)
            for name, release, python in (
                ("former", arguments.former.resolve(), str(arguments.former.resolve() / ".venv" / "bin" / "python")),
                ("present", ROOT, sys.executable),
            )
        }
    count = len(members)
    print(f"{count} members of {SYSTEM}; opened and distilled: a sample of {arguments.sample}, the rest extrapolated")
    columns = ("register all", "open first", "open next", "distill one", "open all*", "distill all*")
    print(f"{'release':8} " + " ".join(f"{column:>14}" for column in columns))
    for name, side in sides.items():
        seconds = (side["register_s"], side["open_first_s"], side["open_next_s"], side["distill_s"])
        minutes = ((side["open_first_s"] + (count - 1) * side["open_next_s"]) / 60, count * side["distill_s"] / 60)
        cells = [f"{value:.3f} s" for value in seconds] + [f"{value:.1f} min" for value in minutes]
        print(f"{name:8} " + " ".join(f"{cell:>14}" for cell in cells))
    print("* extrapolated from the sample; distilled from the fast reference ODE without strict severities")
    for name, side in sides.items():
        for what, value in side.items():
            print(f"figure {name}_{what} {value:.4g} s")
    for what in ("register_s", "open_first_s", "open_next_s", "distill_s"):
        print(f"figure {what.removesuffix('_s')}_speedup {sides['former'][what] / sides['present'][what]:.2f} x")


if __name__ == "__main__":
    main()
