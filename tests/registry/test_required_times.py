"""Required times: set with a reason, replaced, removed, and every change on record."""

import math

import pytest

from contingencies.errors import NotFoundError, UsageError
from registry.store import events
from registry.store.required_times import remove_required, required_times, set_required
from registry.texts import acting_as
from tests.registry.makers import Zoo, contingency


def test_a_required_time_is_set_replaced_and_removed_on_record(zoo: Zoo) -> None:
    home, *_ = zoo.with_head()
    with acting_as("token protection"):
        set_required(home.database, "fault-a", 0.12, "breaker of 1998")
        set_required(home.database, "fault-a", 0.1, "new breaker")
    (row,) = required_times(home.database).values()
    assert (row.contingency, row.required_s, row.reason, row.actor) == (
        "fault-a",
        0.1,
        "new breaker",
        "token protection",
    )
    remove_required(home.database, "fault-a", "line taken down")
    assert required_times(home.database) == {}
    log = [event for event in events.events_of(home.database, "fault-a") if event.action == "require"]
    changes = [event.detail for event in log]
    assert [(change["before_s"], change["required_s"]) for change in changes] == [
        (None, 0.12),
        (0.12, 0.1),
        (0.1, None),
    ]
    assert [event.actor == "token protection" for event in log] == [True, True, False]


@pytest.mark.parametrize(("seconds", "reason"), [(0.0, "x"), (-1.0, "x"), (math.nan, "x"), (1e9, "x"), (0.1, " ")])
def test_a_required_time_must_be_possible_and_have_a_reason(sqlite_zoo: Zoo, seconds: float, reason: str) -> None:
    home, *_ = sqlite_zoo.with_head()
    with pytest.raises(UsageError):
        set_required(home.database, "fault-a", seconds, reason)
    assert required_times(home.database) == {}


def test_only_a_registered_contingency_has_a_required_time(sqlite_zoo: Zoo) -> None:
    home, *_ = sqlite_zoo.with_head()
    with pytest.raises(NotFoundError, match="not registered"):
        set_required(home.database, "fault-b", 0.1, "why not")
    with pytest.raises(NotFoundError, match="no required time"):
        remove_required(home.database, "fault-a", "")


def test_a_description_states_a_required_time_until_another_one_is_set(zoo: Zoo) -> None:
    home, *_ = zoo.with_head()
    home.register([contingency("fault-a", required_ms=120.0), contingency("fault-c", required_ms=90.0)])
    stated = required_times(home.database)
    assert {name: each.required_s for name, each in stated.items()} == pytest.approx({"fault-a": 0.12, "fault-c": 0.09})
    assert stated["fault-a"].reason == "stated in its description"
    set_required(home.database, "fault-a", 0.1, "new breaker")
    assert required_times(home.database)["fault-a"].required_s == 0.1
    with pytest.raises(NotFoundError, match="its description states"):
        remove_required(home.database, "fault-c", "")
    home.register([contingency("fault-c", position=0.4)])  # the next version states none
    assert list(required_times(home.database)) == ["fault-a"]
