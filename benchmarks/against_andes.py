"""CCTs of classical machines by our references and by ANDES, an independent program, from the same PSS/E files.

Both read the RAW files that ANDES ships, and one DYR file of GENCLS records that is written here (H of the shipped DYR
file where there is one). Loads are constant impedances, there are no controls; a solid fault at a bus is cleared
by opening a line. ANDES is asked around our answer, by bisection. It is no dependency: give a Python that has it.

    python benchmarks/against_andes.py --andes-python /path/to/venv/bin/python
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

B_FAULT = -1e4  # pu, of the fault shunt
T_F, T_END, STEP_S = 0.2, 2.5, 2e-3  # s; STEP_S is that of ANDES's trapezoidal rule
SPREAD_S, CLOSE_S = 2e-3, 2e-4  # s, half the first bracket around our answer; width of the last
CASES = {  # RAW file -> DYR file with inertias, ZX that replaces the one of the RAW file, fault bus and line
    "kundur/kundur.raw": (None, None, [(8, (8, 9)), (7, (7, 8))]),
    "ieee39/ieee39.raw": (None, 0.3, [(29, (28, 29)), (22, (21, 22))]),
    "npcc/npcc.raw": ("npcc/npcc_full.dyr", 0.3, [(12, (12, 13))]),
    "wecc/wecc.raw": ("wecc/wecc_gencls.dyr", None, [(38, (38, 45))]),
}

WORKER = """
import contextlib, io, json, sys
import andes, numpy as np
andes.config_logger(stream_level=50)
if sys.argv[1] == "cases":
    print(andes.utils.paths.cases_root())
    raise SystemExit
raw, dyr, bus, line, low, high, b, t_f, T, step, close = json.loads(sys.argv[1])
def simulated(t_c, scale):
    with contextlib.redirect_stdout(io.StringIO()):
        s = andes.load(raw, addfile=dyr, setup=False, default_config=True, no_output=True)
        s.add("Fault", dict(bus=bus, tf=t_f, tc=t_c, rf=0.0, xf=-1.0 / b))
        ends = zip(s.Line.bus1.v, s.Line.bus2.v)
        k = next(n for n, pair in enumerate(ends) if {int(x) for x in pair} == set(line))
        s.add("Toggle", dict(model="Line", dev=s.Line.idx.v[k], t=t_c))
        s.setup()
        for key in ("p2p", "p2i", "q2q", "q2i"):
            setattr(s.PQ.config, key, 0)
        s.PQ.config.p2z = s.PQ.config.q2z = 1
        s.Fault.config.scale = scale
        s.PFlow.run()
        for key, value in dict(tf=T, tstep=step, tol=1e-8, no_tqdm=1, criteria=0, fixt=1).items():
            setattr(s.TDS.config, key, value)
        s.TDS.run()
    return s
def separation(t_c):
    # Power balances in polar form are also met by a voltage of zero, and after clearing ANDES may settle there. Such
    # a run says nothing about the network; another start of its iteration, scaled voltages from before the fault, may.
    for scale in (1.0, 0.7, 0.5, 0.85, 0.3):
        s = simulated(t_c, scale)
        after = s.dae.ts.y[s.dae.ts.t > t_c + 2 * step][:, s.Bus.v.a]
        if after.size and after[0].min() > 1e-3:
            return float(np.ptp(s.dae.ts.x[:, s.GENCLS.delta.a], axis=1).max())
    print(json.dumps({"cct": None, "why": "ANDES settles at a voltage of zero"}))
    raise SystemExit
inside = separation(low) < np.pi <= separation(high)
while inside and high - low > close:
    middle = (low + high) / 2
    if separation(middle) >= np.pi:
        high = middle
    else:
        low = middle
print(json.dumps({"cct": (low + high) / 2 if inside else None, "why": "further away than the bracket"}))
"""


def asked(python: str, *arguments: str) -> str:
    """Last line that ANDES's worker prints."""
    command = [python, "-c", WORKER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]


