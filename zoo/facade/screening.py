"""Ranking a whole family of contingencies from Python."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contingencies.errors import NotFoundError
from contingencies.families import LeftOut, generate_family
from contingencies.library import System, load_system
from contingencies.network import solve_network
from contingencies.operators import compile_family
from contingencies.point_networks import solve_at
from contingencies.protection import Verdict, judge
from contingencies.recipes import Recipe
from contingencies.reduction import reduce_network
from contingencies.references import Reference
from zoo.facade.frames import to_frame
from zoo.studies import screening
from zoo.studies.screening import Screened
from zoo.work.executor import Executor
from zoo.work.reporting import Report, silent


@dataclass(frozen=True)
class Screening:
    """The members of a family, most critical first, and the places where the same cannot happen."""

    system: str
    recipe: Recipe
    alpha: float
    at: Mapping[str, float]
    reference: str
    answers: tuple[Screened, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def title(self) -> str:
        """What was studied, in words."""
        where = "".join(f", {name}={value:g}" for name, value in self.at.items())
        return f"{self.system}: {_studied(self.recipe)}, {self.recipe.clearing}, severity {self.alpha:g}{where}"

    def verdicts(self, required_ms: float) -> tuple[Verdict, ...]:
        """Whether protection that needs `required_ms` is fast enough, for each answer."""
        return tuple(judge(a.status, a.duration, self.recipe.window, 1e-3 * required_ms) for a in self.answers)

    def reports(self, required_ms: float | None = None) -> list[dict[str, Any]]:
        """Each answer with everything it depends on, as plain values."""
        window = self.recipe.window
        assumed = {  # a CCT without its window and criterion means nothing
            "t_f_s": window.t_f,
            "window_t_c_s": list(window.t_c),
            "T_s": window.T,
            "max_separation_rad": self.recipe.stability.max_separation_rad,
        }
        rows = [answer.report() | assumed for answer in self.answers]
        if required_ms is None:
            return rows
        return [
            row | {"required_s": verdict.required, "verdict": verdict.outcome, "margin_s": verdict.margin}
            for row, verdict in zip(rows, self.verdicts(required_ms), strict=True)
        ]

    def to_csv(self) -> str:
        """Ranked answers, then the places left out with their reasons."""
        return screening.screening_csv(self.answers, self.left_out)

    def to_frame(self, required_ms: float | None = None) -> Any:
        """A pandas table with one row per member, most critical first."""
        return to_frame(self.reports(required_ms))

    def plot(self, required_ms: float | None = None) -> Any:
        """A matplotlib figure of the most critical members."""
        return screening.plot_screening(self.answers, self.recipe.window, self.title, required_ms)


def screen(
    system: str | Path | System,
    recipe: Recipe,
    alpha: float = 1.0,
    *,
    at: Mapping[str, float] | None = None,
    reference: Reference = "fast",
    executor: Executor | None = None,
    report: Report = silent,
) -> Screening:
    """Rank a family of contingencies by critical clearing time, most critical first.

    Parameters
    ----------
    system : str, Path or System
        A shipped system, or the path of a system file.
    recipe : Recipe
        What happens at every place, as `Recipe("line", "remove-line")`.
    alpha : float
        Severity.
    at : mapping, optional
        Operating point, as `{"load": 1.1}`; default: the case's own values.
    reference : {"fast", "strict", "dae"}
    executor : Executor, optional
        Where members are simulated; default: in this process.
    report : callable
        Called with stage, members done, members in all.
    """
    loaded = system if isinstance(system, System) else load_system(str(system))
    family = generate_family(loaded, recipe)
    if not family.members:
        raise NotFoundError(
            f"{loaded.name} has no place for {recipe.fault} faults cleared by {recipe.clearing} among those that the "
            "options select; check the filters."
        )
    network = solve_at(family.members[0], dict(at)) if at else solve_network(loaded)
    operators = compile_family(family.members, reduce_network(network))
    answers = screening.screen(operators, alpha, reference, executor, report)
    return Screening(loaded.name, recipe, alpha, dict(at or {}), reference, tuple(answers), tuple(family.left_out))


def _studied(recipe: Recipe) -> str:
    """The fault of every member, in words."""
    if recipe.fault != "line":
        return f"{recipe.fault} faults, {recipe.fault_words}"
    near = "near either end" if len(recipe.positions) > 1 else f"at {recipe.positions[0]:g} of the line"
    return f"line faults {near}, {recipe.fault_words}"
