"""Whether lookups stay flat as the registry grows: 100, 1,000 and 10,000 contingencies, 5 heads each.

Run: python benchmarks/registry_growth.py [--registry URL]

SQLite in a temporary home, or a PostgreSQL registry that must be empty. Timed are: finding the
deployed head of a name as a query without a warm cache does, finding a contingency, listing
its heads, and a page of 50 of the listing of all contingencies.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable

import numpy as np

from contingencies.library import Contingency, load_contingency
from contingencies.spec import ContingencySpec
from espinn_moe.head import Head, Segment
from registry.home import Home
from registry.schema import DeploymentRow, HeadRow
from registry.store import contingencies, deployments
from registry.store.events import now
from registry.store.heads import heads_of

SIZES = (100, 1_000, 10_000)
HEADS = 5
LOOKUPS = 400


def grow(home: Home, begin: int, end: int) -> None:
    """Contingencies begin..end with their heads, the last of each deployed."""
    shipped = load_contingency("ieee30-line-3-4-restore")
    content = json.loads(shipped.to_json())
    made = []
    for i in range(begin, end):
        spec = ContingencySpec.model_validate_json(json.dumps(content | {"name": f"fault-{i:05}"}))
        made.append(Contingency(spec, shipped.system))
    rows = [result.row for result in home.register(made)]
    digest = home.artifacts.put(Head((0.0, 1.0), 0.2, (Segment(0.0, 1.0, "right-censored"),)).to_bytes())
    common = {"kind": "chebyshev", "digest": digest, "size": 1, "severity_low": 0.0, "severity_high": 1.0}
    common |= {"intervals_json": "[]", "strict_count": 12, "strict_disagreements": 0, "errors_json": "{}"}
    with home.database.write() as session:
        for row in rows:
            heads = [
                HeadRow(contingency_id=row.id, source="reference", created_at=now(), **common) for _ in range(HEADS)
            ]
            session.add_all(heads)
            session.flush()
            session.add(
                DeploymentRow(
                    contingency=row.name,
                    alias="production",
                    head_id=heads[-1].id,
                    active=True,
                    action="deploy",
                    forced=False,
                    reason="growth",
                    actor="benchmark",
                    created_at=now(),
                )
            )


def p95_ms(names: list[str], call: Callable[[str], object]) -> float:
    """95th percentile of single calls, ms."""
    call(names[0])
    spent = []
    for name in names:
        started = time.perf_counter()
        call(name)
        spent.append(time.perf_counter() - started)
    return float(1e3 * np.percentile(spent, 95))


def main() -> None:
    """Grow, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--registry", help="URL of an empty PostgreSQL registry; default: SQLite")
    url = parser.parse_args().registry
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, Home.open(folder, url) as home:
        database = home.database
        size = 0
        for target in SIZES:
            grow(home, size, target)
            size = target
            names = [f"fault-{i:05}" for i in rng.integers(0, size, LOOKUPS)]
            timed = {
                "deployed head": p95_ms(names, lambda name: deployments.active(database, name)),
                "contingency": p95_ms(names, lambda name: contingencies.find(database, name)),
                "heads of one": p95_ms(names, lambda name: heads_of(database, name)),
                "page of 50": p95_ms(names, lambda name: contingencies.latest(database, after=name, limit=50)),
            }
            words = ", ".join(f"{what} {ms:.2f} ms" for what, ms in timed.items())
            print(f"{size} contingencies, {HEADS * size} heads: p95 {words}")
        print(f"figure registry_lookup_p95_ms {timed['deployed head']:.3f} ms")


if __name__ == "__main__":
    main()