def write_inputs(folder: Path, cases: Path, raw: str, dyr: str | None, x_d: float | None) -> tuple[Path, Path]:
    """The RAW file with ZX replaced and without reactive limits, and a DYR file of classical machines."""
    from contingencies.formats.dyr import read_dyr
    from contingencies.formats.raw import read_raw

    text = (cases / raw).read_text()
    if x_d is not None:
        lines, inside = [], False
        for line in text.splitlines():
            fields = line.split(",")
            if inside and line.strip()[:1] != "0":
                fields[4:6] = ["9999.0", "-9999.0"]  # both hold VS
                fields[9:11] = ["0.0", repr(x_d)]
            inside = "BEGIN GENERATOR" in line.upper() or (inside and line.strip()[:1] != "0")
            lines.append(",".join(fields))
        text = "\n".join(lines) + "\n"
    network = read_raw(text.encode(), raw)
    known = read_dyr((cases / dyr).read_bytes(), dyr).machines if dyr else ()
    inertia = {machine.bus: machine.H for machine in known if machine.H > 0}
    units = zip(network.unit_bus.tolist(), network.case.units.id.tolist(), strict=True)
    records = [f"{bus} 'GENCLS' {identifier} {inertia.get(bus, 4.0)} 0.0 /" for bus, identifier in units]
    paths = folder / "case.raw", folder / "case.dyr"
    paths[0].write_text(text)
    paths[1].write_text("\n".join(records) + "\n")
    return paths


def our_cct(folder: Path, bus: int, line: tuple[int, int]) -> float | None:
    """CCT of a fault at a bus that opening a line clears, s."""
    from contingencies.library import load_contingencies
    from contingencies.operators import compile_contingency
    from contingencies.references import reference_cct

    (folder / "c.yaml").write_text(
        f"name: c\nsystem: out/case.yaml\nfault: {{kind: bus, bus: {bus}, shunt_pu: {{b: {B_FAULT}}}}}\n"
        f"clearing: {{action: remove-line, line: [{line[0]}, {line[1]}], circuit: 1}}\n"
        f"window: {{t_f: {T_F}, T: {T_END}, t_c: [{T_F + 0.01}, {T_F + 1.2}]}}\n"
    )
    return reference_cct(compile_contingency(load_contingencies(folder / "c.yaml")[0]), 1.0).cct


def main() -> None:
    """Compare all cases."""
    from contingencies.importing import import_network

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--andes-python", default=sys.executable, help="a Python that can import andes")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one")
    options = parser.parse_args()
    cases = Path(asked(options.andes_python, "cases"))
    worst = 0.0
    print(f"{'case':>20} {'fault':>6} {'line':>9} {'ours s':>10} {'ANDES s':>10} {'ms':>7}")
    for raw in options.case or CASES:
        dyr, x_d, faults = CASES[raw]
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            files = write_inputs(folder, cases, raw, dyr, x_d)
            import_network(*files, folder / "out")
            for bus, line in faults:
                ours = our_cct(folder, bus, line)
                if ours is None:
                    print(f"{raw:>20} {bus:>6} {line[0]:>4}-{line[1]:<4} censored")
                    continue
                bracket = (ours - SPREAD_S, ours + SPREAD_S)
                job = [*map(str, files), bus, line, *bracket, B_FAULT, T_F, T_END, STEP_S, CLOSE_S]
                said = json.loads(asked(options.andes_python, json.dumps(job)))
                theirs = said["cct"]
                if theirs is None:
                    print(f"{raw:>20} {bus:>6} {line[0]:>4}-{line[1]:<4} {ours:10.5f} {said['why']}")
                    worst = float("inf") if "bracket" in said["why"] else worst
                    continue
                apart = 1e3 * (ours - theirs)
                worst = max(worst, abs(apart))
                print(f"{raw:>20} {bus:>6} {line[0]:>4}-{line[1]:<4} {ours:10.5f} {theirs:10.5f} {apart:7.3f}")
    print(f"figure andes_cct_max_ms {worst:.3f} ms")


if __name__ == "__main__":
    main()
