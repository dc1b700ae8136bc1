"""The registry's commands: what they print, which exit code they end with, what they refuse."""

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from registry.engine import open_database
from registry.home import Home
from registry.store import runs
from registry.texts import current_actor
from tests.registry.makers import contingency, head, measured

NAME = "fault-a"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    """A home with one registered contingency, two heads, nothing deployed; the commands' default."""
    path = tmp_path / "home"
    with Home.open(path) as opened:
        row = opened.register([contingency(NAME)])[0].row
        opened.add_head(row, head(0.7), measured())
        opened.add_head(row, head(0.8), measured(mae_s=5e-3))
    monkeypatch.setenv("CCT_ZOO_HOME", str(path))
    monkeypatch.delenv("CCT_ZOO_REGISTRY", raising=False)
    return path


def test_the_life_of_a_head_from_deployment_to_retirement(home, run) -> None:
    assert run("deploy", NAME, "--head", "1", "--reason", "first")[0] == 0
    code, out, _ = run("cct", NAME, "--alpha", "0.9", "--json")
    answer = json.loads(out)
    assert code == 0 and answer["contingency"] == NAME and answer["alpha"] == 0.9 and answer["status"] == "finite"
    assert answer["cct_s"] == 0.7 and answer["duration_s"] == pytest.approx(0.5) and answer["error_bound_s"] == 1e-5
    assert answer["head"] == 1 and answer["checkpoint"] is None and answer["contingency_version"] == 1

    code, _, err = run("deploy", NAME, "--reason", "newest")
    assert code == 6 and "mean error 5 ms exceeds 2 ms" in err and err.count("\n") == 1
    assert run("deploy", NAME, "--reason", "drill", "--force")[0] == 0
    assert json.loads(run("cct", NAME, "--alpha", "0.9", "--json")[1])["cct_s"] == 0.8
    assert "head 1" in run("rollback", NAME, "--reason", "drill over")[1]
    assert run("rollback", NAME)[0] == 4
    assert run("retire", NAME, "--reason", "line removed")[0] == 0
    assert run("cct", NAME, "--alpha", "0.9")[0] == 3

    told = json.loads(run("history", NAME, "--json")[1])
    assert [(d["action"], d["head"], d["forced"]) for d in told["deployments"]] == [
        ("deploy", 1, False),
        ("deploy", 2, True),
        ("rollback", 1, False),
    ]
    assert [e["reason"] for e in told["events"][3:]] == ["first", "drill", "drill over", "line removed"]
    assert "FORCED" in run("history", NAME)[1]


def test_deploying_the_active_head_again_says_so_and_a_rollback_goes_to_the_one_before(home, run) -> None:
    said = run("deploy", NAME, "--head", "1", "--reason", "first")[1]
    assert re.search(r"deployed: error \S+ ms, largest \S+ ms, against the strict ODE at \d+ severit", said)
    run("deploy", NAME, "--head", "2", "--reason", "second", "--force")
    code, out, _ = run("deploy", NAME, "--head", "2", "--reason", "again")
    assert code == 0 and "head 2" in out and "answers already; nothing was changed" in out
    again = json.loads(run("deploy", NAME, "--head", "2", "--reason", "again", "--json")[1])
    assert again["changed"] is False and again["reason"] == "second"
    assert json.loads(run("rollback", NAME, "--json")[1])["head"] == 1


def trained(home: Path) -> None:
    """Two checkpoints of a family of two, the second a part of the first, and a head from the first, deployed."""
    with Home.open(home) as opened:
        first, second = (opened.register([contingency(name)])[0].row for name in (NAME, "fault-b"))
        run = runs.start_run(
            opened.database, "moe", "moe-chained", [(first.id, None), (second.id, None)],
            config={"residual": "shooting"}, seed=3,
            fraction=0.2, code_version="0",
        )  # fmt: skip
        metrics = {"cct_mae_ms": 0.0123, "cct_max_ms": 0.2, "steps": 1500.0}
        whole = opened.add_checkpoint(
            b"whole", 1234, "stand-in", {first.id: 0, second.id: 1}, run_id=run.id, metrics=metrics
        )
        runs.finish_run(opened.database, run.id)
        opened.add_checkpoint(b"part", 1000, "stand-in", {second.id: 0}, parent_id=whole.id)
        made = opened.add_head(first, head(0.9), measured(), whole.id)
        opened.deploy(NAME, made.id, reason="trained", accept_worse=True)


