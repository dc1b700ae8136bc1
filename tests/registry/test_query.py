"""Asking: answers with provenance, caches that are never stale, and nothing heavy imported."""

import math
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import registry
from contingencies.errors import IntegrityError, NotFoundError, UsageError
from registry import CCTAnswer, Registry, changes
from registry.changes import PostgresChanges
from tests.registry.makers import EDGE, Zoo, contingency, head, measured


def opened(zoo: Zoo) -> Registry:
    return Registry.open(zoo.path, zoo.url)


def test_an_answer_carries_number_status_bound_and_provenance(zoo: Zoo) -> None:
    home, row, made = zoo.with_head(level=0.7)
    home.deploy("fault-a", reason="x")
    with opened(zoo) as asked:
        answer = asked.cct("fault-a", 0.9)
        assert answer == CCTAnswer(0.7, pytest.approx(0.5), "finite", 1e-5, made.id, None, row.version, 12)
        assert asked.cct("fault-a", 0.1) == (None, None, "right-censored", None, made.id, None, 1, 12)
        assert asked.cct("fault-a", 1.5).status == "out-of-domain"
        assert asked.cct("fault-a", 1).cct == 0.7
        assert asked.cct("fault-a", np.float64(0.9)) == answer


def test_many_severities_and_many_contingencies_are_asked_at_once(zoo: Zoo) -> None:
    home, _, _ = zoo.with_head("fault-a", 0.7)
    other = home.register([contingency("fault-b", 0.3)])[0].row
    home.add_head(other, head(0.8), measured())
    home.deploy("fault-a", reason="x")
    home.deploy("fault-b", reason="x")
    alpha = np.array([[0.1, 0.9], [1.0, 7.0]])
    with opened(zoo) as asked:
        many = asked.cct("fault-a", alpha)
        assert many.status.tolist() == [["right-censored", "finite"], ["finite", "out-of-domain"]]
        np.testing.assert_allclose(many.duration, [[math.nan, 0.5], [0.5, math.nan]])
        assert many.contingency == "fault-a" and many.error_bound == 1e-5
        assert [a.cct for a in asked.cct(["fault-b", "fault-a"], 0.9)] == [0.8, 0.7]
        assert [a.cct[0] for a in asked.cct(("fault-b", "fault-a"), [0.9])] == [0.8, 0.7]


@pytest.mark.parametrize("alpha", [math.nan, math.inf, [0.5, math.nan], "0.9", None, True, ["x"]])
def test_a_severity_that_is_no_number_is_an_error(zoo: Zoo, alpha) -> None:
    home, _, _ = zoo.with_head()
    home.deploy("fault-a", reason="x")
    with opened(zoo) as asked, pytest.raises(UsageError):
        asked.cct("fault-a", alpha)


def test_an_unknown_name_and_an_undeployed_one_are_told_apart(zoo: Zoo) -> None:
    zoo.with_head()
    with opened(zoo) as asked:
        with pytest.raises(NotFoundError, match="not registered"):
            asked.cct("fault-z", 0.9)
        with pytest.raises(NotFoundError, match="is shipped and not registered yet"):
            asked.cct("ieee30-bus-3-trip", 0.9)
        with pytest.raises(NotFoundError, match="no head deployed"):
            asked.cct("fault-a", 0.9)
        for hostile in ("'; DROP TABLE heads; --", "a\x00b", "../x", ""):
            with pytest.raises(NotFoundError):
                asked.cct(hostile, 0.9)


DEPLOY = """
import sys
from registry.home import Home
path, url, verb, head = sys.argv[1:]
with Home.open(path, url or None) as home:
    if verb == "deploy":
        home.deploy("fault-a", int(head), reason="from another process")
    else:
        getattr(home, verb)("fault-a")
"""


def elsewhere(zoo: Zoo, verb: str, head_id: int = 0) -> None:
    """Change a deployment from another process."""
    subprocess.run([sys.executable, "-c", DEPLOY, str(zoo.path), zoo.url or "", verb, str(head_id)], check=True)


def test_a_change_by_another_process_is_seen_by_the_next_call(zoo: Zoo, monkeypatch) -> None:
    monkeypatch.setattr(changes, "RECHECK_S", 3600.0)  # the announcement alone must do
    home, row, first = zoo.with_head(level=0.7)
    second = home.add_head(row, head(0.8), measured())
    home.deploy("fault-a", first.id, reason="x")
    with opened(zoo) as asked:
        assert asked.cct("fault-a", 0.9).cct == 0.7
        elsewhere(zoo, "deploy", second.id)
        assert asked.cct("fault-a", 0.9).cct == 0.8
        elsewhere(zoo, "rollback")
        assert asked.cct("fault-a", np.array([0.9])).cct[0] == 0.7
        elsewhere(zoo, "retire")
        with pytest.raises(NotFoundError):
            asked.cct("fault-a", 0.9)


