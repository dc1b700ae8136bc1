"""Values out of the store: frozen, complete, parsed; rows stay inside."""

import ast
import copy
import inspect
from dataclasses import FrozenInstanceError, is_dataclass
from pathlib import Path

import pytest

import registry.store
from contingencies.errors import IntegrityError
from registry import records
from registry.schema import Base, HeadRow
from registry.store import benchmarks, contingencies, deployments, events, heads, maintenance, runs
from tests.registry.makers import Zoo

ROOT = Path(registry.__file__).parent.parent
STORES = (benchmarks, contingencies, deployments, events, heads, maintenance, runs)


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.__name__)
def test_no_function_of_the_store_hands_out_a_row(store) -> None:
    functions = [f for name, f in inspect.getmembers(store, inspect.isfunction) if not name.startswith("_")]
    shown = [f"{f.__name__} -> {inspect.signature(f).return_annotation}" for f in functions if f.__name__ != "find_in"]
    assert not [text for text in shown if "Row" in text]


def test_only_the_registry_knows_rows() -> None:
    for path in [*(ROOT / "zoo").rglob("*.py"), ROOT / "cli.py"]:
        imported = [n.module for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ImportFrom)]
        assert "registry.schema" not in imported, path


def test_a_record_is_complete_frozen_and_leaves_the_process(zoo: Zoo) -> None:
    home, row, made = zoo.with_head()
    checkpoint = home.add_checkpoint(b"weights", 10, "kind", {row.id: 0}, metrics={"cct_mae_ms": 0.5})
    deployed = home.deploy("fault-a", reason="first")
    home.close()
    assert made.errors["strict"]["count"] == 12
    assert made.intervals == ((0.0, 0.5, "right-censored"), (0.5, 1.0, "finite"))
    assert checkpoint.metrics == {"cct_mae_ms": 0.5}
    assert [(m.contingency_name, m.contingency_version, m.expert) for m in checkpoint.members] == [("fault-a", 1, 0)]
    assert deployed.head == made and deployed.head.contingency.system.name == "ieee30"
    for value in (row, made, checkpoint, deployed):
        assert is_dataclass(value) and type(value).__module__ == records.__name__
        assert copy.deepcopy(value) == value
        assert not any(isinstance(part, Base) for part in vars(value).values())
        with pytest.raises(FrozenInstanceError):
            value.id = 7


def test_a_record_stays_as_it_was_when_the_registry_moves_on(zoo: Zoo) -> None:
    home, *_ = zoo.with_head()
    before = home.deploy("fault-a", reason="first")
    home.retire("fault-a")
    assert before.active and before.ended_at is None


@pytest.mark.parametrize("damage", ["{", "[]", "null"])
def test_json_that_was_damaged_is_told_and_not_a_traceback(zoo: Zoo, damage: str) -> None:
    home, _, made = zoo.with_head()
    with home.database.write() as session:
        session.get_one(HeadRow, made.id).errors_json = damage
    with pytest.raises(IntegrityError, match="row 1 of heads"):
        heads.get(home.database, made.id)
