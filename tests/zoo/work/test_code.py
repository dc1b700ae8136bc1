"""The digest of the code that decides a result."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from zoo.work.code import HEADS, MEASURING, PAPER, STUDIES, TRAINING, code_digest, code_version

ROOT = Path(__file__).parents[3]
PRINT = "import sys\nfrom zoo.work.code import *\nprint(code_digest({packages}), 'torch' in sys.modules)"


def digest_of(copy, packages="TRAINING"):
    code = PRINT.format(packages=packages)
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy")
    for package in ("contingencies", "espinn_moe", "registry", "zoo"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_each_kind_of_result_has_its_own_digest_and_records_show_it():
    assert len({code_digest(parts) for parts in (TRAINING, HEADS, STUDIES, PAPER, MEASURING)}) == 5
    assert code_version().endswith(f"+{code_digest()}")


def test_a_changed_swing_equation_is_other_code_and_a_changed_command_is_not(copy):
    first = digest_of(copy)
    assert first == [code_digest(), "False"], "the same sources elsewhere are the same code, and no torch is loaded"
    (copy / "zoo" / "commands" / "train.py").write_text("changed = True\n")
    assert digest_of(copy) == first
    with open(copy / "contingencies" / "swing.py", "a") as file:
        file.write("\nCHANGED = True\n")
    assert digest_of(copy) != first


def test_a_measurement_depends_on_its_own_module_and_not_on_how_numbers_are_shown(copy):
    own = '(*MEASURING, "zoo.paper.rollouts")'
    first = digest_of(copy, own)
    for shown in ("tables.py", "case30_accuracy.py"):
        with open(copy / "zoo" / "paper" / shown, "a") as file:
            file.write("\nCHANGED = True\n")
    assert digest_of(copy, own) == first
    for deciding in ("rollouts.py", "members.py"):
        with open(copy / "zoo" / "paper" / deciding, "a") as file:
            file.write("\nCHANGED = True\n")
        assert digest_of(copy, own) != first
        first = digest_of(copy, own)
