"""Deploying: one active head per slot, a gate, rollback along the history, an indelible log."""

import math
from dataclasses import replace

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.exc import DatabaseError

from contingencies.errors import ConflictError, GateError, IntegrityError, NotFoundError, UsageError, ZooError
from registry.records import DeploymentRecord
from registry.schema import DeploymentRow, EventRow
from registry.store import deployments, events, heads
from registry.store.deployments import Gate
from registry.store.heads import Statuses
from tests.registry.makers import Zoo, contingency, head, measured


def test_the_newest_head_of_the_latest_version_is_deployed_by_default(zoo: Zoo) -> None:
    home, row, first = zoo.with_head()
    second = home.add_head(row, head(0.8), measured())
    assert home.deploy("fault-a", reason="new").head_id == second.id
    newer = home.register([contingency("fault-a", 0.3)])[0].row
    with pytest.raises(NotFoundError, match="version 2 has no head"):
        home.deploy("fault-a", reason="new")
    third = home.add_head(newer, head(0.6), measured())
    assert home.deploy("fault-a", reason="version 2").head_id == third.id
    assert home.deploy("fault-a", first.id, reason="an old one by number").head_id == first.id


def test_the_same_head_distilled_twice_is_one_row(zoo: Zoo) -> None:
    home, row, first = zoo.with_head()
    assert home.add_head(row, head(0.7), measured()).id == first.id
    assert home.add_head(row, head(0.71), measured()).id != first.id
    assert len(heads.heads_of(home.database, "fault-a")) == 2


@pytest.mark.parametrize(
    ("errors", "objection"),
    [
        (measured(mae_s=2.1e-3), "mean error"),
        (measured(max_s=11e-3), "maximum error"),
        (measured(disagreements=2), "status was wrong at 2 of 12"),
        (measured(count=0), "not measured"),
        (replace(measured(), reference=measured(mae_s=2.1e-3).reference), "against the fast ODE at 12"),
    ],
)
def test_a_head_beyond_the_gate_is_refused_unless_forced_with_a_reason(zoo: Zoo, errors, objection: str) -> None:
    home = zoo.again()
    row = home.register([contingency()])[0].row
    made = home.add_head(row, head(), errors)
    with pytest.raises(GateError, match=objection) as refused:
        home.deploy("fault-a", reason="try")
    assert refused.value.exit_code == 6
    with pytest.raises(NotFoundError):
        deployments.active(home.database, "fault-a")
    with pytest.raises(UsageError, match="reason"):
        home.deploy("fault-a", reason="  ", force=True)
    assert home.deploy("fault-a", reason="storm", force=True).forced
    last = events.events_of(home.database, "fault-a")[-1]
    assert last.reason == "storm" and objection in last.detail["forced_against"][0]
    assert deployments.active(home.database, "fault-a").head_id == made.id


@pytest.mark.parametrize(
    "limits", [{"mae_s": math.nan}, {"max_s": math.inf}, {"disagreement": math.nan}, {"max_s": -1}]
)
def test_a_gate_without_finite_limits_is_refused(limits) -> None:
    with pytest.raises(UsageError, match="finite"):
        Gate(**limits)


def test_a_head_whose_error_is_not_a_number_is_neither_stored_nor_let_through_the_gate(zoo: Zoo) -> None:
    home, row, made = zoo.with_head()
    with pytest.raises(UsageError, match="finite"):
        home.add_head(row, head(0.8), measured(mae_s=math.nan, max_s=math.nan))
    wrong = replace(made, strict_mae_s=math.nan, strict_max_s=math.nan)
    assert len(Gate().objections(wrong)) == 2


def test_a_row_number_beyond_all_databases_is_a_sentence(zoo: Zoo) -> None:
    home, *_ = zoo.with_head()
    with pytest.raises(ZooError):
        heads.get(home.database, 99999999999999999999)


def test_a_good_head_deployed_with_force_is_not_marked_as_forced(zoo: Zoo) -> None:
    home, _, _ = zoo.with_head()
    assert not home.deploy("fault-a", reason="x", force=True).forced


@pytest.mark.parametrize(
    ("statuses", "objection"),
    [
        (
            Statuses(count=101, numbers=0, missed=1, disagreements=1),
            "no number anywhere although the reference has at 1 of",
        ),
        (Statuses(count=101, numbers=9, missed=11, disagreements=11), "whole domain the status is not the fast ODE's"),
        (Statuses(count=101, numbers=9, missed=10, disagreements=10), None),
        (Statuses(count=101, numbers=0, missed=0, disagreements=0), None),
    ],
)
def test_a_head_that_is_wrongly_censored_is_refused_however_it_is_deployed(zoo: Zoo, statuses, objection) -> None:
    home = zoo.again()
    row = home.register([contingency()])[0].row
    home.add_head(row, head(), replace(measured(), statuses=statuses))
    if objection is None:
        assert not home.deploy("fault-a", reason="fine").forced
        return
    with pytest.raises(GateError, match=objection):
        home.deploy("fault-a", reason="try")
    assert home.deploy("fault-a", reason="storm", force=True).forced


