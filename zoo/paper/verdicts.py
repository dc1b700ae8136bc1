"""What an entry's section says first: its main numbers beside the paper's, in a sentence or a few.

Written from the numbers of a section, so that it changes with them. Which numbers are the main ones is data.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from zoo.paper.common import FEEDERS_CASE, PRIMARY_CASE
from zoo.paper.formats import number
from zoo.paper.tables import Cell, Quantity, Table

ALIKE = 0.05  # relative difference below which two numbers are called alike
SPREAD_SEEDS = 3  # the fewest whose standard deviation says that a difference may be chance


@dataclass(frozen=True)
class Claim:
    """A main number: what is said before it, and where it stands.

    `against` is the row whose published number it is compared with, when it is not the row's own; one that is not
    `compared` depends on the machine, or is round-off. A claim that begins no sentence continues the one before it,
    whose words it needs: where the number that begins a sentence is missing, all of the sentence is left out.
    """

    words: str
    table: str
    row: str
    quantity: str
    against: str = ""
    begins: bool = False  # a sentence of its own
    compared: bool = True


OURS = "ES-PINN chained (ours)"
SMOOTH_ERROR = "CCT MAE, smooth margin"
CLAIMS: dict[str, tuple[Claim, ...]] = {
    "case30-accuracy": (
        Claim("With the paper's residual ES-PINN's CCTs are off by", "cct", "ES-PINN", "CCT MAE"),
        Claim("Enhanced XPINN's by", "cct", "Enhanced XPINN", "CCT MAE"),
        Claim("ES-PINN's angles are off by", "trajectories", "ES-PINN", "RMSE delta", begins=True),
        Claim("Enhanced XPINN's by", "trajectories", "Enhanced XPINN", "RMSE delta"),
        Claim(
            "With the shooting residual ES-PINN's CCTs are off by", "cct-shooting", "ES-PINN", "CCT MAE", begins=True
        ),
        Claim("Enhanced XPINN's by", "cct-shooting", "Enhanced XPINN", "CCT MAE"),
        Claim("with it and the decisive part alone ES-PINN's by", "cct-focus-shooting", "ES-PINN", "CCT MAE"),
        Claim("Enhanced XPINN's by", "cct-focus-shooting", "Enhanced XPINN", "CCT MAE"),
        Claim("Our chained form's are off by", "cct", OURS, "CCT MAE", "ES-PINN", begins=True),
    ),
    "case30-longer": (
        Claim("After a longer training ES-PINN's CCTs are off by", "longer", "ES-PINN, longer", "CCT MAE"),
        Claim("Enhanced XPINN's by", "longer", "Enhanced XPINN, longer", "CCT MAE"),
        Claim("those without residuals by", "longer", "w/o residual loss, longer", "CCT MAE"),
        Claim(
            "With the shooting residual ES-PINN's are off by", "longer", "ES-PINN, shooting residual, longer",
            "CCT MAE", begins=True,
        ),
        Claim("its angles over the whole window by", "longer", "ES-PINN, shooting residual, longer", "RMSE delta"),
    ),
    "rollouts": (
        Claim("With rollouts renewed every 60 steps CCTs are off by", "rollouts", "renewed every 60 steps", "CCT MAE"),
        Claim("every 600 steps by", "rollouts", "renewed every 600 steps", "CCT MAE"),
        Claim("every 2,400 steps by", "rollouts", "renewed every 2400 steps", "CCT MAE"),
    ),
    "shooting-systems": tuple(
        Claim(words, "systems", case, quantity)
        for words, case, quantity in (
            ("With the shooting residual CCTs are off on the primary benchmark by", PRIMARY_CASE, "CCT MAE"),
            ("on IEEE 9 by", "IEEE 9", "CCT MAE"), ("on IEEE 14 by", "IEEE 14", "CCT MAE"),
            ("on IEEE 30 with feeders tripped by", FEEDERS_CASE, "CCT MAE"),
            ("read by the paper's smooth margin, on the primary benchmark by", PRIMARY_CASE, SMOOTH_ERROR),
            ("on IEEE 9 by", "IEEE 9", SMOOTH_ERROR), ("on IEEE 14 by", "IEEE 14", SMOOTH_ERROR),
        )
    ),
    "case30-matched": (
        Claim("On the training grid ES-PINN errs in angles by", "matched", "ES-PINN", "RMSE delta"),
        Claim("its stability map overlaps the true one by", "matched", "ES-PINN", "mIoU"),
    ),
    "case30-extrapolation": (
        Claim("Beyond the training range ES-PINN's CCTs are off by", "extrapolation", "ES-PINN", "CCT MAE"),
        Claim("our chained form's by", "extrapolation", OURS, "CCT MAE", "ES-PINN"),
    ),
    "sensitivity": (
        Claim("ES-PINN's derivative differs from its differences by", "sensitivity", "ES-PINN", "implicit-FD MAE"),
        Claim("our chained form's by", "sensitivity", OURS, "implicit-FD MAE", "ES-PINN"),
    ),
    "trajectory": (
        Claim("At this severity the CCT is", "scenario", "reduced ODE (strict)", "CCT at this severity"),
        Claim("by ES-PINN", "scenario", "ES-PINN", "CCT at this severity"),
        Claim("by our chained form", "scenario", OURS, "CCT at this severity"),
    ),
    "cross-system": tuple(
        Claim(f"{said}{system} by", "boundaries", f"{system}, ES-PINN", "CCT MAE against the ODE")
        for said, system in (("ES-PINN's CCTs are off on ", "IEEE 9"), ("on ", "IEEE 14"), ("on ", FEEDERS_CASE))
    ),
    "beta-sweep": tuple(
        Claim(f"{said}{system} by", "beta", f"{system}, reduced ODE", "E_sm")
        for said, system in (
            ("Smoothing alone moves the CCT, on ", "IEEE 9"), ("on ", "IEEE 14"), ("on ", PRIMARY_CASE)
        )
    ),
    "distillation": tuple(
        Claim(f"{said}{system} by", "heads", f"{system}, ES-PINN, {kind}", "reconstruction MAE", begins=said != "on ")
        for kind, first in (
            ("plain network (the paper's kind)", "Heads of the paper's kind miss the boundary they are made from, on "),
            ("edge-aware Chebyshev (ours)", "Ours miss it on "),
        )
        for said, system in ((first, "IEEE 9"), ("on ", "IEEE 14"), ("on ", FEEDERS_CASE))
    ),
    "runtime": tuple(
        Claim(words, "runtime", row, "CCT runtime", compared=False)
        for words, row in (
            ("One CCT takes the compiled ODE, which needs no training,", "reduced ODE (compiled, ours)"),
            ("ES-PINN", "ES-PINN, CPU"),
            ("a distilled head", "distilled head, CPU"),
        )
    ),
    "moe-low-data": (
        Claim("With a tenth of the scenarios MoE's CCTs are off by", "fractions", "0.1, MoE", "CCT MAE"),
        Claim("those of separate models by", "fractions", "0.1, Separate", "CCT MAE"),
        Claim("With all of them MoE's are off by", "fractions", "1, MoE", "CCT MAE", begins=True),
        Claim("those of separate models by", "fractions", "1, Separate", "CCT MAE"),
        Claim("With a tenth MoE's angles are off by", "fractions", "0.1, MoE", "RMSE delta", begins=True),
        Claim("those of separate models by", "fractions", "0.1, Separate", "RMSE delta"),
        Claim(
            "With a tenth our chained form's CCTs are off by", "fractions", "0.1, MoE chained (ours)", "CCT MAE",
            "0.1, MoE", begins=True,
        ),
    ),
    "moe-shooting": tuple(
        Claim(f"{said} by", table, f"{fraction}, {label}", quantity, begins=said[0].isupper())
        for said, table, fraction, label, quantity in (
            ("In the same time and with a tenth of the scenarios MoE's CCTs are off", "time", "0.1", "MoE", "CCT MAE"),
            ("those of separate models", "time", "0.1", "Separate", "CCT MAE"),
            ("with a fifth MoE's", "time", "0.2", "MoE", "CCT MAE"),
            ("those of separate models", "time", "0.2", "Separate", "CCT MAE"),
            ("with all of them MoE's", "time", "1", "MoE", "CCT MAE"),
            ("those of separate models", "time", "1", "Separate", "CCT MAE"),
            ("With a fifth and twice the time MoE's are off", "twice", "0.2", "MoE", "CCT MAE"),
            ("At the same steps of every model, with all scenarios, MoE's are off", "steps", "1", "MoE", "CCT MAE"),
            ("those of separate models", "steps", "1", "Separate", "CCT MAE"),
        )
    ),
    "family-scaling": (
        Claim("The median member of 33 is off by", "family", "33 members", "median CCT MAE"),
        Claim("the worst by", "family", "33 members", "worst member"),
    ),
    "time-sampling": (
        Claim("Samples twice as far apart move the CCT by", "sampling", "h_t = 2 ms", "largest change", compared=False),
    ),
    "dae-convergence": tuple(
        Claim(f"{said}{case} by", "steps", f"{case}, α = {alpha}", "largest difference to 2.5 ms")
        for said, case, alpha in (
            ("Steps of up to 10 ms move the full network's CCT, on ", "IEEE 9", "0.9"),
            ("on ", "IEEE 14", "0.9"),
            ("on ", FEEDERS_CASE, "0.7"),
        )
    ),
}  # fmt: skip


def verdict(name: str, tables: Sequence[Table]) -> str:
    """The main numbers of an entry in a sentence or a few; empty when it has none of them."""
    sentences: list[list[str]] = []
    for position, claim in enumerate(CLAIMS.get(name, ())):
        text = _said(claim, tables)
        if claim.begins or position == 0:
            sentences.append([text] if text else [])
        elif text and sentences[-1]:
            sentences[-1].append(text)
    joined = ("; ".join(parts) for parts in sentences if parts)
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in joined)


def _said(claim: Claim, tables: Sequence[Table]) -> str:
    found = _find(tables, claim.table, claim.row, claim.quantity)
    if found is None:
        return ""
    cell, quantity = found
    if cell.ours is None:
        return ""
    other = _find(tables, claim.table, claim.against, claim.quantity) if claim.against else found
    factor, unit = _plain_unit(quantity)
    value = f"{number(factor * cell.ours, quantity.digits)} {unit}".rstrip()
    beside = "" if other is None or not claim.compared else _beside(cell, other[0], factor)
    return f"{claim.words} {value}{beside}"


def _plain_unit(quantity: Quantity) -> tuple[float, str]:
    """What a number in "1e-2 rad" is multiplied by to be in "rad", and that unit."""
    power, _, unit = quantity.unit.partition(" ")
    return (float(power), unit) if power.startswith("1e") else (1.0, quantity.unit)


def _find(tables: Sequence[Table], table: str, row: str, quantity: str) -> tuple[Cell, Quantity] | None:
    for one in tables:
        for line in one.rows if one.name == table else ():
            for cell, column in zip(line.cells, one.quantities, strict=True):
                if (line.label, column.name) == (row, quantity):
                    return cell, column
    return None


def _beside(ours: Cell, published: Cell, factor: float) -> str:
    """How a number compares with the published one, which may be that of another row; both are shown times a factor."""
    mine, theirs = ours.ours, published.paper
    if mine is None or theirs is None:
        return ""
    shown = number(factor * theirs)
    if abs(mine - theirs) <= ALIKE * abs(theirs):
        return f", like the paper's {shown}"
    if mine == 0 or theirs == 0:
        return f" (the paper: {shown})"
    times = float(f"{max(mine / theirs, theirs / mine):.2g}")
    relation = f", {number(times)} times {'the' if mine > theirs else 'smaller than the'} paper's {shown}"
    spread = (ours.ours_std or 0.0) + (published.paper_std or 0.0)
    alike = ours.count >= SPREAD_SEEDS and abs(mine - theirs) <= spread
    return relation + (" but within the spread of seeds" if alike else "")
