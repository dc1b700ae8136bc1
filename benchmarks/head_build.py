"""Processor time of a head, gate included: this release beside a former, from a chained checkpoint and the reference.

Run: python benchmarks/head_build.py --former FOLDER

The checkpoint is the moe-chained of the home that the tests keep from version 0.1.0, which both releases open. Every
head is fitted, measured against the fast and the strict ODE at twelve severities, and judged by the gate. Compiling
is not counted: a head of another contingency is made first. FOLDER is a checkout of the former release with its
interpreter in .venv. Seconds are those of the processor, because the machine is shared.
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


def measure(release: Path, python: str) -> dict[str, dict[str, float]]:
    """What a release needs for both heads, and how good they are."""
    with tempfile.TemporaryDirectory() as home:
        with tarfile.open(HOME) as archive:
            archive.extractall(home, filter="data")
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [python, "-c", DRIVER, home, NAME]
        done = subprocess.run(command, cwd=release, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--former", type=Path, required=True, help="checkout of the former release, with its .venv")
    former = parser.parse_args().former.resolve()
    before = measure(former, str(former / ".venv" / "bin" / "python"))
    present = measure(ROOT, sys.executable)
    print(f"{NAME}\n{'release':8} {'source':10} {'seconds':>8} {'asked':>6} {'mean ms':>9} {'bound ms':>9}  gate")
    for release, sources in (("former", before), ("present", present)):
        for source, made in sources.items():
            gate = "refused" if made["objections"] else "passed"
            print(
                f"{release:8} {source:10} {made['seconds']:8.2f} {made['asked']:6.0f} {made['mean_ms']:9.5f} "
                f"{made['bound_ms']:9.5f}  {gate}"
            )
    chained = present["latest"]["seconds"]
    print(f"figure head_chained_s {chained:.3g} s")
    print(f"figure head_reference_s {present['reference']['seconds']:.3g} s")
    print(f"figure head_chained_over_before {chained / before['latest']['seconds']:.3g} x")


if __name__ == "__main__":
    main()
