"""Numbers of benchmarks: whole or not at all, the same ones once, other settings beside them."""

import subprocess
import sys
from dataclasses import replace

import pytest

from contingencies.errors import ConflictError, UsageError
from registry.home import Home
from registry.store import benchmarks, events
from registry.store.benchmarks import Group, Number
from tests.registry.makers import Zoo

NUMBERS = (
    Number("cct", "ES-PINN | α", "CCT MAE", "ms", 0.31, 0.02, 5, 0.32, 0.07),
    Number("cct", "ES-PINN | α", "largest", "ms", 4.3, None, 1),
    Number("cct", "CUDA", "CCT MAE", "ms", None, None, 0, 0.5),
)


def add(home: Home, numbers=NUMBERS, entry: str = "case30-accuracy", **settings) -> Group:
    options = {"budget": "quick", "seeds": 5, "code_version": "1.0"} | settings
    return benchmarks.add_numbers(home.database, entry, numbers, **options)


def values(rows) -> list[float | None]:
    return [row.value for row in rows]


def test_numbers_come_back_as_they_were_stored_and_in_order(zoo: Zoo) -> None:
    assert add(zoo.again()).created
    rows = benchmarks.newest_numbers(zoo.again().database, ["case30-accuracy"])
    fields = list(NUMBERS[0].__dataclass_fields__)
    assert [Number(**{name: getattr(row, name) for name in fields}) for row in rows] == list(NUMBERS)
    assert {(row.entry, row.budget, row.seeds, row.code_version) for row in rows} == {
        ("case30-accuracy", "quick", 5, "1.0")
    }
    assert len({row.group_digest for row in rows}) == 1 and rows[0].created_at.tzinfo is not None


def test_the_same_numbers_are_stored_once_and_told_once(zoo: Zoo) -> None:
    home = zoo.again()
    first, again = add(home), add(home)
    assert again == Group(first.digest, False)
    assert len(benchmarks.numbers_of(home.database, "case30-accuracy")) == len(NUMBERS)
    assert [event.action for event in events.events_of(home.database, "case30-accuracy")] == ["benchmark"]


@pytest.mark.parametrize("other", [{"budget": "paper"}, {"seeds": 1}, {"code_version": "1.1"}])
def test_other_settings_are_kept_beside_and_are_the_newest(zoo: Zoo, other) -> None:
    home = zoo.again()
    add(home)
    assert add(home, **other).created
    assert len(benchmarks.numbers_of(home.database, "case30-accuracy")) == 2 * len(NUMBERS)
    newest = benchmarks.newest_numbers(home.database)
    assert len(newest) == len(NUMBERS)
    assert all(getattr(row, name) == value for row in newest for name, value in other.items())


def test_another_measurement_under_the_same_settings_is_another_group(zoo: Zoo) -> None:
    home = zoo.again()
    add(home)
    add(home, [replace(NUMBERS[0], value=0.29)])
    assert values(benchmarks.newest_numbers(home.database, ["case30-accuracy"])) == [0.29]


def test_newest_numbers_of_every_entry_or_of_those_asked_for(zoo: Zoo) -> None:
    home = zoo.again()
    add(home)
    add(home, NUMBERS[:1], entry="runtime")
    assert {row.entry for row in benchmarks.newest_numbers(home.database)} == {"case30-accuracy", "runtime"}
    assert [row.entry for row in benchmarks.newest_numbers(home.database, ["runtime", "nothing"])] == ["runtime"]
    assert benchmarks.newest_numbers(home.database, []) == []


def test_a_group_that_contradicts_itself_leaves_nothing(zoo: Zoo) -> None:
    home = zoo.again()
    with pytest.raises(ConflictError):
        add(home, [*NUMBERS, replace(NUMBERS[0], value=9.9)])
    assert benchmarks.newest_numbers(home.database) == []
    assert events.events_of(home.database, "case30-accuracy") == []


@pytest.mark.parametrize("field", ["value", "std", "paper", "paper_std"])
def test_what_is_no_number_is_refused(field: str) -> None:
    with pytest.raises(UsageError, match="ES-PINN"):
        replace(NUMBERS[0], **{field: float("nan")})


ADD = """
import sys
from registry.home import Home
from registry.store.benchmarks import Number, add_numbers
with Home.open(sys.argv[1], sys.argv[2] or None) as home:
    numbers = [Number("t", str(k), "q", "", 1.0 * k) for k in range(50)]
    print(add_numbers(home.database, "e", numbers, budget="quick", seeds=1, code_version="1").created)
"""


def test_processes_that_store_the_same_numbers_at_once_store_them_once(zoo: Zoo) -> None:
    zoo.again()
    command = [sys.executable, "-c", ADD, str(zoo.path), zoo.url or ""]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = sorted(child.communicate(timeout=120)[0].strip() for child in children)
    assert said == ["False", "False", "True"]
    assert len(benchmarks.numbers_of(zoo.again().database, "e")) == 50
