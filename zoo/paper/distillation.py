"""Figure 4 of the paper: scalar heads against the learned boundaries they were distilled from."""

from typing import Any

import numpy as np

from contingencies.stability import Boundary
from espinn_moe.boundary import learned_boundary
from espinn_moe.head import HeadKind
from espinn_moe.surrogate import Surrogate
from zoo.heads.distill import HeadSettings, distill_boundary
from zoo.heads.sources import Source
from zoo.paper.common import FEEDERS_CASE, METHODS, SYSTEMS, trained_why, training
from zoo.paper.entry import Findings, Setting, Task, entry, task
from zoo.paper.measurements import boundary_values
from zoo.paper.tables import Drawing, Presentation, Published, Quantity, Row, Table, cell
from zoo.plots import new_figure

KINDS = {"network": "plain network (the paper's kind)", "chebyshev": "edge-aware Chebyshev (ours)"}
PAPER = {"IEEE 9": Published(2.1), "IEEE 14": Published(2.1), FEEDERS_CASE: Published(4.3)}  # ms
SHOWN = 201  # severities of the figure
TOLERANCE_S = 1e-5  # to which heads follow a boundary: a hundredth of the errors that the paper reports


class _Remembered:
    """A boundary that is extracted once for each severity, however many heads ask for it."""

    def __init__(self, surrogate: Surrogate) -> None:
        self.surrogate = surrogate
        self.asked: dict[float, tuple[float, Any, bool]] = {}

    def __call__(self, alpha: np.ndarray) -> Boundary:
        new = np.array([a for a in alpha if float(a) not in self.asked])
        if len(new):
            boundary = learned_boundary(self.surrogate, new)
            values = zip(boundary.alpha, boundary.cct, boundary.status, boundary.restabilises, strict=True)
            self.asked.update({float(a): (float(c), s, bool(r)) for a, c, s, r in values})
        cct, status, again = zip(*(self.asked[float(a)] for a in alpha), strict=True) if len(alpha) else ((), (), ())
        return Boundary(np.asarray(alpha, dtype=float), np.array(cct), tuple(status), np.array(again), "learned")


def measure(surrogate: Surrogate, kinds: tuple[HeadKind, ...], shown: int, tolerance: float) -> dict[str, Any]:
    """Heads of each kind on one learned boundary: errors on severities drawn at random, and curves."""
    boundary = _Remembered(surrogate)
    alpha = np.linspace(*surrogate.members[0].severity, shown)
    heads = {}
    for kind in kinds:
        settings = HeadSettings(kind, strict=0, tolerance_s=tolerance)
        distilled = distill_boundary(Source(boundary, surrogate.members[0]), settings)
        cct, codes = distilled.head.answers(alpha)
        against = {"learned": distilled.measured.reconstruction, "ode": distilled.measured.reference}
        heads[kind] = {
            "parameters": distilled.head.parameters,
            "evaluations": distilled.evaluations,
            "cct": [float(c) if code == 0 else None for c, code in zip(cct, codes, strict=True)],
            **{f"{name}_mae_s": errors.mae_s for name, errors in against.items()},
            **{f"{name}_max_s": errors.max_s for name, errors in against.items()},
        }
    return {"boundary": boundary_values(boundary(alpha)), "heads": heads}


def _of(setting: Setting, system: str, model: str) -> list[Task]:
    trained = [training(setting, model, SYSTEMS[system], seed) for seed in setting.seeds]
    options = {"kinds": tuple(KINDS), "shown": SHOWN, "tolerance": TOLERANCE_S}
    return [task("distillation:measure", each, **options) for each in trained]


def tasks(setting: Setting) -> list[Task]:
    """Heads of the boundaries of the cross-system study."""
    return [each for system in SYSTEMS for model in setting.budget.distilled for each in _of(setting, system, model)]


def present(setting: Setting, findings: Findings) -> Presentation:
    """Reconstruction errors of both kinds of head, and their signed discrepancies."""
    rows = []
    for system in SYSTEMS:
        for model in setting.budget.distilled:
            wanted = _of(setting, system, model)
            for kind, label in KINDS.items():
                heads = [result["heads"][kind] for result in findings.of(wanted)]
                paper = PAPER[system] if kind == "network" else None
                cells = (
                    cell([head["learned_mae_s"] for head in heads], paper, 1e3),
                    cell([head["learned_max_s"] for head in heads], factor=1e3),
                    cell([head["ode_mae_s"] for head in heads], factor=1e3),
                    cell([float(head["parameters"]) for head in heads]),
                )
                why = findings.why(
                    wanted,
                    "" if any(head["learned_mae_s"] is not None for head in heads) else "no finite learned boundary",
                    "errors on random unseen severities, the paper's on the severities it was fitted to",
                    trained_why(setting, model),
                )
                rows.append(Row(f"{system}, {METHODS[model]}, {label}", cells, why))
    table = Table(
        "heads",
        "Heads against the learned boundary, and against the reduced ODE",
        "Figure 4 and its text",
        (
            Quantity("reconstruction MAE", "ms"),
            Quantity("reconstruction largest", "ms"),
            Quantity("MAE against the ODE", "ms"),
            Quantity("parameters"),
        ),
        tuple(rows),
    )
    note = (
        "CCT(α) is nearly vertical at its censoring edge; the edge-aware head is a series in the root of that distance."
    )
    return Presentation((table,), (_drawing(setting, findings),), (note,))


def _drawing(setting: Setting, findings: Findings) -> Drawing:
    figure, axes = new_figure(2, len(SYSTEMS), width=11.0, height=5.6, sharex="col", squeeze=False)
    model = setting.budget.distilled[-1]
    for (top, bottom), system in zip(axes.T, SYSTEMS, strict=True):
        for result in findings.of(_of(setting, system, model))[:1]:
            alpha, learned = (np.array(result["boundary"][name], dtype=float) for name in ("alpha", "cct"))
            top.plot(alpha, learned, "k--", lw=2, label="learned boundary")
            for colour, kind in zip(("C3", "C0"), KINDS, strict=True):
                head = np.array(result["heads"][kind]["cct"], dtype=float)
                top.plot(alpha, head, color=colour, lw=1, label=kind)
                bottom.plot(alpha, np.abs(1e3 * (head - learned)) + 1e-6, ".", ms=3, color=colour, label=kind)
            bottom.set_yscale("log")
            top.legend(fontsize=7)
        top.set_title(system, fontsize=9)
        bottom.set_xlabel("severity α")
        bottom.grid(alpha=0.3)
        top.grid(alpha=0.3)
    axes[0][0].set_ylabel("CCT (s)")
    axes[1][0].set_ylabel("|head - learned| (ms)")
    return Drawing(
        "heads", f"Heads of {METHODS[model]}, first seed; below, their distance to the learned boundary.", figure
    )


BENCHMARK = entry("distillation", tasks, present)