def test_checkpoints_are_listed_with_what_they_are_and_what_they_serve(home, run) -> None:
    assert json.loads(run("checkpoints", "--json")[1]) == []
    trained(home)
    part, whole = json.loads(run("checkpoints", "--json")[1])
    assert (whole["checkpoint"], whole["model"], whole["parameters"]) == (1, "moe-chained", 1234)
    assert (whole["cct_mae_ms"], whole["fraction"], whole["seed"], whole["parent"]) == (0.0123, 0.2, 3, None)
    assert [(m["contingency"], m["version"], m["default"], m["deployed"]) for m in whole["members"]] == [
        (NAME, 1, True, ["production"]),
        ("fault-b", 1, False, []),
    ]
    assert (part["model"], part["parent"], part["cct_mae_ms"]) == ("moe-chained", 1, None), "as its parent"
    assert [(m["contingency"], m["default"]) for m in part["members"]] == [("fault-b", True)]
    assert [c["checkpoint"] for c in json.loads(run("checkpoints", NAME, "--json")[1])] == [1]
    assert [c["checkpoint"] for c in json.loads(run("checkpoints", "fault-b@1", "--json")[1])] == [2, 1]
    text = run("checkpoints")[1].splitlines()[1]
    assert text.startswith("checkpoint 1  moe-chained  fault-a v1, fault-b v1  1,234 parameters  CCT error 0.0123 ms")
    assert (
        "fraction 0.2  seed 3  shooting residual  1,500 steps" in text
        and "[default of fault-a]  [deployed: production of fault-a]" in text
    )
    code, _, err = run("checkpoints", "no-such")
    assert code == 3 and err.count("\n") == 1
    code, _, err = run("distill", NAME, "--source", "77")
    assert code == 3 and "'cct-zoo checkpoints' lists" in err
    code, _, err = run("distill", NAME, "--source", "2")
    assert code == 3 and f"'cct-zoo checkpoints {NAME}' lists" in err


def test_a_history_says_what_became_of_what_and_who_did_it_when(home, run) -> None:
    run("deploy", NAME, "--head", "1", "--reason", "first")
    trained(home)
    run("rollback", NAME, "--reason", "worse")
    run("retire", NAME, "--reason", "line gone")
    run("deploy", NAME, "--head", "1", "--alias", "trial", "--reason", "try")
    code, out, _ = run("history", NAME)
    lines = out.splitlines()
    assert code == 0 and all(f"  by {current_actor()}: " in line and line[4] == "-" for line in lines)
    for expected, line in zip(
        (
            "register  version 1 (",
            "distill  head 1 (version 1) from reference",
            "distill  head 2 (version 1) from reference",
            "deploy  production: none -> head 1 (version 1, from reference)  until 2",
            "checkpoint  1 (moe-chained, 2 members)",
            "distill  head 3 (version 1) from checkpoint 1",
            "deploy  production: head 1 -> head 3 (version 1, from checkpoint 1)  until 2",
            "rollback  production: head 3 -> head 1 (version 1, from reference)  until 2",
            "retire  production: head 1 -> none",
            "deploy  trial: none -> head 1 (version 1, from reference)  active",
        ),
        lines,
        strict=True,
    ):
        assert expected in line
    told = json.loads(run("history", NAME, "--json")[1])
    assert [d["replaced_head"] for d in told["deployments"]] == [None, 1, 3, None]
    assert [e["checkpoint"] for e in told["events"] if e["action"] == "checkpoint"] == [1]
    only = run("history", NAME, "--alias", "trial")[1]
    assert "production" not in only and "trial: none -> head 1" in only


def test_the_gate_can_be_set_by_the_user(home, run) -> None:
    assert run("deploy", NAME, "--head", "1", "--reason", "x", "--max-mean-ms", "0.001")[0] == 6
    assert run("deploy", NAME, "--head", "2", "--reason", "x", "--max-mean-ms", "6")[0] == 0


def test_severities_are_numbers_or_ranges_with_both_ends(home, run) -> None:
    run("deploy", NAME, "--head", "1", "--reason", "x")
    rows = json.loads(run("cct", NAME, "--alpha", "0.4:0.6:0.1", "--alpha", "2", "--json")[1])
    assert [(r["alpha"], r["status"]) for r in rows] == [
        (0.4, "right-censored"),
        (0.5, "finite"),
        (0.6, "finite"),
        (2.0, "out-of-domain"),
    ]
    assert rows[0]["cct_s"] is None and rows[0]["duration_s"] is None and rows[0]["error_bound_s"] is None
    assert len(json.loads(run("cct", NAME, "--alpha", "0.5:1.0:0.01", "--json")[1])) == 51
    for wrong in ("nan", "inf", "1:2", "a", "1:0:0.1", "0:1:0", "0:1:-1", "0:1:1e-9", "0:nan:1", ""):
        code, out, err = run("cct", NAME, "--alpha", wrong)
        assert code == 2 and out == "" and err.startswith("Error: "), wrong


