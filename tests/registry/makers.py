"""Small contingencies and heads for the registry's tests: no simulation, known answers."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contingencies.library import Contingency, System, load_contingency
from contingencies.points import Axis
from contingencies.spec import ContingencySpec
from contingencies.system_specs import SystemSpec
from espinn_moe.condition_head import ConditionHead
from espinn_moe.head import Head, Segment, Series
from espinn_moe.head_errors import Errors
from espinn_moe.readout import Readout
from registry.home import Home
from registry.records import ContingencyRecord, HeadRecord
from registry.store.heads import Measured

EDGE = 0.5


def contingency(
    name: str = "fault-a", position: float = 0.5, description: str = "", required_ms: float | None = None
) -> Contingency:
    """A line fault on the shipped IEEE 30 system under another name; `position` changes its physics."""
    shipped = load_contingency("ieee30-line-3-4-restore")
    content = json.loads(shipped.to_json()) | {"name": name, "description": description}
    content["fault"]["position"] = position
    if required_ms is not None:
        content["protection"] = {"required_ms": required_ms}
    return Contingency(ContingencySpec.model_validate_json(json.dumps(content)), shipped.system)


def own_system_contingency(name: str = "own-a", network: bytes = b"function mpc = own") -> Contingency:
    """A contingency whose system reads its network from a user's file."""
    shipped = load_contingency("ieee30-line-3-4-restore")
    system = json.loads(shipped.system.to_json()) | {"name": "own", "network": {"file": "own.m"}}
    spec = json.loads(shipped.to_json()) | {"name": name, "system": "own.yaml"}
    return Contingency(
        ContingencySpec.model_validate_json(json.dumps(spec)),
        System(SystemSpec.model_validate_json(json.dumps(system)), network),
    )


def head(level: float = 0.7) -> Head:
    """CCT = level above EDGE, right-censored below."""
    return Head(
        (0.0, 1.0),
        0.2,
        (
            Segment(0.0, EDGE, "right-censored"),
            Segment(EDGE, 1.0, "finite", Series("above-edge", EDGE, (0.0, 0.5**0.5), (level,))),
        ),
        error_bound_s=1e-5,
    )


AXES = (Axis("load", 0.8, 1.2), Axis("generation.2", 10.0, 70.0, "MW"))


def over_conditions(name: str = "fault-p") -> Contingency:
    """The line fault over a range of loads and of generation at bus 2, as `AXES` has them."""
    plain = contingency(name)
    content = json.loads(plain.to_json()) | {"conditions": {"load": [0.8, 1.2], "generation": {"2": [10.0, 70.0]}}}
    return Contingency(ContingencySpec.model_validate_json(json.dumps(content)), plain.system)


def nine(folder: Path) -> Contingency:
    """A bolted line fault on the textbook's nine buses, over a range of loads; pandapower is not needed to solve it."""
    (folder / "nine.yaml").write_text(
        "name: nine\nsystem: wscc9\nfault: {kind: line, line: [5, 7], position: 0.1, impedance_pu: {}}\n"
        "clearing: {action: remove-line}\nwindow: {t_f: 0.1, T: 2.0, t_c: [0.12, 0.9]}\n"
        "conditions: {load: [0.7, 1.3]}\n"
    )
    return load_contingency(str(folder / "nine.yaml"))


def condition_head(axes: tuple[Axis, ...] = AXES, own: tuple[float, ...] = (1.0, 40.0)) -> ConditionHead:
    """Edge at EDGE; CCT = 0.7 - 0.1 x - 0.05 y - 0.2 u with x and y the conditions scaled to [-1, 1]."""
    edge = Readout((np.zeros((len(axes), 1)),), (np.array([EDGE]),))
    slopes = [-0.1, -0.05][: len(axes)]
    root = Readout((np.array([[slope] for slope in (*slopes, -0.2, 0.0)]),), (np.array([0.7]),))
    return ConditionHead(
        (0.0, 1.0), 0.2, (0.25, 1.25), axes, own, edge, root, distances=(0.1,), bounds=(2e-4, 1e-5), error_bound_s=1e-4
    )


def measured(mae_s: float = 1e-5, max_s: float = 1e-4, disagreements: int = 0, count: int = 12) -> Measured:
    errors = Errors(count, count, mae_s, max_s, max_s, disagreements)
    return Measured(errors, errors, errors)


@dataclass
class Zoo:
    """A home on one of the backends; `again()` opens it as another process would."""

    path: Path
    url: str | None
    opened: list[Home] = field(default_factory=list)

    def again(self) -> Home:
        home = Home.open(self.path, self.url)
        self.opened.append(home)
        return home

    def with_head(self, name: str = "fault-a", level: float = 0.7) -> tuple[Home, ContingencyRecord, HeadRecord]:
        home = self.again()
        row = home.register([contingency(name)])[0].row
        return home, row, home.add_head(row, head(level), measured())