@pytest.mark.parametrize(("which", "whose"), [("reconstruction", "its source's"), ("reference", "the fast ODE's")])
def test_a_head_whose_numbers_are_not_those_of_its_source_is_refused(zoo: Zoo, which: str, whose: str) -> None:
    home = zoo.again()
    row = home.register([contingency()])[0].row
    wrong = replace(measured().strict, count=99, disagreements=10)
    home.add_head(row, head(), replace(measured(), **{which: wrong}))
    with pytest.raises(GateError, match=f"not {whose} at 10 of 99"):
        home.deploy("fault-a", reason="try")


def test_a_head_measured_again_is_another_row_that_can_pass_the_gate(zoo: Zoo) -> None:
    home = zoo.again()
    row = home.register([contingency()])[0].row
    unmeasured = home.add_head(row, head(), measured(count=0))
    with pytest.raises(GateError, match="not measured"):
        home.deploy("fault-a", reason="try")
    again = home.add_head(row, head(), measured())
    assert again.id != unmeasured.id and again.digest == unmeasured.digest
    assert home.deploy("fault-a", reason="measured").head_id == again.id


def test_deploying_the_head_that_answers_changes_nothing_so_that_a_rollback_leads_to_the_one_before(zoo: Zoo) -> None:
    home, row, first = zoo.with_head()
    second = home.add_head(row, head(0.8), measured())
    home.deploy("fault-a", first.id, reason="first")
    deployed = home.deploy("fault-a", second.id, reason="second")
    told = len(events.events_of(home.database, "fault-a"))
    assert home.deploy("fault-a", second.id, reason="again").id == deployed.id
    assert len(events.events_of(home.database, "fault-a")) == told
    assert home.rollback("fault-a").head_id == first.id


def values_of(deployment: DeploymentRecord) -> dict[str, object]:
    left_out = ("id", "row_digest")
    return {c.name: getattr(deployment, c.name) for c in DeploymentRow.__table__.columns if c.name not in left_out}


def test_a_rollback_passes_over_deployments_of_the_same_head_in_an_older_history(zoo: Zoo) -> None:
    home, row, first = zoo.with_head()
    second = home.add_head(row, head(0.8), measured())
    home.deploy("fault-a", first.id, reason="first")
    earlier = home.deploy("fault-a", second.id, reason="second")
    with home.database.write() as session:  # as older versions did when the active head was deployed once more
        session.get_one(DeploymentRow, earlier.id).active = False
        session.flush()
        session.add(DeploymentRow(**values_of(earlier) | {"previous_id": earlier.id}))
    assert home.rollback("fault-a").head_id == first.id


def test_rolling_back_walks_to_the_first_deployment_and_stops_there(zoo: Zoo) -> None:
    home, row, first = zoo.with_head()
    second = home.add_head(row, head(0.8), measured())
    third = home.add_head(row, head(0.9), measured())
    for made in (first, second, third):
        home.deploy("fault-a", made.id, reason=f"head {made.id}")
    assert home.rollback("fault-a", reason="bad").head_id == second.id
    assert home.rollback("fault-a").head_id == first.id
    with pytest.raises(ConflictError, match="nothing to roll back to"):
        home.rollback("fault-a")
    assert deployments.active(home.database, "fault-a").head_id == first.id
    history = deployments.history(home.database, "fault-a")
    assert [r.head_id for r in history] == [first.id, second.id, third.id, second.id, first.id]
    assert [r.active for r in history] == [False] * 4 + [True]
    assert all((r.ended_at is None) == r.active for r in history)


def test_retiring_ends_the_answers_and_a_rollback_brings_them_back(zoo: Zoo) -> None:
    home, _, made = zoo.with_head()
    with pytest.raises(NotFoundError):
        home.retire("fault-a")
    home.deploy("fault-a", reason="x")
    home.retire("fault-a", reason="line is gone")
    with pytest.raises(NotFoundError, match="no head deployed"):
        deployments.active(home.database, "fault-a")
    assert home.rollback("fault-a").head_id == made.id
    actions = [event.action for event in events.events_of(home.database, "fault-a")]
    assert actions == ["register", "distill", "deploy", "retire", "rollback"]


def test_aliases_are_independent_slots(zoo: Zoo) -> None:
    home, row, first = zoo.with_head()
    second = home.add_head(row, head(0.8), measured())
    home.deploy("fault-a", first.id, reason="x")
    home.deploy("fault-a", second.id, alias="staging", reason="x")
    assert deployments.active(home.database, "fault-a").head_id == first.id
    assert deployments.active(home.database, "fault-a", "staging").head_id == second.id


