"""Ranking contingencies of one system from Python: a family made on the spot, or those that a folder describes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contingencies.errors import NotFoundError, UsageError
from contingencies.families import LeftOut, generate_family
from contingencies.fault_specs import ShortCircuit
from contingencies.library import Contingency, System, load_system
from contingencies.network import solve_network
from contingencies.operators import compile_family
from contingencies.point_networks import solve_at
from contingencies.protection import Verdict, judge, required_time
from contingencies.reading import read_and_check
from contingencies.recipes import Recipe
from contingencies.reduction import reduce_network
from contingencies.references import Reference
from contingencies.reports import domain_remark
from contingencies.spec import ContingencySpec
from contingencies.tables import counted
from zoo.facade.frames import to_frame
from zoo.studies import screening
from zoo.studies.screening import Screened
from zoo.studies.screening_figure import plot_screening
from zoo.work.executor import Executor
from zoo.work.reporting import Report, silent


@dataclass(frozen=True)
class Screening:
    """Contingencies of a system, most critical first, and the places where the same cannot happen.

    Where times of protection are concerned, `required_ms` counts for all; left out, each member is held against the
    time that its own description states, if any.
    """

    system: str
    studied: str  # which faults, in words
    alpha: float
    at: Mapping[str, float]
    reference: str
    specs: Mapping[str, ContingencySpec]  # of each member, by its name
    answers: tuple[Screened, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def title(self) -> str:
        """What was studied, in words."""
        where = "".join(f", {name}={value:g}" for name, value in self.at.items())
        return f"{self.system}: {self.studied}, severity {self.alpha:g}{where}"

    @property
    def assumed(self) -> str:
        """Window and criterion, in words: a CCT without them means nothing."""
        specs = list(self.specs.values())
        if len({(spec.window, spec.stability) for spec in specs}) > 1:
            return "windows as described"
        window = specs[0].window
        return (
            f"t_f = {window.t_f:g} s, t_c in [{window.t_c[0]:g}, {window.t_c[1]:g}] s, T = {window.T:g} s, "
            f"limit {specs[0].stability.max_separation_rad:.4f} rad"
        )

    def verdicts(self, required_ms: float | None = None) -> tuple[Verdict | None, ...]:
        """Whether protection is fast enough, for each answer; None where no time is known."""
        verdicts: list[Verdict | None] = []
        for answer in self.answers:
            spec = self.specs[answer.contingency]
            required = required_time(spec, required_ms)
            verdicts.append(None if required is None else judge(answer.status, answer.duration, spec.window, required))
        return tuple(verdicts)

    def reports(self, required_ms: float | None = None) -> list[dict[str, Any]]:
        """Each answer with everything it depends on, as plain values."""
        rows = []
        for answer, verdict in zip(self.answers, self.verdicts(required_ms), strict=True):
            spec = self.specs[answer.contingency]
            window = spec.window
            assumed = {
                "t_f_s": window.t_f,
                "window_t_c_s": list(window.t_c),
                "T_s": window.T,
                "max_separation_rad": spec.stability.max_separation_rad,
            }
            rows.append(answer.report() | assumed | screening.verdict_report(verdict))
        return rows

    def to_csv(self, required_ms: float | None = None) -> str:
        """Ranked answers, then the places left out with their reasons."""
        return screening.screening_csv(self.answers, self.left_out, self.verdicts(required_ms))

    def to_frame(self, required_ms: float | None = None) -> Any:
        """A pandas table with one row per member, most critical first."""
        return to_frame(self.reports(required_ms))

    def plot(self, required_ms: float | None = None) -> Any:
        """A matplotlib figure of the most critical members."""
        return plot_screening(self.answers, self.specs, self.title, self.verdicts(required_ms))


def screen(
    system: str | Path | System,
    recipe: Recipe | None = None,
    alpha: float = 1.0,
    *,
    at: Mapping[str, float] | None = None,
    reference: Reference = "fast",
    executor: Executor | None = None,
    report: Report = silent,
) -> Screening:
    """Rank contingencies by critical clearing time, most critical first.

    Parameters
    ----------
    system : str, Path or System
        A shipped system, or the path of a system file; without a recipe, a folder of contingency files of one system.
    recipe : Recipe, optional
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
    left_out: tuple[LeftOut, ...] = ()
    if recipe is None:
        members = _described(system)
        studied = _described_words(members, str(system))
    else:
        members, left_out = _family(system, recipe)
        studied = f"{_studied(recipe)}, {recipe.clearing}"
    of = members[0].system
    network = solve_at(members[0], dict(at)) if at else solve_network(of)
    operators = compile_family(members, reduce_network(network))
    studied += domain_remark(operators[0], alpha)
    answers = screening.screen(operators, alpha, reference, executor, report)
    specs = {member.name: member.spec for member in members}
    return Screening(of.name, studied, alpha, dict(at or {}), reference, specs, tuple(answers), left_out)


def _family(system: str | Path | System, recipe: Recipe) -> tuple[Sequence[Contingency], tuple[LeftOut, ...]]:
    loaded = system if isinstance(system, System) else load_system(str(system))
    family = generate_family(loaded, recipe)
    if not family.members:
        raise NotFoundError(
            f"{loaded.name} has no place for {recipe.fault} faults cleared by {recipe.clearing} among those that the "
            "options select; check the filters."
        )
    return family.members, tuple(family.left_out)


def _described(folder: str | Path | System) -> Sequence[Contingency]:
    """The contingencies that a folder's files describe."""
    if isinstance(folder, System):
        raise UsageError(f"{folder.name}: give a recipe, which makes the family that is ranked.")
    members = read_and_check([str(folder)])
    if len({member.system.sha256 for member in members}) > 1:
        raise UsageError(f"{folder}: the contingencies are of several systems; screen those of one system at a time.")
    if len({member.name for member in members}) < len(members):
        raise UsageError(f"{folder}: a contingency's name comes twice; give each its own.")
    return members


def _described_words(members: Sequence[Contingency], folder: str) -> str:
    faults = [member.spec.fault for member in members]
    bolted = sum(isinstance(fault, ShortCircuit) and fault.is_bolted for fault in faults)
    kind = "all bolted" if bolted == len(members) else f"{bolted} of them bolted"
    return f"{counted(len(members), 'contingency', 'contingencies')} of the folder {folder}, {kind}"


def _studied(recipe: Recipe) -> str:
    """The fault of every member, in words."""
    if recipe.fault != "line":
        return f"{recipe.fault} faults, {recipe.fault_words}"
    near = "near either end" if len(recipe.positions) > 1 else f"at {recipe.positions[0]:g} of the line"
    return f"line faults {near}, {recipe.fault_words}"
