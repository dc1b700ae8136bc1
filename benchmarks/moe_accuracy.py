"""One model for a family against separate models: the paper's two members over data fractions and seeds.

The members are the bus 7 shunt with line (4,6) removed, which is censored at every severity, and the fault on
line (3,4) with the line removed. All methods see the same scenarios and share one wall-clock budget (--minutes, for
both members together), or take the same number of steps (--steps). Errors are pooled over both members on the 7,600
held-out pairs, the CCT error over the unseen severities with a finite reference. What is done is kept in --output
and not done again.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
from pathlib import Path

from contingencies.library import load_contingency
from zoo.plots import save_figure
from zoo.studies.sweep import METHODS, Summary, SweepPlan, plot_sweep, run_sweep, summarise, table_csv, table_text
from zoo.work.executor import make_executor
from zoo.work.jobs import Done, failures

MEMBERS = ("ieee30-bus-7-remove-4-6", "ieee30-line-3-4-remove")


def tell(item: Done, count: int, total: int) -> None:
    inputs = item.job.inputs
    print(
        f"{count}/{total}  {inputs['model']} of {len(inputs['members'])}, fraction {inputs['fraction']:g}, "
        f"seed {inputs['seed']}",
        file=sys.stderr,
        flush=True,
    )


def print_figures(summaries: list[Summary]) -> None:
    for s in summaries:
        name = f"{s.method.replace('-', '_')}_%s_f{s.fraction:g}"
        if s.cct_mae_ms is not None:
            print(f"figure {name % 'cct_mae_ms'} {s.cct_mae_ms:.4f} ms")
        print(f"figure {name % 'rmse_delta'} {s.rmse_delta:.4f} rad")
        print(f"figure {name % 'rmse_omega'} {s.rmse_omega:.2e} pu")
    parameters = {s.method: s.parameters for s in summaries}
    for together, separate in (("moe", "separate"), ("moe-chained", "separate-chained")):
        if together in parameters and separate in parameters:
            saved = 100 * (1 - parameters[together] / parameters[separate])
            print(f"figure {together.replace('-', '_')}_parameters_saved {saved:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fractions", default="0.01,0.1,0.2,0.5,1.0", help="parts of the training scenarios")
    parser.add_argument("--methods", default="moe-chained,separate-chained", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", default="standard", help="quick, standard or paper")
    parser.add_argument("--minutes", type=float, help="for both members together, instead of the budget")
    parser.add_argument("--steps", type=int, help="of each training, instead of the budget: equal epochs")
    parser.add_argument("--jobs", type=int, help="worker processes; default: one per core")
    parser.add_argument("--cluster", help="scheduler of a Dask cluster")
    parser.add_argument("--output", type=Path, default=Path("moe-accuracy"))
    arguments = parser.parse_args()

    plan = SweepPlan(
        tuple(arguments.methods.split(",")),
        tuple(float(part) for part in arguments.fractions.split(",")),
        tuple(range(arguments.seeds)),
        arguments.budget,
        arguments.minutes,
        arguments.steps,
    )
    members = [load_contingency(name) for name in MEMBERS]
    executor = make_executor(arguments.jobs, arguments.cluster)
    rows, done = run_sweep(plan, members, executor, arguments.output, tell)
    print("\n".join(failures(done)), file=sys.stderr)
    summaries = summarise(rows)
    print(table_text(summaries))
    (arguments.output / "sweep.csv").write_text(table_csv(rows))
    save_figure(plot_sweep(summaries, "IEEE 30, two members"), arguments.output / "sweep.png")
    print_figures(summaries)


if __name__ == "__main__":
    main()
