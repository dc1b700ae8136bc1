"""Damaged descriptions and network files: each is refused with a sentence or describes a grid that can exist.

Run: python -m benchmarks.campaigns.fuzz [--specs 10000] [--networks 1000] [--seed 0]

Shipped files are damaged one to three times each: bytes, lines and fields are changed, exchanged, repeated or cut off,
numbers become huge, tiny or no numbers, brackets nest, text grows. What is accepted is compiled, and every tenth
simulated. A failure is anything but a ZooError, more than 2 s of processor time to refuse, or an accepted network or
contingency with values that no grid has; the damaged file of a failure is kept in the folder `--keep`.
"""

import argparse
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.campaigns.damage import damaged
from benchmarks.campaigns.originals import ORIGINALS, ROUND, SYSTEMS, system_text
from contingencies.errors import ZooError
from contingencies.formats.con import read_con
from contingencies.library import Contingency, load_contingencies, load_system
from contingencies.network import Network
from contingencies.operating_point import solve_afresh
from contingencies.operators import compile_contingency
from contingencies.references import reference_cct

SLOW_S = 2.0  # of processor time, because other work on the machine is not the reader's fault
SIMULATED = 10  # every so manieth accepted contingency is simulated
CONTINGENCY = """name: fault
system: wscc9
fault: {{kind: {fault}}}
clearing: {{action: {clearing}}}
window: {{t_f: 0.2, T: 2.0, t_c: [0.25, 1.25]}}
severity: [0.0, 1.0]
stability: {{max_separation_rad: 3.14159}}
"""
CONTINGENCIES = [
    CONTINGENCY.format(fault=fault, clearing=clearing)
    for fault, clearing in (
        ("bus, bus: 7, impedance_pu: {}", "trip, lines: [[5, 7]], generators: [2]"),
        ("bus, bus: 8, shunt_pu: {g: 0.0, b: -1000.0}", "restore"),
        ("line, line: [5, 7], position: 0.5", "remove-line"),
        ("line, line: [8, 9], impedance_ohm: {r: 1.0, x: 2.0}", "restore"),
        ("mechanical, generator: 2, coefficient: 1.25", "set-mechanical, factor: 0.8"),
    )
]


@dataclass(frozen=True)
class Outcome:
    """What became of one damaged file."""

    verdict: str  # refused, accepted, or a failure: traceback, slow, absurd
    told: str = ""

    @property
    def failed(self) -> bool:
        return self.verdict not in ("refused", "accepted")


def judged(attempt: Callable[[], str]) -> Outcome:
    """The outcome of an attempt that returns what is absurd about what it accepted, or nothing."""
    started = time.process_time()
    try:
        absurd = attempt()
        outcome = Outcome("absurd" if absurd else "accepted", absurd)
    except ZooError as error:
        outcome = Outcome("refused", str(error))
    except Exception as error:  # whatever else there is counts as a traceback
        return Outcome("traceback", f"{type(error).__name__}: {error}")
    seconds = time.process_time() - started
    if outcome.verdict == "refused" and seconds > SLOW_S:
        return Outcome("slow", f"{seconds:.1f} s to say: {outcome.told}")
    return outcome


# --- what no grid has -------------------------------------------------------------------------

LIMITS = {  # of the size of a field that is not 0, in its unit
    "T": (1e-9, 1e3), "t_c": (1e-9, 1e3), "max_separation_rad": (1e-9, 1e3), "frequency_hz": (1.0, 1e3),
    "severity": (1e-30, 1e6), "H": (1e-3, 1e9), "x_d": (1e-9, 1e9), "base_mva": (1e-3, 1e7), "mva": (1e-3, 1e7),
}  # fmt: skip


def absurd_values(content: Any) -> str:
    """A number of a description that no grid has, however it is nested."""
    for field, value in _numbers(content, ""):
        low, high = LIMITS.get(field, (1e-30, 1e9))
        if not math.isfinite(value) or abs(value) > high or 0 < abs(value) < low:
            return f"accepts {field} = {value}"
    return ""


def _numbers(content: Any, field: str) -> Iterator[tuple[str, float]]:
    if isinstance(content, dict):
        for name, part in content.items():
            yield from _numbers(part, str(name))
    elif isinstance(content, list | tuple):
        for part in content:
            yield from _numbers(part, field)
    elif isinstance(content, int | float):
        yield field, float(content)


