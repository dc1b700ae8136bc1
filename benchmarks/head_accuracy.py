"""How well heads reproduce the boundary they were distilled from, on severities not fitted.

Run: python benchmarks/head_accuracy.py [--severities 200] [--strict 6]

The boundary is the fast reference ODE; severities are drawn at random over the finite
interval. Beside the Chebyshev head in the edge coordinate stands the paper's small network,
trained on the same boundary, and the Chebyshev head's error against the strict ODE.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse

from contingencies.library import load_contingency
from contingencies.operators import compile_contingency
from contingencies.references import reference_boundary
from espinn_moe.head_errors import draw_severities, errors_against
from espinn_moe.head_fit import fit_head
from espinn_moe.head_network import train

NAMES = ("ieee30-line-3-4-restore", "ieee9-mech-g2-restore", "ieee14-line-4-5-remove", "ieee30-bus-3-trip")


def main() -> None:
    """Fit, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--severities", type=int, default=200)
    parser.add_argument("--strict", type=int, default=6, help="severities compared with the strict ODE")
    options = parser.parse_args()
    figures = []
    for name in NAMES:
        operators = compile_contingency(load_contingency(name))

        def boundary(alpha, operators=operators, reference="fast"):
            return reference_boundary(operators, alpha, reference)

        for kind, network in (("chebyshev", None), ("network", train)):
            fit = fit_head(boundary, operators.severity, operators.window.t_f, network=network)
            errors = errors_against(fit.head, boundary(draw_severities(fit.head, options.severities, seed=5)))
            print(
                f"{name:25} {kind:9} {fit.head.parameters:5} parameters, {fit.evaluations} severities asked: "
                f"MAE {1e3 * errors.mae_s:.5f} ms, max {1e3 * errors.max_s:.5f} ms, "
                f"95 % bound {1e3 * errors.bound_s:.5f} ms, {errors.disagreements} of other status"
            )
            suffix = "" if kind == "chebyshev" else "_network"
            figures.append(f"figure head_mae_ms_{name}{suffix} {1e3 * errors.mae_s:.5f} ms")
            if kind == "chebyshev" and options.strict:
                drawn = draw_severities(fit.head, options.strict, seed=6)
                strict = errors_against(fit.head, boundary(drawn, reference="strict"))
                print(
                    f"{'':25} against the strict ODE: MAE {1e3 * strict.mae_s:.5f} ms, max {1e3 * strict.max_s:.5f} ms"
                )
    print("\n".join(figures))


if __name__ == "__main__":
    main()