def test_a_head_of_another_contingency_cannot_be_deployed(zoo: Zoo) -> None:
    home, _, _ = zoo.with_head("fault-a")
    other = home.add_head(home.register([contingency("fault-b", 0.3)])[0].row, head(0.9), measured())
    with pytest.raises(ConflictError, match="belongs to 'fault-b'"):
        home.deploy("fault-a", other.id, reason="x")
    with pytest.raises(NotFoundError, match="head 999"):
        home.deploy("fault-a", 999, reason="x")


def test_a_damaged_head_is_neither_deployed_nor_rolled_back_to(zoo: Zoo) -> None:
    home, row, first = zoo.with_head()
    second = home.add_head(row, head(0.8), measured())
    home.deploy("fault-a", first.id, reason="x")
    home.deploy("fault-a", second.id, reason="x")
    home.artifacts.path(first.digest).write_bytes(b"{}")
    with pytest.raises(IntegrityError):
        home.rollback("fault-a")
    with pytest.raises(IntegrityError):
        home.deploy("fault-a", first.id, reason="x")
    assert deployments.active(home.database, "fault-a").head_id == second.id


def test_the_database_itself_refuses_a_second_active_deployment(zoo: Zoo) -> None:
    home, _, made = zoo.with_head()
    active = home.deploy("fault-a", reason="x")
    with pytest.raises(ConflictError), home.database.write() as session:
        session.add(DeploymentRow(**values_of(active)))
    assert made.id == deployments.active(home.database, "fault-a").head_id


def test_the_database_itself_refuses_to_change_the_event_log(zoo: Zoo) -> None:
    home, _, _ = zoo.with_head()
    before = len(events.events_of(home.database, "fault-a"))
    for statement in (update(EventRow).values(reason="rewritten"), delete(EventRow)):
        with pytest.raises(DatabaseError, match="append-only"), home.database.engine.begin() as connection:
            connection.execute(statement)
    with home.database.read() as session:
        assert session.scalar(select(EventRow.reason).limit(1)) == ""
    assert len(events.events_of(home.database, "fault-a")) == before


SQL = "'; DROP TABLE deployments; --"


@pytest.mark.parametrize("reason", [SQL, "50 % \\ `rm -rf` ${HOME} <b>", "überlast – Ω", "{0} %s %(x)s"])
def test_a_reason_with_special_characters_is_stored_as_it_stands(zoo: Zoo, reason: str) -> None:
    home, _, _ = zoo.with_head()
    home.deploy("fault-a", reason=reason)
    assert deployments.active(home.database, "fault-a").reason == reason
    assert events.events_of(home.database, "fault-a")[-1].reason == reason


@pytest.mark.parametrize("reason", ["x" * 1_000_000, "a\x00b", "\x1b[2J", "two\nlines", "\ud800"])
def test_a_reason_that_cannot_be_kept_is_refused_with_one_sentence(zoo: Zoo, reason: str) -> None:
    home, _, _ = zoo.with_head()
    with pytest.raises(UsageError) as refused:
        home.deploy("fault-a", reason=reason)
    assert len(str(refused.value)) < 200
    with pytest.raises(NotFoundError):
        deployments.active(home.database, "fault-a")


@pytest.mark.parametrize("alias", ["", "Production", "a/b", "../x", "a" * 41, SQL, "a\x00", "a\n"])
def test_an_alias_that_is_no_plain_word_is_refused(zoo: Zoo, alias: str) -> None:
    home, _, _ = zoo.with_head()
    with pytest.raises(UsageError):
        home.deploy("fault-a", alias=alias, reason="x")
    with pytest.raises(UsageError):
        deployments.active(home.database, "fault-a", alias)


@pytest.mark.parametrize(
    "bound, count, word",
    [(5e-5, 12, "bound is worse"), (None, 12, "no bound"), (1e-5, 3, "3 strict severities instead of 12")],
)
def test_a_head_worse_than_the_one_in_place_needs_to_be_accepted(zoo: Zoo, bound, count, word) -> None:
    home, row, first = zoo.with_head()
    home.deploy("fault-a", first.id, reason="first")
    worse = home.add_head(row, replace(head(0.8), error_bound_s=bound), measured(count=count))
    with pytest.raises(GateError, match=word):
        home.deploy("fault-a", worse.id, reason="new", force=True)
    assert deployments.active(home.database, "fault-a").head_id == first.id
    assert home.deploy("fault-a", worse.id, reason="new", accept_worse=True).head_id == worse.id
    logged = [event for event in events.events_of(home.database, "fault-a") if event.action == "deploy"]
    assert word in logged[-1].detail["accepted_worse"][0]


def test_a_better_head_replaces_another_without_being_asked_for(zoo: Zoo) -> None:
    home, row, first = zoo.with_head()
    home.deploy("fault-a", first.id, reason="first")
    better = home.add_head(row, replace(head(0.8), error_bound_s=1e-6), measured(count=13))
    assert home.deploy("fault-a", better.id, reason="new").head_id == better.id
