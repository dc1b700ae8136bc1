"""Thousands of requests drawn from the API's schema, valid and invalid; any 500 or broken promise ends it.

Run with `python benchmarks/service_contract.py [--requests 2000]`.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.registry.makers import Zoo
from tests.registry.service.contract import campaign
from tests.registry.service.serving import in_process, world


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000, help="at least so many in all")
    options = parser.parse_args()
    start, sent = time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        made = world(Zoo(Path(folder) / "home", None)).guard()
        with in_process(made, rate=0.0) as client:
            while sent < options.requests:
                sent += campaign(client, made.headers("admin"), 1 + options.requests // 60)
        for home in made.zoo.opened:
            home.close()
    print(f"{sent} requests in {time.perf_counter() - start:.0f} s, none of them broke a promise of the schema")
    print(f"figure service_contract_requests {sent} requests")


if __name__ == "__main__":
    main()
