"""Registering: the same physics is one row, a changed spec the next version, all or nothing."""

import pytest

from contingencies.errors import ConflictError, IntegrityError, NotFoundError
from contingencies.records import NAME_PATTERN
from registry import texts
from registry.schema import ContingencyRow
from registry.store import contingencies as store
from registry.store import events
from tests.contingencies.formats.edits import TEXT, with_branch
from tests.registry.makers import Zoo, contingency, own_system_contingency


def test_the_same_physics_registered_twice_is_one_row(zoo: Zoo) -> None:
    home = zoo.again()
    first = home.register([contingency("fault-a", description="once")])[0]
    second = home.register([contingency("fault-a", description="other words")])[0]
    assert first.created and not second.created
    assert (first.row.id, first.row.version) == (second.row.id, second.row.version)


def test_a_changed_spec_is_the_next_version_and_old_versions_stay_readable(zoo: Zoo) -> None:
    home = zoo.again()
    home.register([contingency("fault-a", 0.5)])
    assert home.register([contingency("fault-a", 0.25)])[0].row.version == 2
    assert home.contingency(store.find(home.database, "fault-a")).spec.fault.position == 0.25
    assert home.contingency(store.find(home.database, "fault-a@1")).spec.fault.position == 0.5
    assert home.register([contingency("fault-a", 0.5)])[0].row.version == 1
    with pytest.raises(NotFoundError):
        store.find(home.database, "fault-a@3")


def test_a_batch_with_one_contradiction_registers_nothing(zoo: Zoo) -> None:
    home = zoo.again()
    batch = [contingency("fault-a"), contingency("fault-b"), contingency("fault-a", 0.3)]
    with pytest.raises(ConflictError):
        home.register(batch)
    assert store.latest(home.database) == []
    assert [r.created for r in home.register(batch[:2] + batch[:1])] == [True, True, True]
    assert [row.name for row in store.latest(home.database)] == ["fault-a", "fault-b"]


def test_an_error_in_the_middle_of_a_transaction_leaves_nothing_visible(zoo: Zoo, monkeypatch) -> None:
    home = zoo.again()
    written = 0

    def fail_at_third(*args: object, **kwargs: object) -> None:
        nonlocal written
        written += 1
        if written == 3:
            raise RuntimeError("out of paper")

    monkeypatch.setattr(store, "record", fail_at_third)
    with pytest.raises(RuntimeError):
        home.register([contingency(f"fault-{c}") for c in "abcd"])
    assert store.latest(home.database) == []
    assert store.systems(home.database) == []


def test_contingencies_of_one_system_share_its_row(zoo: Zoo) -> None:
    home = zoo.again()
    home.register([contingency("fault-a"), contingency("fault-b")])
    home.register([contingency("fault-c")])
    assert len(store.systems(home.database)) == 1


def test_the_network_file_of_a_users_own_system_is_kept_in_the_home(zoo: Zoo) -> None:
    home = zoo.again()
    original = own_system_contingency()
    row = home.register([original])[0].row
    again = zoo.again().contingency(row)
    assert again.system.network_file == original.system.network_file
    assert again.sha256 == original.sha256


def test_a_system_whose_file_was_once_read_wrongly_gets_a_new_version(zoo: Zoo) -> None:
    home = zoo.again()
    right = own_system_contingency(network=TEXT.encode())
    assert right.system.misread_before == () and right.earlier_sha256 == right.sha256
    network = with_branch(1, 4, c8="1.05").encode()
    mended, before = own_system_contingency(network=network), own_system_contingency(network=network)
    assert mended.system.misread_before == ("a ratio on the low-voltage side",)

    before.system.__dict__["misread_before"] = ()  # as a release up to 0.1 registered it
    row = home.register([before])[0].row
    assert row.sha256 == mended.earlier_sha256 != mended.sha256
    with pytest.raises(ConflictError, match=r"ratio on the low-voltage side.*register it again"):
        zoo.again().contingency(row)
    registered = home.register([mended])[0]
    assert registered.created and registered.row.version == row.version + 1
    assert zoo.again().contingency(registered.row).sha256 == mended.sha256


def test_a_row_that_was_altered_behind_the_registrys_back_is_refused(zoo: Zoo) -> None:
    home = zoo.again()
    row = home.register([contingency("fault-a")])[0].row
    with home.database.write() as session:
        stored = session.get_one(ContingencyRow, row.id)
        stored.spec_json = stored.spec_json.replace('"T":2.0', '"T":3.0')
    with pytest.raises(IntegrityError, match="altered"):
        home.contingency(store.find(home.database, "fault-a"))


def test_every_registration_is_in_the_event_log_with_its_actor(zoo: Zoo) -> None:
    home = zoo.again()
    home.register([contingency("fault-a")])
    home.register([contingency("fault-a", 0.3)])
    log = events.events_of(home.database, "fault-a")
    assert [event.action for event in log] == ["register", "register"]
    assert all("@" in event.actor for event in log)


def test_the_registrys_idea_of_a_name_is_that_of_the_specs() -> None:
    assert texts.NAME_PATTERN == NAME_PATTERN


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "no such",
        "a" * 200,
        "../../etc/passwd",
        "x'; DROP TABLE heads; --",
        "a\x00b",
        "fault-a@0",
        "fault-a@x",
        "a\n",
    ],
)
def test_a_hostile_reference_is_just_not_found(zoo: Zoo, reference: str) -> None:
    home = zoo.again()
    home.register([contingency("fault-a")])
    with pytest.raises(NotFoundError) as raised:
        store.find(home.database, reference)
    assert len(str(raised.value)) < 400
    assert store.find(home.database, "fault-a").version == 1
