"""Flipped bytes of a registry: noticed, or without effect; never another answer without a word."""

import random
import shutil

from benchmarks.campaigns.flips import contents, noticed
from benchmarks.campaigns.kills import furnish


def test_a_flipped_byte_is_noticed_or_changes_nothing(tmp_path) -> None:
    whole, draw = tmp_path / "home", random.Random(7)
    furnish(whole, None)
    before, content = contents(whole), (whole / "registry.db").read_bytes()
    written = [place for place, byte in enumerate(content) if byte]
    seen = 0
    for number in range(12):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(whole, copy)
        damaged = bytearray(content)
        damaged[draw.choice(written)] ^= 1 << draw.randrange(8)
        (copy / "registry.db").write_bytes(damaged)
        found = noticed(copy)
        seen += found
        assert found or contents(copy) == before
    assert seen >= 6


def test_a_time_that_is_none_any_more_is_damage_and_no_traceback(tmp_path) -> None:
    furnish(tmp_path, None)
    path = tmp_path / "registry.db"
    content = path.read_bytes()
    year = content[content.index(b"fault-a") :].index(b"20") + content.index(b"fault-a")
    path.write_bytes(content[:year] + b"2x" + content[year + 2 :])
    assert noticed(tmp_path)
