"""The API keeps its own promises: whatever its schema allows, or forbids, is answered as the schema says."""

from pathlib import Path

from tests.registry.makers import Zoo
from tests.registry.service.contract import campaign
from tests.registry.service.serving import in_process, world

REQUESTS = 5  # of each kind and operation, some 250 in all; `benchmarks/service_contract.py` sends thousands


def test_no_request_that_the_schema_describes_breaks_the_service(tmp_path: Path) -> None:
    made = world(Zoo(tmp_path / "home", None)).guard()
    with in_process(made, rate=0.0) as client:
        sent = campaign(client, made.headers("admin"), REQUESTS)
    assert sent >= 100
    for home in made.zoo.opened:
        home.close()
