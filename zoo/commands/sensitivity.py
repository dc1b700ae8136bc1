"""The command that tells how a CCT moves with severity and conditions."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from zoo.commands.options import FINITE, ROW_NUMBER, at_option, file_option, json_option, registry_options
from zoo.commands.output import print_json

if TYPE_CHECKING:
    from contingencies.network import Float
    from contingencies.operator_family import OperatorFamily
    from espinn_moe.chained import Chained

STEPS = {"MW": 10.0, "": 0.01}  # what people call a small change: 10 MW, one hundredth of a factor or position


@click.command(epilog="Example: cct-zoo sensitivity ieee30-line-3-4-restore --alpha 0.93")
@click.argument("name")
@click.option("--alpha", type=FINITE, required=True, help="Severity.")
@at_option
@click.option(
    "--checkpoint",
    type=ROW_NUMBER,
    metavar="ID",
    help="Ask this trained surrogate, through its whole graph; default: the fast reduced ODE.",
)
@click.option("--plot", type=file_option, help="Write a tornado plot (PNG, SVG or PDF).")
@registry_options
@json_option
def sensitivity(
    name: str,
    alpha: float,
    at: tuple[str, ...],
    checkpoint: int | None,
    plot: Path | None,
    home: str,
    registry: str | None,
    as_json: bool,
) -> None:
    """What small changes of severity and conditions do to the CCT of contingency NAME at an operating point.

    Says, for instance, how many milliseconds 10 MW more at bus 2 cost.
    """
    import numpy as np

    from contingencies.errors import UsageError
    from contingencies.operator_family import operator_family
    from contingencies.point_networks import axes_of, point_of
    from contingencies.points import parse_at
    from contingencies.reports import domain_remark
    from zoo.lookup import find_contingency

    given, contingency = parse_at(at), find_contingency(name, home, registry)
    if not axes_of(contingency):
        raise UsageError(f"{contingency.name} has no conditions; add a conditions block to its description.")
    point = point_of(contingency, given)
    family = operator_family(contingency)
    values = np.array(point.values)
    if checkpoint is None:
        source, (cct, slopes) = "fast ODE", _reference(family, alpha, values)
    else:
        source, (cct, slopes) = f"checkpoint {checkpoint}", _learned(name, checkpoint, home, registry, alpha, values)
    rows = _rows(family, slopes)
    if plot:
        from zoo.judging.condition_figures import plot_tornado
        from zoo.plots import save_figure

        title = f"{contingency.name}, severity {alpha:g}, {point}"
        save_figure(plot_tornado([(row["change"], row["ms"]) for row in rows], title), plot)
    if as_json:
        print_json(
            {"contingency": contingency.name, "alpha": alpha, "at": point.to_dict(), "source": source,
             "cct_s": round(cct, 9), "changes": rows}
        )  # fmt: skip
        return
    t_f = family.base.window.t_f
    click.echo(
        f"{contingency.name}  alpha {alpha:g}  at {point}  CCT {cct:.5f} s "
        f"(fault may last {1e3 * (cct - t_f):.2f} ms){domain_remark(family.base, alpha)}  [{source}]"
    )
    for row in rows:
        click.echo(f"{row['change']:>28}  {row['ms']:+10.4f} ms")


def _rows(family: "OperatorFamily", slopes: "Float") -> list[dict[str, Any]]:
    """Changes of the CCT for a small step of everything, largest first; slopes by severity and conditions (1 + d,)."""
    named = [("severity", "", family.base.severity)] + [(a.name, a.unit, (a.low, a.high)) for a in family.axes]
    rows = []
    for (label, unit, _), slope in zip(named, slopes.tolist(), strict=True):
        step = STEPS[unit]
        rows.append(
            {"condition": label, "change": f"{label} +{step:g}{' ' if unit else ''}{unit}", "step": step,
             "ms": round(1e3 * slope * step, 6), "s_per_unit": slope}
        )  # fmt: skip
    return sorted(rows, key=lambda row: -abs(row["ms"]))


def _finite(cct: float | None, status: str) -> float:
    from contingencies.errors import UsageError

    if cct is None or cct != cct:
        raise UsageError(f"the CCT is {status} there, so it does not move; choose another severity or point.")
    return cct


def _reference(family: "OperatorFamily", alpha: float, values: "Float") -> "tuple[float, Float]":
    import numpy as np

    from contingencies.point_references import reference_gradient
    from contingencies.references import reference_cct

    answer = reference_cct(family.operators_at(values), alpha)
    cct = _finite(answer.cct, answer.status)
    by_alpha, by_condition = reference_gradient(family, alpha, values, cct)
    return cct, np.concatenate([[by_alpha], by_condition])


def surrogate_over_conditions(name: str, checkpoint: int, home: str, registry: str | None) -> "tuple[Chained, int]":
    """A trained surrogate that sees conditions, and which of its members a contingency is."""
    from contingencies.errors import UsageError
    from espinn_moe.chained import Chained
    from zoo.commands.boundary import load_surrogate

    loaded, _ = load_surrogate(name, checkpoint, home, registry)
    surrogate = loaded.surrogate
    if not isinstance(surrogate, Chained) or not surrogate.axes:
        raise UsageError(f"checkpoint {checkpoint} knows no conditions; train one for {name} as it is now.")
    return surrogate, loaded.member


def _learned(
    name: str, checkpoint: int, home: str, registry: str | None, alpha: float, values: "Float"
) -> "tuple[float, Float]":
    import numpy as np

    from contingencies.errors import UsageError
    from espinn_moe.condition_boundary import point_boundary, point_gradient

    surrogate, member = surrogate_over_conditions(name, checkpoint, home, registry)
    found = point_boundary(surrogate, np.array([alpha]), values[None], member)
    cct = _finite(float(found.cct[0]), found.status[0])
    gradient = point_gradient(surrogate, alpha, values, cct, member)
    if gradient.by_alpha is None or gradient.by_condition is None:
        raise UsageError("the margin hardly depends on the clearing instant there; choose another severity or point.")
    return cct, np.array([gradient.by_alpha, *gradient.by_condition])
