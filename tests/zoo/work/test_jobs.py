"""Many jobs: each done once, whatever is killed in the middle."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from contingencies.errors import IntegrityError, UsageError
from zoo.work.batch import failures, run_jobs
from zoo.work.executor import LocalProcesses, Serial
from zoo.work.jobs import Job, Results

ROOT = Path(__file__).parents[3]


def jobs(calls, count=4, seconds=0.0):
    return [
        Job("tests.zoo.work.tasks:count_job", {"number": k}, {"folder": str(calls), "seconds": seconds})
        for k in range(count)
    ]


@pytest.fixture
def calls(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    return folder


def test_jobs_that_are_done_are_not_done_again(tmp_path, calls):
    first = run_jobs(jobs(calls, 3), Serial(), tmp_path / "results")
    told = []
    second = run_jobs(
        jobs(calls), Serial(), tmp_path / "results", lambda item, n, total: told.append((item.fresh, n, total))
    )
    assert [item.result for item in second] == [{"number": k} for k in range(4)]
    assert [item.fresh for item in first] == [True] * 3
    assert told == [(False, 1, 4), (False, 2, 4), (False, 3, 4), (True, 4, 4)]
    assert len(list(calls.iterdir())) == 4


def test_the_key_is_what_is_done_and_not_where(tmp_path):
    job = Job("m:f", {"seed": 1, "fraction": 0.1}, {"home": "here"})
    assert job.key == Job("m:f", {"fraction": 0.1, "seed": 1}, {"home": "there"}).key
    assert job.key != Job("m:f", {"seed": 2, "fraction": 0.1}, {"home": "here"}).key
    with pytest.raises(UsageError, match="plain"):
        _ = Job("m:f", {"seed": float("nan")}, {}).key


def test_a_failed_job_is_told_and_tried_again_next_time(tmp_path):
    fragile = Job("tests.zoo.work.tasks:fail_until", {"number": 5}, {"marker": str(tmp_path / "mended")})
    (failed,) = run_jobs([fragile], Serial(), tmp_path / "results")
    assert failed.result is None
    assert failures([failed]) == ["number 5: not yet."]
    (tmp_path / "mended").touch()
    (mended,) = run_jobs([fragile], Serial(), tmp_path / "results")
    assert mended.result == {"number": 5}


def test_killed_in_the_middle_a_run_continues_with_what_is_missing(tmp_path, calls):
    code = f"""
    from pathlib import Path
    from tests.zoo.work.test_jobs import jobs
    from zoo.work.executor import LocalProcesses
    from zoo.work.batch import run_jobs
    run_jobs(jobs({str(calls)!r}, 6, 0.4), LocalProcesses(2), Path({str(tmp_path / "results")!r}))
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "results").glob("[!.]*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    time.sleep(1.5)  # its workers notice within a second
    before = len(list((tmp_path / "results").glob("[!.]*.json")))
    assert 2 <= before < 6
    done = run_jobs(jobs(calls, 6), LocalProcesses(2), tmp_path / "results")
    assert sum(not item.fresh for item in done) == before
    assert [item.result for item in done] == [{"number": k} for k in range(6)]


def test_a_damaged_result_is_named_and_not_believed(tmp_path, calls):
    (job,) = jobs(calls, 1)
    results = Results(tmp_path / "results")
    results.put(job, {"number": 0})
    results.path(job).write_text('{"result": ')
    with pytest.raises(IntegrityError, match="damaged"):
        run_jobs([job], Serial(), tmp_path / "results")


def test_results_of_other_code_are_not_reused_and_that_is_said(tmp_path, calls):
    former, present = (replace(job, code=code) for code in ("aaaa", "bbbb") for job in jobs(calls, 1))
    assert former.subject == present.subject
    run_jobs([former], Serial(), tmp_path / "results")
    sentences = []
    (done,) = run_jobs([present], Serial(), tmp_path / "results", say=sentences.append)
    assert done.fresh
    assert sentences == ["1 earlier result was found by other code and is not reused."]
    (again,) = run_jobs([present], Serial(), tmp_path / "results", say=pytest.fail)
    assert not again.fresh


def test_what_needs_another_job_follows_it_at_once(tmp_path, calls):
    first, second, third, fourth = jobs(calls)
    needs = {second.key: fourth.key, third.key: first.key}
    told = []
    done = run_jobs(
        [first, second, third, fourth],
        Serial(),
        tmp_path / "results",
        lambda item, n, total: told.append(item.job.inputs["number"]),
        needs=needs,
    )
    assert told == [0, 2, 3, 1]
    assert [item.result for item in done] == [{"number": k} for k in range(4)]


def test_what_needs_a_finished_job_is_done_without_it(tmp_path, calls):
    first, second = jobs(calls, 2)
    run_jobs([first], Serial(), tmp_path / "results")
    done = run_jobs([first, second], Serial(), tmp_path / "results", needs={second.key: first.key})
    assert [item.fresh for item in done] == [False, True]


def test_what_needs_a_failed_job_is_not_tried_and_only_the_failure_is_told(tmp_path, calls):
    fragile = Job("tests.zoo.work.tasks:fail_until", {"number": 5}, {"marker": str(tmp_path / "mended")})
    (after,) = jobs(calls, 1)
    done = run_jobs([after, fragile], Serial(), tmp_path / "results", needs={after.key: fragile.key})
    assert [item.error for item in done] == ["what it needs failed", "not yet."]
    assert failures(done) == ["number 5: not yet."]
    assert not list(calls.iterdir())
