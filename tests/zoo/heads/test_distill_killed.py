"""`cct-zoo distill` killed at random moments: a head is there whole or not at all."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from click.testing import CliRunner

from cli import zoo
from registry.home import Home
from registry.store import heads
from registry.upkeep import verify

ROOT = Path(__file__).parents[3]
NAME = "ieee9-mech-g2-restore"
VICTIMS = """
import os, sys
import cli, contingencies.ode, zoo.commands.heads, zoo.heads.distill
for _ in sys.stdin:
    victim = os.fork()
    if not victim:
        sys.exit(cli.main())
    print(victim, flush=True)
    os.waitpid(victim, 0)
    print("gone", flush=True)
"""  # what takes seconds to import is imported once; each line that is read starts the command anew


def test_a_killed_distillation_leaves_no_trace_and_the_next_one_succeeds(tmp_path):
    def run(*command: str) -> None:
        done = CliRunner(catch_exceptions=False).invoke(zoo, list(command))
        assert done.exit_code == 0, done.output

    run("register-contingency", NAME, "--home", str(tmp_path))
    distill = ["distill", NAME, "--source", "reference", "--strict", "1", "--home", str(tmp_path)]
    moments = random.Random(3)
    with subprocess.Popen(
        [sys.executable, "-c", VICTIMS, *distill],
        cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as starter:  # fmt: skip
        for _ in range(3):
            print("go", file=starter.stdin, flush=True)
            victim = int(starter.stdout.readline())
            time.sleep(moments.uniform(0.05, 3.0))
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            while starter.stdout.readline() != "gone\n":  # one that was done before has told what it made
                pass
            with Home.open(tmp_path) as home:
                assert verify(home).problems == []
        starter.stdin.close()
    with Home.open(tmp_path) as home:
        before = len(heads.heads_of(home.database, limit=100))
    run(*distill)
    with Home.open(tmp_path) as home:
        assert len(heads.heads_of(home.database, limit=100)) == before + 1
        assert verify(home).problems == []
