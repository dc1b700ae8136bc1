"""Processor time of a training step of the paper's form: this release beside a former.

Run: python benchmarks/step_speed.py --former FOLDER

The same seeded steps are made by both: drawing a batch, the loss, its gradient, the optimiser. Stage 1 has the
pointwise residual, stage 2 the shooting residual with the rollouts that it renews. FOLDER is a checkout of the former
release; its dependencies are those of this interpreter. Both alternate, and of each the fastest of its rounds counts,
because the machine is shared.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRIMARY = "ieee30-line-3-4-restore"
CASES = {  # what is trained: model, members, stage
    "es-pinn, stage 1": ("es-pinn", (PRIMARY,), 0),
    "es-pinn, stage 2": ("es-pinn", (PRIMARY,), 1),
    "moe of two, stage 1": ("moe", ("ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove"), 0),
    "moe of two, stage 2": ("moe", ("ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove"), 1),
}

# Runs under both releases.
DRIVER = """
import json, sys, time
import torch
torch.set_num_threads(1)
from espinn_moe.train import make_optimizer
from zoo.paper.members import operators_of
from zoo.surrogates.catalogue import create_model, make_objective
from zoo.surrogates.datasets import training_set
name, members, stage, steps = json.loads(sys.argv[1])
operators = [operators_of(member) for member in members]
sets = [training_set(each, fraction=0.2, seed=0) for each in operators]
model = create_model(name, operators, 0)
objective = make_objective(name, model, sets, focus=True, residual="shooting")
optimizer = make_optimizer("soap", model, 1e-4)
generator = torch.Generator().manual_seed(0)

def step():
    optimizer.zero_grad(set_to_none=True)
    objective.advance(0.1, stage)
    terms = objective.terms(model, objective.batch(generator))
    torch.stack([objective.weights.get(name, 1.0) * value for name, value in terms.items()]).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

for _ in range(5):
    step()
begin = time.process_time()
for _ in range(steps):
    step()
print(json.dumps(1e3 * (time.process_time() - begin) / steps))
"""


def milliseconds(release: Path, case: tuple[str, tuple[str, ...], int], steps: int) -> float:
    """Of the processor for one step."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(release)}
    command = [sys.executable, "-c", DRIVER, json.dumps([*case, steps])]
    done = subprocess.run(command, cwd=release, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--former", type=Path, required=True, help="checkout of the former release")
    parser.add_argument("--steps", type=int, default=120, help="of every measurement (a renewal of rollouts takes 60)")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    former = chosen.former.resolve()
    print(f"{'':22} {'former':>9} {'present':>9}  ms of the processor for a step")
    figures = []
    for label, case in CASES.items():
        times = [
            (milliseconds(former, case, chosen.steps), milliseconds(ROOT, case, chosen.steps))
            for _ in range(chosen.rounds)
        ]
        before, present = (min(each) for each in zip(*times, strict=True))
        print(f"{label:22} {before:9.1f} {present:9.1f}", flush=True)
        name = label.replace(" of two", "").replace("es-pinn", "oneshot").replace(", stage ", "_stage")
        figures.append(f"figure step_{name}_over_before {present / before:.3g} x")
    print("\n".join(figures))


if __name__ == "__main__":
    main()