def test_answers_are_printed_as_text_or_csv_for_several_names(home, run) -> None:
    with Home.open(home) as opened:
        opened.add_head(opened.register([contingency("fault-b", 0.3)])[0].row, head(0.6), measured())
    run("deploy", NAME, "--head", "1", "--reason", "x")
    run("deploy", "fault-b", "--reason", "x")
    arguments = ("cct", NAME, "fault-b", "--alpha", "0.9", "--alpha", "0.1", "--csv")
    _, out, _ = run(*arguments, "-")
    code, text, _ = run(*arguments, str(home / "answers.csv"))
    assert code == 0 and (home / "answers.csv").read_text() == out
    assert text.count("fault-b") == 2, "a file is written besides what people read"
    code, nothing, err = run(*arguments, "-", "--json")
    assert code == 2 and nothing == "" and "leave one out" in err
    assert run(*arguments, str(home / "nowhere" / "answers.csv"))[0] == 2
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(r["contingency"], r["cct_s"], r["status"]) for r in rows] == [
        (NAME, "0.7", "finite"),
        (NAME, "", "right-censored"),
        ("fault-b", "0.6", "finite"),
        ("fault-b", "", "right-censored"),
    ]
    _, out, _ = run("cct", NAME, "--alpha", "0.9")
    assert "fault may last 500.000 ms" in out


def test_names_that_nobody_answers_for_do_not_silence_the_others(home, run) -> None:
    run("deploy", NAME, "--head", "1", "--reason", "x")
    with Home.open(home) as opened:
        opened.register([contingency("fault-b", 0.3)])
    names = ("fault-b", NAME, "no-such")
    code, out, err = run("cct", *names, "--alpha", "0.9", "--json")
    assert code == 3 and [(a["contingency"], a["status"], a["cct_s"]) for a in json.loads(out)] == [
        ("fault-b", "no-head", None),
        (NAME, "finite", 0.7),
        ("no-such", "no-head", None),
    ]
    first, second = err.splitlines()
    assert first.startswith("Error: 'fault-b' has no head deployed") and "'no-such' is not registered" in second
    code, out, _ = run("cct", *names, "--alpha", "0.9")
    assert code == 3 and out.splitlines()[0] == "fault-b  alpha 0.9  no-head"
    code, out, _ = run("cct", *names, "--alpha", "0.9", "--csv", "-")
    assert code == 3 and [row["status"] for row in csv.DictReader(io.StringIO(out))] == ["no-head", "finite", "no-head"]


def test_verify_ends_with_seven_when_a_file_is_damaged(home, run) -> None:
    assert run("verify")[0] == 0
    run("deploy", NAME, "--head", "1", "--reason", "x")
    with Home.open(home) as opened:
        file = next(iter(opened.artifacts.files())).path
    file.write_bytes(b"?" + file.read_bytes()[1:])
    code, out, err = run("verify")
    assert code == 7 and "damaged: head" in out and "1 problems" in err
    assert len(json.loads(run("verify", "--json")[1])["problems"]) == 1


def test_gc_says_what_it_would_remove_and_removes_it_only_when_told(home, run) -> None:
    run("deploy", NAME, "--head", "2", "--reason", "x", "--force")
    report = json.loads(run("gc", "--heads", "--grace-minutes", "0", "--json")[1])
    assert report["deleted"] is False and report["heads"] == [1] and len(report["files"]) == 1
    assert len(json.loads(run("heads", NAME, "--json")[1])) == 2
    assert "removed: 1 files" in run("gc", "--heads", "--grace-minutes", "0", "--delete")[1]
    assert [(r["head"], r["deployed"]) for r in json.loads(run("heads", "--json")[1])] == [(2, ["production"])]


