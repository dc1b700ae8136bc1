"""Flipped bytes of `registry.db`: how many `verify` notices, and whether any changes an answer unnoticed.

Run: python -m benchmarks.campaigns.flips [--flips 110] [--seed 0]

A byte of a furnished registry is flipped at a random place where something is written, one at a time. A flip is
noticed when opening or verifying the home says so; it is harmless when nothing that the registry hands out has changed
(deleted rows, unused bytes of a page). Anything else would be a wrong answer without a word: there must be none.
"""

import argparse
import random
import shutil
import tempfile
from pathlib import Path

from benchmarks.campaigns.kills import furnish
from contingencies.errors import ZooError
from registry.home import Home
from registry.query import Registry
from registry.store import contingencies, deployments, heads, runs
from registry.upkeep import verify

NAME, SEVERITIES = "fault-a", (0.3, 0.6, 0.9)


def contents(path: Path) -> object:
    """All that the registry hands out: rows, history and answers."""
    with Home.open(path, create=False) as home:
        database = home.database
        rows = (contingencies.latest(database), heads.heads_of(database), runs.runs(database))
        history = deployments.history(database, NAME)
    with Registry.open(path) as registry:
        answers = [registry.cct(NAME, alpha) for alpha in SEVERITIES]
    return repr((rows, history, answers))


def noticed(path: Path) -> bool:
    """Whether opening or verifying the home says that something is wrong."""
    try:
        with Home.open(path, create=False) as home:
            return bool(verify(home).problems)
    except ZooError:
        return True


def main() -> None:
    """Flip bytes, one at a time, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=110)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "home"
        furnish(whole, None)
        before, content = contents(whole), (whole / "registry.db").read_bytes()
        written = [place for place, byte in enumerate(content) if byte]  # most of the file is empty pages
        counts = {"noticed": 0, "harmless": 0, "silent": 0}
        for _ in range(options.flips):
            place, bit = draw.choice(written), 1 << draw.randrange(8)
            copy = Path(folder) / "copy"
            shutil.copytree(whole, copy)
            damaged = bytearray(content)
            damaged[place] ^= bit
            (copy / "registry.db").write_bytes(damaged)
            if noticed(copy):
                counts["noticed"] += 1
            else:
                same = contents(copy) == before
                counts["harmless" if same else "silent"] += 1
                if not same:
                    print(f"byte {place} of {len(content)}, bit {bit}: changed without a word")
            shutil.rmtree(copy)
    print(", ".join(f"{count} {what}" for what, count in counts.items()), f"of {options.flips} flips")
    print(f"figure flips_noticed {counts['noticed']} of_{options.flips}")
    print(f"figure flips_silent {counts['silent']} of_{options.flips}")


if __name__ == "__main__":
    main()
