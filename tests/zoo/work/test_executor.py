"""Executors: the same outcomes everywhere, one thread per worker, and workers that die."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from contingencies.errors import UsageError, ZooError
from zoo.work.executor import DaskCluster, LocalProcesses, Serial, make_executor
from zoo.work.jobs import Job

ROOT = Path(__file__).parents[3]


def job(label, function, **inputs):
    return Job(f"tests.zoo.work.tasks:{function}", inputs, label=label)


SQUARES = [job(f"square-{k}", "square", number=k) for k in range(6)]


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as running:
        yield running.scheduler_address


@pytest.fixture(params=["serial", "processes", "dask"])
def executor(request):
    if request.param == "serial":
        return Serial()
    if request.param == "processes":
        return LocalProcesses(2)
    return DaskCluster(request.getfixturevalue("cluster"))


@pytest.fixture(params=["processes", "dask"])
def parallel(request):
    return LocalProcesses(2) if request.param == "processes" else DaskCluster(request.getfixturevalue("cluster"))


def outcomes(executor, jobs):
    done = list(executor.run(jobs))
    assert len({item.job.key for item in done}) == len(done) == len(jobs)
    return {item.job.label: item for item in done}


def test_every_executor_gives_the_same_values(executor):
    assert {key: outcome.result for key, outcome in outcomes(executor, SQUARES).items()} == {
        f"square-{k}": k * k for k in range(6)
    }


def test_a_job_that_raises_is_one_sentence_and_the_others_go_on(executor):
    found = outcomes(executor, [job("refused", "refuse"), job("broken", "stumble"), *SQUARES[:2]])
    assert found["refused"].error == "the swing equation has no finite answer here."
    assert found["broken"].error == "ValueError: not a number"
    assert found["square-1"].error is None
    assert found["square-1"].result == 1


def test_workers_use_one_thread_each(parallel):
    found = outcomes(parallel, [job(str(k), "threads", number=k) for k in range(2)])
    for outcome in found.values():
        threads, pid = outcome.result
        assert threads == 1
        assert pid != os.getpid()


def test_a_killed_worker_is_replaced_and_its_job_tried_again(parallel, tmp_path):
    marker = tmp_path / "died"
    fatal = job("fatal", "die_once", marker=str(marker), number=7)
    found = outcomes(parallel, [*SQUARES[:2], fatal, *SQUARES[2:]])
    assert marker.exists()
    assert found["fatal"].result == 7
    assert all(outcome.error is None for outcome in found.values())


def test_a_job_that_always_kills_its_worker_is_given_up_and_takes_no_other_with_it(parallel):
    found = outcomes(parallel, [job("poison", "die_always"), *SQUARES])
    assert "died" in found["poison"].error
    assert [found[f"square-{k}"].result for k in range(6)] == [k * k for k in range(6)]


def test_outcomes_come_as_they_complete():
    slow, fast = job("slow", "pause", seconds=1.5, number=1), SQUARES[2]
    assert [item.job.label for item in LocalProcesses(2).run([slow, fast])] == ["square-2", "slow"]


def test_workers_end_when_their_parent_is_killed(tmp_path):
    code = f"""
    from zoo.work.executor import LocalProcesses
    from zoo.work.jobs import Job
    inputs = [dict(folder={str(tmp_path)!r}, number=k, seconds=60.0) for k in range(2)]
    work = [Job("tests.zoo.work.tasks:count", each) for each in inputs]
    list(LocalProcesses(2).run(work))
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT)
    deadline = time.monotonic() + 30
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = [int(path.name.rsplit("-", 1)[1]) for path in tmp_path.iterdir()]
    assert len(workers) == 2
    parent.kill()
    parent.wait()
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in workers)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_cluster_without_workers_is_given_up_instead_of_waited_for():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty,
        pytest.raises(ZooError, match="no worker"),
    ):
        list(DaskCluster(empty.scheduler_address, patience_s=0.5).run(SQUARES))


def test_a_cluster_that_is_not_there_is_one_sentence(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("zoo.work.executor.CONNECT_TIMEOUT_S", 1.0)
    with pytest.raises(ZooError, match="cannot be reached"):
        list(DaskCluster("tcp://127.0.0.1:1").run(SQUARES))


@pytest.mark.parametrize("address", ["foo", "host:8786", "tcp://", "tcp://host/x y"])
def test_what_is_no_address_of_a_cluster_is_refused_at_once(address):
    with pytest.raises(UsageError, match="tcp://host:8786"):
        make_executor(None, address)


def test_jobs_and_cluster_choose_the_executor():
    assert isinstance(make_executor(1), Serial)
    assert isinstance(make_executor(3), LocalProcesses)
    assert isinstance(make_executor(None, "tcp://127.0.0.1:1"), DaskCluster)
    with pytest.raises(UsageError, match="beside --cluster"):
        make_executor(3, "tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="--jobs"):
        make_executor(0)


def test_what_a_done_job_makes_possible_runs_before_what_waits():
    following = {SQUARES[0].key: [SQUARES[4], SQUARES[5]], SQUARES[5].key: [SQUARES[3]]}
    done = Serial().run(SQUARES[:3], then=lambda item: following.get(item.job.key, []))
    assert [item.result for item in done] == [0, 16, 25, 9, 1, 4]


def test_every_executor_runs_what_done_jobs_make_possible(executor):
    """Also a chain that begins with fewer jobs than there are workers."""
    following = {SQUARES[0].key: SQUARES[1:5], SQUARES[3].key: [SQUARES[5]]}
    done = list(executor.run(SQUARES[:1], then=lambda item: following.get(item.job.key, [])))
    assert sorted(item.result for item in done) == [k * k for k in range(6)]
