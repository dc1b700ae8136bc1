"""Small systems with known answers, and shorthands that many tests use."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from contingencies.library import load_contingencies, load_contingency
from contingencies.operators import PhaseOperators, compile_contingency

# A machine against an infinite bus (a machine of enormous inertia behind a negligible reactance):
# two parallel lines, no resistance, no load, so that equal area gives the CCT in closed form.
SMIB_NETWORK = """function mpc = smib
mpc.version = '2';
mpc.baseMVA = 100;
mpc.bus = [
	1	2	0	0	0	0	1	{vg}	0	345	1	1.2	0.8;
	2	3	0	0	0	0	1	{v_inf}	0	345	1	1.2	0.8;
	3	1	0	0	0	0	1	1.0	0	345	1	1.2	0.8;
];
mpc.gen = [
	1	{p}	0	900	-900	{vg}	100	1	900	0	0	0	0	0	0	0	0	0	0	0	0;
	2	0	0	9000	-9000	{v_inf}	100	1	9000	-9000	0	0	0	0	0	0	0	0	0	0	0;
];
mpc.branch = [
	1	3	0	0.15	0	900	900	900	0	0	1	-360	360;
	3	2	0	{x1}	0	900	900	900	0	0	1	-360	360;
	3	2	0	{x2}	0	900	900	900	0	0	1	-360	360;
];
"""

SMIB_SYSTEM = """name: smib
network: {{file: smib.m}}
frequency_hz: 60
machines:
  base: system
  units:
    - {{bus: 1, H: {H}, x_d: {x_d}}}
    - {{bus: 2, H: 1.0e+9, x_d: 1.0e-7}}
provenance: one machine against an infinite bus, for equal-area checks
"""


def write_smib(folder: Path, p=90.0, vg=1.0, v_inf=1.0, x1=0.5, x2=0.93, H=3.5, x_d=0.3) -> Path:
    """Write the network and system file of a single machine against an infinite bus."""
    (folder / "smib.m").write_text(SMIB_NETWORK.format(p=p, vg=vg, v_inf=v_inf, x1=x1, x2=x2))
    path = folder / "smib.yaml"
    path.write_text(SMIB_SYSTEM.format(H=H, x_d=x_d))
    return path


def write_contingency(folder: Path, text: str, name: str = "contingency.yaml") -> Path:
    """Write a contingency file."""
    path = folder / name
    path.write_text(text)
    return path


def compile_text(folder: Path, text: str) -> PhaseOperators:
    """Operators of a contingency given as YAML text; its system path is relative to `folder`."""
    return compile_contingency(load_contingencies(write_contingency(folder, text))[0])


@lru_cache
def operators_of(name: str) -> PhaseOperators:
    """Operators of a shipped contingency, compiled once per test process."""
    return compile_contingency(load_contingency(name))


def narrowed(operators: PhaseOperators, first: float, last: float) -> PhaseOperators:
    """The same with fewer clearing instants, s: over all of them the strict ODE and the DAE search for seconds."""
    return replace(operators, window=operators.window.model_copy(update={"t_c": (first, last)}))


WSCC_BUS_7 = """name: wscc9-bus-7
system: wscc9
fault: {{kind: bus, bus: 7, shunt_pu: {{b: -1.0e+6}}}}
clearing: {{action: remove-line, line: [5, 7]}}
window: {{t_f: 0.1, T: {T}, t_c: [0.12, 0.5]}}
"""
