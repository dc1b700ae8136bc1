"""How the full-network DAE's CCT converges with the step, beside the reduced ODE and the paper's table.

The rows are those of the paper's step-refinement table, the measurement is that of `cct-zoo benchmark
dae-convergence`: each CCT is found by the usual search and then refined far below its tolerance, so that what is left
is the error of the step alone.
"""

from zoo.paper.common import SYSTEMS
from zoo.paper.dae_convergence import CASES, PAPER, STEPS_MS, measure, order, paper_order


def main() -> None:
    """Print the table and its figures."""
    figures = []
    print(
        f"{'system':8}{'alpha':>6}  {'source':14}"
        + "".join(f"{f'{step:g} ms':>12}" for step in STEPS_MS)
        + f"{'order':>8}"
    )
    for case, alpha in CASES.items():
        found = measure(SYSTEMS[case], alpha, STEPS_MS)
        ode, ccts = found["ode"], list(found["dae"].values())
        assert None not in ccts, f"{SYSTEMS[case]} has no finite CCT at {alpha} for some step"
        errors, slope = [1e3 * (cct - ode) for cct in ccts], order(ccts, ode)
        paper = [number.mean for number in PAPER[case][:3]]
        start = f"{case:8}{alpha:6.2f}  "
        print(f"{start}{'DAE, s':14}" + "".join(f"{cct:12.6f}" for cct in ccts) + f"{slope:8.2f}")
        print(f"{start}{'DAE - ODE, ms':14}" + "".join(f"{error:12.5f}" for error in errors))
        print(
            f"{start}{'paper DAE, s':14}"
            + "".join(f"{cct:12.5f}" for cct in paper)
            + f"{'':12}{paper_order(case).mean:8.2f}"
        )
        print(f"{start}{'ODE, s':14}{ode:12.6f} (strict)")
        system = case.replace(" ", "").lower()
        figures += [f"figure dae_minus_ode_ms_{system} {errors[-1]:.5f} ms", f"figure dae_order_{system} {slope:.3f} 1"]
    print("The ODE is the strict reduced model; figures are at 1 ms. The paper's order is that of its differences.")
    print("\n".join(figures))


if __name__ == "__main__":
    main()
