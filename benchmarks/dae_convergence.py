"""How the full-network DAE's CCT converges with the step, beside the reduced ODE and the paper's table.

The rows are those of the paper's step-refinement table. Each CCT is found by the usual search and
then refined far below its tolerance, so that what is left is the error of the step alone.
"""

import numpy as np
from scipy.optimize import brentq

from contingencies.dae import DAE, dae_cct
from contingencies.library import load_contingency
from contingencies.ode import strict_margins
from contingencies.operators import compile_contingency
from contingencies.stability import Margins, reference_cct

STEPS_MS = (10.0, 5.0, 2.5, 1.0)
ROWS = (  # system, contingency, severity, the paper's CCT at 10, 5 and 2.5 ms
    ("ieee9", "ieee9-mech-g2-restore", 0.90, (0.66021, 0.66509, 0.66754)),
    ("ieee14", "ieee14-line-4-5-remove", 0.90, (1.03020, 1.03015, 1.03011)),
    ("ieee30", "ieee30-bus-3-trip", 0.70, (0.68034, 0.68516, 0.68757)),
)


def refined(margins: Margins, near: float) -> float:
    """The root of a margin next to a CCT known to a microsecond, s."""
    return float(brentq(lambda t_c: margins(np.array([t_c]))[0], near - 4e-6, near + 4e-6, xtol=1e-10, rtol=1e-14))


def main() -> None:
    """Print the table and its figures."""
    figures = []
    print(
        f"{'system':8}{'alpha':>6}  {'source':14}"
        + "".join(f"{f'{step:g} ms':>12}" for step in STEPS_MS)
        + f"{'order':>8}"
    )
    for system, name, alpha, paper in ROWS:
        operators = compile_contingency(load_contingency(name))
        fast = reference_cct(operators, alpha, "fast").cct
        assert fast is not None, f"{name} has no finite CCT at {alpha}"
        ode = refined(lambda t_c, ops=operators, a=alpha: strict_margins(ops, a, t_c), fast)
        ccts = []
        for step in STEPS_MS:
            found = dae_cct(operators, alpha, step * 1e-3).cct
            assert found is not None, f"{name} has no finite CCT at {alpha} and {step} ms"
            ccts.append(refined(DAE(operators, alpha, step * 1e-3).margins, found))
        errors = (np.array(ccts) - ode) * 1e3
        order = float(np.polyfit(np.log(STEPS_MS), np.log(np.abs(errors)), 1)[0])
        paper_order = float(np.log2(abs((paper[0] - paper[1]) / (paper[1] - paper[2]))))
        start = f"{system:8}{alpha:6.2f}  "
        print(f"{start}{'DAE, s':14}" + "".join(f"{cct:12.6f}" for cct in ccts) + f"{order:8.2f}")
        print(f"{start}{'DAE - ODE, ms':14}" + "".join(f"{error:12.5f}" for error in errors))
        print(f"{start}{'paper DAE, s':14}" + "".join(f"{cct:12.5f}" for cct in paper) + f"{'':12}{paper_order:8.2f}")
        print(f"{start}{'ODE, s':14}{ode:12.6f} (strict), {fast:.6f} (fast)")
        figures += [f"figure dae_minus_ode_ms_{system} {errors[-1]:.5f} ms", f"figure dae_order_{system} {order:.3f} 1"]
    print("The ODE is the strict reduced model; figures are at 1 ms. The paper's order is that of its differences.")
    print("\n".join(figures))


if __name__ == "__main__":
    main()
