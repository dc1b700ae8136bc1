"""`cct-zoo distill` killed at random moments: a head is there whole or not at all."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from registry.home import Home
from registry.store import heads
from registry.upkeep import verify

ROOT = Path(__file__).parents[3]
NAME = "ieee9-mech-g2-restore"


def command(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "cli.py"), *arguments, "--home", str(home)]


def test_a_killed_distillation_leaves_no_trace_and_the_next_one_succeeds(tmp_path):
    subprocess.run(command(tmp_path, "register-contingency", NAME), check=True, capture_output=True)
    distill = command(tmp_path, "distill", NAME, "--source", "reference", "--strict", "1")
    moments = random.Random(3)
    for _ in range(3):
        victim = subprocess.Popen(distill, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            victim.wait(timeout=moments.uniform(0.5, 6.0))
        except subprocess.TimeoutExpired:
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
        with Home.open(tmp_path) as home:
            assert verify(home).problems == []
    with Home.open(tmp_path) as home:
        before = len(heads.heads_of(home.database, limit=100))
    subprocess.run(distill, check=True, capture_output=True)
    with Home.open(tmp_path) as home:
        assert len(heads.heads_of(home.database, limit=100)) == before + 1
        assert verify(home).problems == []