def test_what_does_not_exist_ends_with_three_and_one_sentence(home, run, tmp_path) -> None:
    for arguments in (
        ("cct", "no-such", "--alpha", "1"),
        ("deploy", "no-such", "--reason", "x"),
        ("deploy", NAME, "--head", "99", "--reason", "x"),
        ("rollback", NAME),
        ("retire", NAME),
        ("history", "no-such"),
        ("heads", "no-such"),
        ("distill", "no-such"),
        ("distill", NAME, "--source", "latest"),
        ("register-contingency", "no-such"),
        ("register-contingency", "no-such.yaml"),
        ("cct", NAME, "--alpha", "1", "--home", str(tmp_path / "nowhere")),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (3, ""), arguments
        assert err.startswith("Error: ") and err.count("\n") == 1


HOSTILE = [
    "'; DROP TABLE heads; --",
    "../../../etc/passwd",
    "x" * 100_000,
    "\x1b[2J",
    "a\nb",
    "%s%n",
    "\ud83d\ude00"[:1],
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_reasons_are_data_or_one_sentence(home, run, text: str) -> None:
    for arguments in (
        ("cct", text, "--alpha", "1"),
        ("history", text),
        ("heads", text),
        ("register-contingency", text),
    ):
        code, _, err = run(*arguments)
        assert code == 3 and err.count("\n") == 1 and len(err) < 600 and "\x1b" not in err
    code, _, err = run("deploy", NAME, "--head", "1", "--reason", text)
    assert code in (0, 2) and err.count("\n") <= 1 and "\x1b" not in err
    code, _, err = run("cct", NAME, "--alpha", "1", "--alias", text)
    assert code == 2 and len(err) < 600 and "\x1b" not in err
    assert run("verify")[0] == 0


def test_a_password_in_the_registry_url_is_never_printed(home, run) -> None:
    code, out, err = run("heads", "--registry", "postgresql://me:s3cr3t@127.0.0.1:9/zoo")
    assert code == 1 and "s3cr3t" not in out + err and err.count("\n") == 1


def test_runs_are_sent_and_the_warning_goes_to_standard_error(home, run, monkeypatch) -> None:
    from registry.spool import RunSpool

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert run("sync-runs")[1] == "0 runs, 0 records sent\n"
    RunSpool(home, "demo").finish()
    code, out, err = run("sync-runs", "--json")
    assert code == 0 and json.loads(out)["runs"] == {} and err.startswith("Warning: MLflow at http://127.0.0.1:9")


def test_a_required_time_is_judged_as_given_or_as_the_registry_has_it(home: Path, run) -> None:
    from registry.store.required_times import set_required

    assert run("deploy", NAME, "--head", "1", "--reason", "first")[0] == 0
    code, out, _ = run("cct", NAME, "--alpha", "0.9", "--required-ms", "120")
    assert code == 0 and "pass by " in out and "120 ms required" in out
    with Home.open(home) as opened:
        set_required(opened.database, NAME, 5.0, "slow breaker")
    answer = json.loads(run("cct", NAME, "--alpha", "0.9", "--json")[1])
    assert answer["required_s"] == 5.0
    assert (answer["verdict"] == "fail") == (answer["duration_s"] is not None)
    assert "verdict" in run("cct", NAME, "--alpha", "0.9", "--csv", "-")[1].splitlines()[0]
    code, out, _ = run("cct", NAME, "nobody", "--alpha", "0.9", "--required-ms", "120", "--json")
    judged, silent = json.loads(out)
    assert code == 3 and silent["verdict"] is None and set(judged) == set(silent), "all answers have the same keys"
    assert run("cct", NAME, "--alpha", "0.9", "--required-ms", "0")[0] == 2, "no protection needs no time"


def test_asking_as_a_cold_process_loads_nothing_heavy(home) -> None:
    with Home.open(home) as opened:
        opened.deploy(NAME, 1, reason="x")
    code = (
        "import sys, cli\n"
        f"sys.argv = ['cct-zoo', 'cct', {NAME!r}, '--alpha', '0.9']\n"
        "cli.main()\n"
        "print('loaded:', *[name for name in "
        "('torch', 'pandapower', 'mlflow', 'numba', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_the_environment_names_the_registry(tmp_path, run, monkeypatch) -> None:
    other = f"sqlite:///{tmp_path / 'other.db'}"
    monkeypatch.setenv("CCT_ZOO_REGISTRY", other)
    monkeypatch.setenv("CCT_ZOO_HOME", str(tmp_path / "home"))
    open_database(tmp_path, other).close()
    assert json.loads(run("heads", "--json")[1]) == []
    assert not (tmp_path / "home" / "registry.db").exists()


def test_an_older_version_that_answers_is_never_taken_for_the_newer_one(home: Path, run) -> None:
    assert run("deploy", NAME, "--head", "1", "--reason", "first")[0] == 0
    assert run("cct", f"{NAME}@1", "--alpha", "0.9")[0] == 0
    assert run("cct", NAME, "--alpha", "0.9")[2] == ""
    code, _, error = run("cct", f"{NAME}@7", "--alpha", "0.9")
    assert code == 3 and f"{NAME}@7" in error
    with Home.open(home) as opened:
        opened.register([contingency(NAME, 0.25)])  # other physics under the same name: version 2
    code, _, error = run("cct", f"{NAME}@2", "--alpha", "0.9")
    assert code == 3 and "version 1 answers" in error
    code, out, error = run("cct", NAME, "--alpha", "0.9")
    assert code == 0 and "version 1" in out
    assert "version 2 is registered" in error
