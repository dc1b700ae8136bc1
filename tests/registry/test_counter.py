"""Noticing changes on SQLite: at once, without touching SQLite's files, whoever dies in between, across forks."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from contingencies.errors import IntegrityError, NotFoundError, ZooError
from registry import Registry, changes
from registry.changes import SqliteChanges
from registry.counter import CounterView, counted, counter_path
from tests.registry.makers import Zoo, contingency, head, measured

ROOT = Path(__file__).parents[2]


def two_heads(zoo: Zoo):
    home, row, first = zoo.with_head(level=0.7)
    second = home.add_head(row, head(0.8), measured())
    home.deploy("fault-a", first.id, reason="x")
    return home, first, second


def test_every_single_commit_changes_the_stamp_and_nothing_else_does(sqlite_zoo: Zoo, monkeypatch) -> None:
    monkeypatch.setattr(changes, "RECHECK_S", 3600.0)
    home, first, second = two_heads(sqlite_zoo)
    noticed = SqliteChanges(home.database)
    for turn in range(50):
        before = noticed.stamp()
        assert noticed.stamp() == before
        home.deploy("fault-a", (second, first)[turn % 2].id, reason="again")
        assert noticed.stamp() != before
    noticed.close()


def test_asking_keeps_no_descriptor_and_no_mapping_of_sqlites_files(sqlite_zoo: Zoo) -> None:
    home, _, _ = two_heads(sqlite_zoo)
    home.close()
    with Registry.open(sqlite_zoo.path) as asked:
        assert asked.cct("fault-a", 0.9).cct == 0.7
        mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "home/reg" in line}
        ours = str(counter_path(sqlite_zoo.path / "registry.db"))
        # SQLite maps its own index; nobody else may, and the handle of that mapping is SQLite's.
        assert mapped - {str(sqlite_zoo.path / "registry.db-shm")} == {ours}


def test_what_another_program_writes_is_noticed_within_a_second(sqlite_zoo: Zoo) -> None:
    two_heads(sqlite_zoo)
    with Registry.open(sqlite_zoo.path) as asked:
        assert asked.cct("fault-a", 0.9).cct == 0.7
        with sqlite3.connect(sqlite_zoo.path / "registry.db") as other:
            other.execute("UPDATE deployments SET active = 0")
        time.sleep(1.1)
        with pytest.raises(NotFoundError):
            asked.cct("fault-a", 0.9)


@pytest.mark.parametrize("committed", [False, True])
def test_a_writer_killed_around_its_commit_does_not_leave_readers_behind(sqlite_zoo: Zoo, committed: bool) -> None:
    home, _, second = two_heads(sqlite_zoo)
    view = CounterView(sqlite_zoo.path / "registry.db")
    with Registry.open(sqlite_zoo.path) as asked:
        assert asked.cct("fault-a", 0.9).cct == 0.7
        moment = "return" if committed else "commit"
        code = f"""
import os, signal, sys
from registry import counter
from registry.home import Home
real = os.pwrite
def pwrite(descriptor, content, place):
    if content[0] % 2 == {0 if committed else 1}:
        {"pass" if committed else "real(descriptor, content, place)"}
        os.kill(os.getpid(), signal.SIGKILL)  # {moment}
    return real(descriptor, content, place)
counter.os.pwrite = pwrite
with Home.open(sys.argv[1]) as home:
    home.deploy("fault-a", {second.id}, reason="x")