def absurd_network(network: Network) -> str:
    """What no solved grid has: voltages far from 1, machines that cannot exist, unbounded admittances."""
    checks = {
        "voltages": (np.abs(network.V), 0.1, 3.0),
        "internal voltages": (network.E, 0.1, 10.0),
        "H": (network.H, 1e-6, 1e10),
        "x_d": (network.x_d, 1e-9, 1e6),
        "D": (network.D, 0.0, 1e10),
        "angles": (np.abs(network.delta_0), 0.0, 7.0),
        "branches": (np.abs(network.branches.y_series), 1e-9, 1e9),
        "loads": (np.abs(network.y_load), 0.0, 1e7),
        "shunts": (np.abs(network.y_shunt), 0.0, 1e7),
    }
    for name, (values, low, high) in checks.items():
        wrong = ~((values >= low) & (values <= high))  # NaN is wrong too
        if wrong.any():
            return f"accepts {name} of {values[wrong][0]}"
    return ""


# --- attempts ---------------------------------------------------------------------------------


class Fuzz:
    """Damages files in a folder, and counts what becomes of them."""

    def __init__(self, folder: Path, seed: int, keep: Path | None = None) -> None:
        self.folder, self.keep = folder, keep
        self.random = random.Random(seed)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.failures: list[str] = []
        self.compiled = 0
        for file in SYSTEMS.glob("wscc9.*"):
            (folder / file.name).write_bytes(file.read_bytes())

    def count(self, kind: str, content: bytes, outcome: Outcome) -> None:
        """Note an outcome; the file of a failure is kept."""
        self.counts[kind, outcome.verdict] += 1
        if outcome.failed:
            name = f"{outcome.verdict}-{len(self.failures)}.{kind}"
            self.failures.append(f"{name}: {' '.join(outcome.told.split())[:200]}")
            if self.keep:
                self.keep.mkdir(parents=True, exist_ok=True)
                (self.keep / name).write_bytes(content)

    def specs(self, count: int) -> None:
        """Damaged contingencies and, every fourth, systems."""
        system = (SYSTEMS / "wscc9.yaml").read_bytes()
        for k in range(count):
            if k % 4 == 3:
                content = damaged(system, self.random)
                self.count("system", content, judged(lambda content=content: self.try_system(content)))
            else:
                content = damaged(self.random.choice(CONTINGENCIES).encode(), self.random)
                self.count("contingency", content, judged(lambda content=content: self.try_contingency(content)))

    def try_contingency(self, content: bytes) -> str:
        """Read, compile, and now and then simulate; what is absurd about it, if it is accepted."""
        path = self.folder / "fault.yaml"
        path.write_bytes(content)
        for contingency in load_contingencies(path):
            absurd = absurd_values(contingency.spec.model_dump()) or self._simulated(contingency)
            if absurd:
                return absurd
        return ""

    def _simulated(self, contingency: Contingency) -> str:
        operators = compile_contingency(contingency)
        self.compiled += 1
        if self.compiled % SIMULATED:
            return ""
        answer = reference_cct(operators, contingency.spec.severity[1])
        first, last = contingency.spec.window.t_c
        inside = answer.cct is None or first <= answer.cct <= last
        return "" if inside else f"a critical time of {answer.cct} s outside its window"

    def try_system(self, content: bytes) -> str:
        """Read a description of a system and solve it."""
        path = self.folder / "system.yaml"
        path.write_bytes(content)
        system = load_system(str(path))
        return absurd_values(system.spec.model_dump()) or absurd_network(solve_afresh(system))

    def networks(self, count: int, formats: tuple[str, ...] = ROUND) -> None:
        """Damaged network files of each format in turn; a DYR file stands beside an undamaged RAW file."""
        originals = {suffix: ORIGINALS[suffix]() for suffix in formats}
        if ".dyr" in formats:
            (self.folder / "case.raw").write_bytes(ORIGINALS[".raw"]())
        for k in range(count):
            suffix = formats[k % len(formats)]
            content = damaged(originals[suffix], self.random)
            attempt = self.try_list if suffix == ".con" else self.try_network
            self.count(suffix[1:], content, judged(lambda f=attempt, c=content, s=suffix: f(c, s)))

    def try_network(self, content: bytes, suffix: str) -> str:
        """Read a system with a damaged file beside it, and solve it."""
        (self.folder / f"grid{suffix}").write_bytes(content)
        return self.try_system(system_text(suffix).encode())

    def try_list(self, content: bytes, suffix: str) -> str:
        """Read a list of contingencies."""
        read_con(content, f"list{suffix}")
        return ""


def main() -> None:
    """Run the campaign and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", type=int, default=10_000)
    parser.add_argument("--networks", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files of failures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fuzz = Fuzz(Path(folder), options.seed, options.keep)
        fuzz.specs(options.specs)
        fuzz.networks(options.networks)
    for (kind, verdict), number in sorted(fuzz.counts.items()):
        print(f"{kind:12} {verdict:10} {number}")
    for failure in fuzz.failures[:30]:
        print(f"failed: {failure}")
    print(f"figure fuzzed_specs {options.specs} 1")
    print(f"figure fuzzed_networks {options.networks} 1")
    print(f"figure fuzz_failures {len(fuzz.failures)} 1")


if __name__ == "__main__":
    main()
