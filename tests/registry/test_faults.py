"""Many writers at once, and writers killed at any moment: nothing lost, nothing half-visible."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from contingencies.errors import IntegrityError, NotFoundError
from registry.query import Registry
from registry.store import contingencies as store
from registry.store import deployments, events, heads
from registry.upkeep import collect_garbage, verify
from tests.registry.makers import Zoo, contingency, head, measured

PROCESSES = 5
ROUNDS = 4

WORKER = """
import json, sys
from contingencies.errors import ConflictError
from registry.home import Home
from tests.registry.makers import contingency, head, measured

path, url, number, rounds = sys.argv[1], sys.argv[2] or None, int(sys.argv[3]), int(sys.argv[4])
done = {"registered": [], "heads": [], "deploy": 0, "rollback": 0}
with Home.open(path, url) as home:
    for turn in range(rounds):
        position = round(0.1 + 0.08 * number + 0.01 * turn, 4)  # every worker and turn another physics
        results = home.register([contingency("shared", position), contingency(f"own-{number}", position)])
        done["registered"] += [(r.row.name, r.row.version) for r in results]
        made = home.add_head(results[0].row, head(round(0.5 + position / 10, 6)), measured())
        done["heads"].append(made.id)
        home.deploy("shared", made.id, reason=f"worker {number}, turn {turn}")
        done["deploy"] += 1
        if turn % 2:
            try:
                home.rollback("shared", reason=f"worker {number}")
                done["rollback"] += 1
            except ConflictError:
                pass
print(json.dumps(done))
"""


def test_several_processes_registering_deploying_and_rolling_back_lose_nothing(zoo: Zoo) -> None:
    zoo.again().register([contingency("shared", 0.9)])
    commands = [
        [sys.executable, "-c", WORKER, str(zoo.path), zoo.url or "", str(n), str(ROUNDS)] for n in range(PROCESSES)
    ]
    children = [
        subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        for c in commands
    ]
    outcomes = [child.communicate(timeout=300) for child in children]
    assert [child.returncode for child in children] == [0] * PROCESSES, [error[-500:] for _, error in outcomes]
    done = [json.loads(out) for out, _ in outcomes]

    home = zoo.again()
    turns = PROCESSES * ROUNDS
    assert store.find(home.database, "shared").version == 1 + turns
    versions = [version for d in done for name, version in d["registered"] if name == "shared"]
    assert sorted(versions) == list(range(2, 2 + turns))  # no version given twice, none lost
    assert len({head_id for d in done for head_id in d["heads"]}) == turns

    history = deployments.history(home.database, "shared")
    assert Counter(row.action for row in history) == {
        "deploy": turns,
        "rollback": sum(d["rollback"] for d in done),
    }
    assert [row.active for row in history] == [False] * (len(history) - 1) + [True]
    for before, after in itertools.pairwise(history):
        assert before.ended_at is not None and before.ended_at <= after.created_at
        if after.action == "deploy":
            assert after.previous_id == before.id  # nobody deployed over something he had not replaced
    log = Counter(event.action for event in events.events_of(home.database, "shared"))
    assert log == {"register": 1 + turns, "distill": turns} | Counter(row.action for row in history)
    assert verify(home).problems == []
    with Registry.open(zoo.path, zoo.url) as asked:
        assert asked.cct("shared", 0.9).head == history[-1].head_id


# --- kill -9 ----------------------------------------------------------------------------------

VICTIM = """
import sys
from registry.home import Home
from tests.registry.makers import contingency, head, measured, own_system_contingency

path, url, salt = sys.argv[1], sys.argv[2] or None, int(sys.argv[3])
if salt % 2:  # these may be killed while they open the registry, the others have written something
    print("ready", flush=True)
with Home.open(path, url) as home:
    turn = 0
    while True:
        turn += 1
        position = round(0.001 + (salt * 137 + turn) % 997 / 1000, 4)
        pair = [contingency("left", position), contingency("right", position)]
        rows = home.register([*pair, own_system_contingency(f"own-{salt}", b"%d %d" % (salt, turn))])
        for result in rows[:2]:
            made = home.add_head(result.row, head(round(0.5 + position / 10, 6)), measured())
            home.deploy(result.row.name, made.id, reason=f"{salt}-{turn}")
        if turn == 1 and not salt % 2:
            print("ready", flush=True)
"""


def test_writers_killed_at_random_moments_leave_nothing_half_visible(zoo: Zoo) -> None:
    home = zoo.again()
    home.register([contingency("left", 0.5), contingency("right", 0.5)])
    moments = random.Random(7)
    children = []
    for salt in range(6):
        child = subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(zoo.path), zoo.url or "", str(salt)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        children.append(child)
        if len(children) == 2:  # two at a time, so that one is killed while the other writes
            for victim in children:
                assert victim.stdout is not None and victim.stdout.readline() == b"ready\n"
            for victim in children:
                time.sleep(moments.uniform(0.05, 0.35))
                os.kill(victim.pid, signal.SIGKILL)
            for victim in children:
                victim.wait()
                victim.stdout.close()
            children = []

    after = zoo.again()
    assert verify(after).problems == []
    written = heads.heads_of(after.database, limit=100_000)
    assert written, "the victims were killed before they wrote anything"
    # A batch is all or nothing: both names always have the same versions.
    left, right = (store.find(after.database, name) for name in ("left", "right"))
    assert left.version == right.version
    for name in ("left", "right"):
        history = deployments.history(after.database, name)
        assert sum(row.active for row in history) == (1 if history else 0)
        assert Counter(e.action for e in events.events_of(after.database, name))["deploy"] == len(history)
    collect_garbage(after, delete=True, grace_s=0)
    assert verify(after).problems == [] and verify(after).unreferenced == 0
    after.register([contingency("left", 0.999)])  # and the registry takes new entries
    home.close()


# --- damage seen by a query -------------------------------------------------------------------


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def _link(path: Path) -> None:
    target = path.with_name("target")
    path.rename(target)
    path.symlink_to(target)


@pytest.mark.parametrize(
    "damage",
    [_flip, _link, Path.unlink, lambda p: p.write_bytes(p.read_bytes()[:-1])],
    ids=["bit", "link", "gone", "cut"],
)
def test_a_damaged_head_never_answers(sqlite_zoo: Zoo, damage) -> None:
    home, _row, made = sqlite_zoo.with_head()
    home.deploy("fault-a", reason="x")
    damage(home.artifacts.path(made.digest))
    with Registry.open(sqlite_zoo.path) as asked:
        for _ in range(2):
            with pytest.raises(IntegrityError) as raised:
                asked.cct("fault-a", 0.9)
            assert raised.value.exit_code == 7
    assert len(verify(home).problems) == 1


def test_a_refused_registration_leaves_no_trace(zoo: Zoo) -> None:
    home = zoo.again()
    with pytest.raises(NotFoundError):
        home.deploy("nothing", reason="x")
    assert store.latest(home.database) == [] and verify(home).contingencies == 0
    made = home.add_head(home.register([contingency()])[0].row, head(), measured())
    assert heads.get(home.database, made.id).kind == "chebyshev"