"""
        done = subprocess.run([sys.executable, "-c", code, str(sqlite_zoo.path)], cwd=ROOT, capture_output=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert asked.cct("fault-a", 0.9).cct == (0.8 if committed else 0.7)
        assert view.settled() is not None, "the reader put the counter right"
        home.rollback("fault-a") if committed else home.deploy("fault-a", second.id, reason="y")
        assert asked.cct("fault-a", 0.9).cct == (0.7 if committed else 0.8)
    view.close()


def test_a_home_without_a_counter_answers_and_one_that_may_not_be_written_too(sqlite_zoo: Zoo) -> None:
    home, first, second = two_heads(sqlite_zoo)
    home.close()
    counter_path(sqlite_zoo.path / "registry.db").unlink()
    with Registry.open(sqlite_zoo.path) as asked:
        assert asked.cct("fault-a", 0.9).head == first.id
        home.deploy("fault-a", second.id, reason="x")
        assert asked.cct("fault-a", 0.9).head == second.id


def test_a_file_that_is_no_counter_is_refused(tmp_path) -> None:
    counter_path(tmp_path / "registry.db").write_text("a shopping list")
    with pytest.raises(IntegrityError, match="not a change counter"), counted(tmp_path / "registry.db"):
        pass


# --- fork -------------------------------------------------------------------------------------


def _ask_when_told(asked: Registry, questions, answers) -> None:
    while questions.get(timeout=60):
        try:
            answers.put(asked.cct("fault-a", 0.9).cct)
        except ZooError as error:
            answers.put(str(error))


def test_a_forked_child_sees_changes_after_its_parent_has_closed_the_registry(sqlite_zoo: Zoo) -> None:
    home, _, second = two_heads(sqlite_zoo)
    home.close()
    fork = multiprocessing.get_context("fork")
    questions, answers = fork.Queue(), fork.Queue()
    asked = Registry.open(sqlite_zoo.path)
    assert asked.cct("fault-a", 0.9).cct == 0.7
    child = fork.Process(target=_ask_when_told, args=(asked, questions, answers))
    child.start()
    questions.put(True)
    assert answers.get(timeout=60) == 0.7
    asked.close()
    deploy = "import sys; from registry.home import Home; Home.open(sys.argv[1]).deploy('fault-a', 2, reason='x')"
    subprocess.run([sys.executable, "-c", deploy, str(sqlite_zoo.path)], check=True, cwd=ROOT)
    questions.put(True)
    assert answers.get(timeout=60) == 0.8 and second.id == 2
    questions.put(False)
    child.join()


def test_a_fork_in_the_middle_of_another_threads_transaction_is_refused_in_the_child(sqlite_zoo: Zoo) -> None:
    home, *_ = two_heads(sqlite_zoo)
    fork = multiprocessing.get_context("fork")
    questions, answers = fork.Queue(), fork.Queue()
    inside, leave = threading.Event(), threading.Event()

    def write() -> None:
        with home.database.write() as session:
            session.connection()
            inside.set()
            leave.wait()

    thread = threading.Thread(target=write)
    thread.start()
    inside.wait()
    with Registry.open(sqlite_zoo.path) as asked:
        child = fork.Process(target=_ask_when_told, args=(asked, questions, answers))
        child.start()
        questions.put(True)
        assert "was in use when this process was forked" in answers.get(timeout=60)
        questions.put(False)
        child.join()
        leave.set()
        thread.join()
        assert asked.cct("fault-a", 0.9).cct == 0.7
    home.register([contingency("fault-b", 0.3)])


# --- a registry that goes away ----------------------------------------------------------------


def test_a_registry_that_was_removed_or_replaced_is_told_at_the_next_write_and_query(sqlite_zoo: Zoo) -> None:
    home, _, second = two_heads(sqlite_zoo)
    with Registry.open(sqlite_zoo.path) as asked:
        assert asked.cct("fault-a", 0.9).cct == 0.7
        for suffix in ("", "-wal", "-shm", "-counter"):
            Path(f"{sqlite_zoo.path / 'registry.db'}{suffix}").unlink(missing_ok=True)
        with pytest.raises(IntegrityError, match="removed or replaced"):
            home.deploy("fault-a", second.id, reason="x")
        sqlite_zoo.again().register([contingency("fault-a", 0.3)])  # another registry in its place
        with pytest.raises(IntegrityError, match="removed or replaced"):
            home.register([contingency("fault-b", 0.3)])
        time.sleep(1.1)
        with pytest.raises(IntegrityError, match="removed or replaced"):
            asked.cct("fault-a", 0.9)


def test_a_home_that_was_deleted_does_not_come_back_as_an_empty_one(sqlite_zoo: Zoo) -> None:
    home, row, _ = sqlite_zoo.with_head()
    os.rename(sqlite_zoo.path, sqlite_zoo.path.with_name("gone"))
    with pytest.raises(ZooError, match="gone"):
        home.add_checkpoint(b"weights", 10, "kind", {row.id: 0})
    assert not sqlite_zoo.path.exists()
