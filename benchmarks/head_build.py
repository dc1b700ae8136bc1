"""Processor time of a head, gate included: this release beside a former, from a chained checkpoint and the reference.

Run: python benchmarks/head_build.py --former FOLDER

The checkpoint is the moe-chained of the home that the tests keep from version 0.1.0, which both releases open; for
the 39-bus system, which that home does not have, one is trained for half a minute, and only this release builds its
heads. Every head is fitted, measured against the fast and the strict ODE at twelve severities, and judged by the gate.
Compiling is not counted: a head of another contingency is made first. FOLDER is a checkout of the former release with
its interpreter in .venv. Seconds are those of the processor, because the machine is shared.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOME = ROOT / "tests" / "fixtures" / "home-0.1.0.tar.xz"
NAME = "ieee30-line-3-4-restore"

NAME_39, POSITION_39 = "ieee39-line-16-17-remove", 0.02

# Runs under both releases, whose modules have other names.
DRIVER = """
import json, sys, time
import torch
torch.set_num_threads(1)
from registry.home import Home
from registry.store import contingencies
from registry.store.deployments import Gate
try:
    from zoo.heads.distill import HeadSettings, distill
    options = {"settings": HeadSettings(strict=12)}
except ImportError:
    from zoo.distill import distill
    options = {"strict": 12}
home_path, name = sys.argv[1:]
figures = {}
with Home.open(home_path) as home:
    distill(home, contingencies.find(home.database, "ieee9-mech-g2-restore"), **options)  # compiles
    row = contingencies.find(home.database, name)
    for source in ("reference", "latest"):
        begin = time.process_time()
        head = distill(home, row, source, **options)
        objections = Gate().objections(head)
        errors = head.errors if hasattr(head, "errors") else json.loads(head.errors_json)
        figures[source] = {
            "seconds": time.process_time() - begin, "objections": objections, "bound_ms": 1e3 * head.error_bound_s,
            "mean_ms": 1e3 * head.strict_mae_s, "asked": errors["detail"]["evaluations"],
        }
print(json.dumps(figures))
"""
# Trains and registers what the old home does not have.
TRAINER = """
import sys
import torch
torch.set_num_threads(1)
from contingencies.families import generate_family
from contingencies.library import load_contingency, load_system
from contingencies.recipes import Recipe
from registry.home import Home
from zoo.training.request import TrainingRequest
from zoo.training.session import Session
home_path, name, position = sys.argv[1:]
with Home.open(home_path) as home:
    family = generate_family(load_system("ieee39"), Recipe("line", "remove-line", position=float(position))).members
    member = next(each for each in family if each.name == name)
    rows = [registered.row for registered in home.register([member, load_contingency("ieee9-mech-g2-restore")])]
    Session(home).train(rows[:1], TrainingRequest("es-pinn-chained", fraction=0.2, minutes=0.5, clock="processor"))
"""


def measure(release: Path, python: str, name: str = NAME) -> dict[str, dict[str, float]]:
    """What a release needs for both heads, and how good they are."""
    with tempfile.TemporaryDirectory() as home:
        if name == NAME:
            with tarfile.open(HOME) as archive:
                archive.extractall(home, filter="data")
        else:
            command = [python, "-c", TRAINER, home, name, str(POSITION_39)]
            subprocess.run(command, cwd=release, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [python, "-c", DRIVER, home, name]
        done = subprocess.run(command, cwd=release, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--former", type=Path, required=True, help="checkout of the former release, with its .venv")
    former = parser.parse_args().former.resolve()
    before = measure(former, str(former / ".venv" / "bin" / "python"))
    present = measure(ROOT, sys.executable)
    larger = measure(ROOT, sys.executable, NAME_39)
    print(f"{'':24} {'release':8} {'source':10} {'seconds':>8} {'asked':>6} {'mean ms':>9} {'bound ms':>9}  gate")
    measured = ((NAME, "former", before), (NAME, "present", present), (NAME_39, "present", larger))
    for name, release, sources in measured:
        for source, made in sources.items():
            gate = "refused" if made["objections"] else "passed"
            print(
                f"{name:24} {release:8} {source:10} {made['seconds']:8.2f} {made['asked']:6.0f} {made['mean_ms']:9.5f} "
                f"{made['bound_ms']:9.5f}  {gate}"
            )
    for source, name in (("latest", "chained"), ("reference", "reference")):
        print(f"figure head_{name}_ieee39_s {larger[source]['seconds']:.3g} s")
    chained = present["latest"]["seconds"]
    print(f"figure head_chained_s {chained:.3g} s")
    print(f"figure head_reference_s {present['reference']['seconds']:.3g} s")
    print(f"figure head_chained_over_before {chained / before['latest']['seconds']:.3g} x")


if __name__ == "__main__":
    main()