def test_a_loaded_head_is_not_read_again_while_nothing_changes(zoo: Zoo) -> None:
    home, _, made = zoo.with_head()
    home.deploy("fault-a", reason="x")
    with opened(zoo) as asked:
        assert asked.cct("fault-a", 0.9).cct == 0.7
        home.artifacts.path(made.digest).unlink()
        assert asked.cct("fault-a", 0.8).cct == 0.7
        home.register([contingency("fault-b", 0.3)])  # a change, but not of this head
        assert asked.cct("fault-a", 0.7).cct == 0.7
    with opened(zoo) as asked, pytest.raises(IntegrityError, match="missing"):
        asked.cct("fault-a", 0.9)


def test_a_lost_notification_is_made_up_for_within_a_second(postgres_database: str, tmp_path) -> None:
    zoo = Zoo(tmp_path / "home", postgres_database)
    home, row, first = zoo.with_head(level=0.7)
    second = home.add_head(row, head(0.8), measured())
    home.deploy("fault-a", first.id, reason="x")
    with opened(zoo) as asked:
        assert asked.cct("fault-a", 0.9).cct == 0.7
        listening = asked._changes
        assert isinstance(listening, PostgresChanges)
        listening._connection.execute("UNLISTEN *")
        home.deploy("fault-a", second.id, reason="x")
        time.sleep(1.1)
        assert asked.cct("fault-a", 0.9).cct == 0.8
        listening._connection.close()  # as when the server restarts
        home.rollback("fault-a")
        assert asked.cct("fault-a", 0.9).cct == 0.7
    home.close()


def test_threads_share_a_registry_while_deployments_change(zoo: Zoo) -> None:
    home, row, first = zoo.with_head(level=0.7)
    second = home.add_head(row, head(0.8), measured())
    home.deploy("fault-a", first.id, reason="x")
    wrong: list[object] = []
    stop = threading.Event()
    with opened(zoo) as asked:

        def ask() -> None:
            while not stop.is_set():
                try:
                    answer = asked.cct("fault-a", 0.9)
                    if (answer.head, answer.cct) not in ((first.id, 0.7), (second.id, 0.8)):
                        wrong.append(answer)
                except Exception as error:
                    wrong.append(error)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(10):
            home.deploy("fault-a", (second if i % 2 else first).id, reason="x")
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert asked.cct("fault-a", 0.9).head == second.id


def _ask_in_child(asked: Registry, answers) -> None:
    answers.put(asked.cct("fault-a", 0.9).cct)


def test_a_forked_process_opens_its_own_connections(zoo: Zoo) -> None:
    home, _, _ = zoo.with_head()
    home.deploy("fault-a", reason="x")
    fork = multiprocessing.get_context("fork")
    with opened(zoo) as asked:
        asked.cct("fault-a", 0.9)
        answers = fork.Queue()
        child = fork.Process(target=_ask_in_child, args=(asked, answers))
        child.start()
        assert answers.get(timeout=30) == 0.7
        child.join()
        assert asked.cct("fault-a", 0.9).cct == 0.7


def test_a_home_can_be_moved_and_still_answers(sqlite_zoo: Zoo, tmp_path) -> None:
    home, _, _ = sqlite_zoo.with_head()
    home.deploy("fault-a", reason="x")
    home.close()
    moved = tmp_path / "elsewhere" / "zoo"
    moved.parent.mkdir()
    os.rename(sqlite_zoo.path, moved)
    with Registry.open(moved) as asked:
        assert asked.cct("fault-a", 0.9).cct == 0.7


def test_the_home_comes_from_the_environment_and_is_not_made_by_asking(sqlite_zoo: Zoo, tmp_path, monkeypatch) -> None:
    home, _, _ = sqlite_zoo.with_head()
    home.deploy("fault-a", reason="x")
    monkeypatch.setenv("CCT_ZOO_HOME", str(sqlite_zoo.path))
    with Registry.open() as asked:
        assert asked.cct("fault-a", EDGE).status == "finite"
    with pytest.raises(NotFoundError, match="no registry"):
        Registry.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_the_package_lists_only_what_it_has() -> None:
    with pytest.raises(AttributeError):
        registry.nothing  # noqa: B018


def test_the_query_path_imports_nothing_heavy() -> None:
    code = (
        "import sys; from registry import Registry; import espinn_moe.head, zoo.commands.query; Registry.open; "
        "names = 'torch pandapower mlflow numba scipy pandas alembic pydantic'; "
        "heavy = set(names.split()) & set(sys.modules); "
        "print(heavy); sys.exit(len(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
