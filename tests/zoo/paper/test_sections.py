"""What a section says of its numbers: when and where they were measured, and of how many seeds they are missing."""

from tests.zoo.paper.test_runs import small_entry
from zoo.paper.budgets import BUDGETS
from zoo.paper.circumstances import circumstances
from zoo.paper.entry import Findings, Setting, Task, Training
from zoo.paper.jobs import Place, job_of
from zoo.paper.run import Conduct, run_entry
from zoo.work.executor import Serial

SETTING = Setting(BUDGETS["quick"], (0, 1, 2))


def of_seed(seed: int, function: str = "m:f") -> Task:
    return Task(function, Training("es-pinn", ("ieee9-mech-g2-restore",), 1.0, seed))


def test_dates_and_machines_are_those_of_the_measurements_and_not_of_the_page():
    made = [
        {"at": "2026-11-18T23:30:00+01:00", "machine": "an old core", "load": 2.0},
        {"at": "2026-11-20T08:00:00+00:00", "machine": "an old core", "load": 0.4},
        {"at": "2026-11-19T12:00:00+00:00", "machine": "a new core"},
    ]
    around = circumstances(SETTING, made)
    assert around.date == "2026-11-18 22:30 to 2026-11-20 08:00 UTC"
    assert around.machine == "an old core and a new core (load 0.4 to 2.0)"
    assert "3 seeds, measured 2026-11-18 22:30 to" in around.sentence
    alone = circumstances(SETTING, made[-1:])
    assert (alone.date, alone.machine) == ("2026-11-19 12:00 UTC", "a new core")
    assert circumstances(SETTING, [*made, {"machine": "a new core"}]).date == "until 2026-11-20 08:00 UTC"
    earlier = {"before": "2026-11-21T08:00:00+00:00", "machine": "a new core"}
    assert circumstances(SETTING, [*made, earlier]).date == "until 2026-11-21 08:00 UTC"
    assert circumstances(SETTING, [made[1], made[1] | {"at": "2026-11-20T09:30:00+00:00"}]).date == (
        "2026-11-20 08:00 to 09:30 UTC"
    )
    unknown = circumstances(SETTING, [{}])
    assert (unknown.date, unknown.machine) == ("at unknown times", "unknown machines")


def test_results_keep_when_and_where_they_were_found(tmp_path):
    benchmark, training = small_entry()
    place = Place(tmp_path)
    found = run_entry(benchmark, SETTING, Conduct(place, Serial()))
    kept = place.results.made(job_of(training, place))
    assert {"at", "machine"} <= kept.keys()
    assert kept in found.made and len(found.made) == found.results == 2
    assert found.wanted == 3, "the measurement that fails has no result"
    shown = run_entry(benchmark, SETTING, Conduct(place))
    assert shown.made == found.made, "presenting what there is does not make it new"


def test_what_is_missing_is_counted_in_seeds():
    wanted = [of_seed(seed, function) for seed in range(3) for function in ("m:states", "m:boundary")]
    done = {each: {} for each in wanted[:2]}
    assert Findings(done, {}).problem(wanted) == "2 of 3 seeds missing: not run"
    assert Findings(done, {wanted[3]: "it failed."}).problem(wanted[:4]) == "1 of 2 seeds missing: not run"
    assert Findings({each: {} for each in wanted}, {}).problem(wanted) == ""
    assert Findings({}, {Task("m:f"): "it failed."}).problem([Task("m:f")]) == "missing: it failed."
