"""The digest of the code that decides a result."""

import shutil
import subprocess
import sys
from pathlib import Path

from zoo.work.code import HEADS, PAPER, STUDIES, TRAINING, code_digest, code_version

ROOT = Path(__file__).parents[3]
PRINT = "import sys\nfrom zoo.work.code import code_digest\nprint(code_digest(), 'torch' in sys.modules)"


def digest_of(copy):
    done = subprocess.run([sys.executable, "-c", PRINT], cwd=copy, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_each_kind_of_result_has_its_own_digest_and_records_show_it():
    assert len({code_digest(parts) for parts in (TRAINING, HEADS, STUDIES, PAPER)}) == 4
    assert code_version().endswith(f"+{code_digest()}")


def test_a_changed_swing_equation_is_other_code_and_a_changed_command_is_not(tmp_path):
    for package in ("contingencies", "espinn_moe", "registry", "zoo"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    first = digest_of(tmp_path)
    assert first == [code_digest(), "False"], "the same sources elsewhere are the same code, and no torch is loaded"
    (tmp_path / "zoo" / "commands" / "train.py").write_text("changed = True\n")
    assert digest_of(tmp_path) == first
    with open(tmp_path / "contingencies" / "swing.py", "a") as file:
        file.write("\nCHANGED = True\n")
    assert digest_of(tmp_path) != first
