"""Artifacts: content-addressed, atomic, verified on load, and cleared up with care."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from contingencies.errors import IntegrityError
from registry.artifacts import Artifacts
from registry.query import Registry
from registry.schema import DeploymentRow, HeadRow
from registry.store import heads, maintenance, runs
from registry.upkeep import collect_garbage, verify
from tests.registry.makers import Zoo, contingency, head, measured, own_system_contingency


@pytest.fixture
def store(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path)


def test_content_is_stored_once_under_its_digest(store: Artifacts) -> None:
    digest = store.put(b"abc")
    assert digest == store.put(b"abc")
    assert store.get(digest) == b"abc"
    assert [file.digest for file in store.files()] == [digest]


@pytest.mark.parametrize("bit", [0, 7, 8 * 50 + 3, 8 * 99 + 7])
def test_one_flipped_bit_is_noticed(store: Artifacts, bit: int) -> None:
    digest = store.put(bytes(100))
    path = store.path(digest)
    damaged = bytearray(path.read_bytes())
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)
    with pytest.raises(IntegrityError, match="damaged") as raised:
        store.get(digest)
    assert raised.value.exit_code == 7


def test_missing_truncated_and_lengthened_files_are_noticed(store: Artifacts) -> None:
    digest = store.put(b"content")
    path = store.path(digest)
    for wrong in (b"", b"conten", b"content\n"):
        path.write_bytes(wrong)
        with pytest.raises(IntegrityError):
            store.get(digest)
    path.unlink()
    with pytest.raises(IntegrityError, match="missing"):
        store.get(digest)


def test_a_symbolic_link_is_refused_even_to_the_right_content(store: Artifacts, tmp_path: Path) -> None:
    digest = store.put(b"content")
    path = store.path(digest)
    path.rename(tmp_path / "target")
    path.symlink_to(tmp_path / "target")
    with pytest.raises(IntegrityError):
        store.get(digest)
    path.unlink()
    path.parent.rename(tmp_path / "folder")
    (tmp_path / "target").rename(tmp_path / "folder" / path.name)
    path.parent.symlink_to(tmp_path / "folder")
    with pytest.raises(IntegrityError, match="symbolic link"):
        store.get(digest)


def test_a_folder_or_a_pipe_in_place_of_a_file_is_refused(store: Artifacts) -> None:
    digest = store.put(b"content")
    path = store.path(digest)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(IntegrityError):
        store.get(digest)
    path.unlink()
    path.mkdir()
    with pytest.raises(IntegrityError):
        store.get(digest)


@pytest.mark.parametrize(
    "digest",
    ["", "../../../etc/passwd", "/etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n", "../" + "a" * 61, "\x00" * 64],
)
def test_a_digest_that_points_outside_the_store_is_refused(store: Artifacts, digest: str) -> None:
    with pytest.raises(IntegrityError, match="not a SHA-256 digest"):
        store.get(digest)


@given(st.binary(max_size=1000))
def test_whatever_is_put_comes_back(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    store = Artifacts(tmp_path_factory.getbasetemp())
    assert store.get(store.put(content)) == content


def test_storing_content_again_heals_a_damaged_file(store: Artifacts) -> None:
    digest = store.put(b"content")
    store.path(digest).write_bytes(b"contenT")
    store.put(b"content")
    assert store.get(digest) == b"content"


def test_a_write_that_fails_leaves_no_temporary_file(store: Artifacts, monkeypatch) -> None:
    def fail(*paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        store.put(b"content")
    assert list(store.files()) == []


# --- verify -----------------------------------------------------------------------------------


def _furnished(zoo: Zoo):
    home, row, made = zoo.with_head()
    home.register([own_system_contingency()])
    checkpoint = home.add_checkpoint(b"weights", 10, "kind", {row.id: 0})
    home.deploy("fault-a", reason="x")
    return home, row, made, checkpoint


def test_an_untouched_home_verifies(zoo: Zoo) -> None:
    home, *_ = _furnished(zoo)
    verdict = verify(home)
    assert verdict.problems == []
    assert (verdict.contingencies, verdict.heads, verdict.deployments, verdict.files) == (2, 1, 1, 3)
    assert verdict.unreferenced == 0


def test_verify_names_every_damaged_file(zoo: Zoo) -> None:
    home, _, made, checkpoint = _furnished(zoo)
    home.artifacts.path(made.digest).write_bytes(b"?")
    home.artifacts.path(checkpoint.digest).unlink()
    problems = verify(home).problems
    assert len(problems) == 2
    assert any(f"head {made.id}" in p for p in problems) and any(f"checkpoint {checkpoint.id}" in p for p in problems)


def test_verify_notices_a_row_whose_digest_points_outside_the_store(zoo: Zoo) -> None:
    home, _, made, _ = _furnished(zoo)
    with home.database.write() as session:
        session.get_one(HeadRow, made.id).digest = "../../../../etc/passwd"
    assert any("not a SHA-256 digest" in problem for problem in verify(home).problems)
    with pytest.raises(IntegrityError):
        home.load_head(heads.get(home.database, made.id))


def test_verify_notices_a_head_that_belongs_to_another_row(zoo: Zoo) -> None:
    home, _row, made, _ = _furnished(zoo)
    with home.database.write() as session:
        session.get_one(HeadRow, made.id).severity_high = 2.0
    assert any("not what its row says" in problem for problem in verify(home).problems)


ALTERATIONS = {
    "systems": "name = 'ieee39'",
    "contingencies": "spec_json = spec_json || ' '",
    "datasets": "fraction = 0.5",
    "runs": "seed = 8",
    "run_members": "dataset_id = NULL",
    "checkpoints": "parameters = 11",
    "checkpoint_members": "expert = 3",
    "heads": "strict_mae_s = 1e-9",
    "deployments": "forced = NOT forced",
}


@pytest.mark.parametrize("table", ALTERATIONS)
def test_verify_notices_a_value_that_was_altered_behind_its_back(zoo: Zoo, table: str) -> None:
    home, row, *_ = _furnished(zoo)
    dataset = runs.add_dataset(home.database, row.id, "a" * 64, {}, 0.2, 7)
    settings = {"config": {}, "seed": 1, "fraction": 1, "code_version": ""}
    runs.start_run(home.database, "moe", "m", [(row.id, dataset.id)], **settings)
    assert verify(home).problems == []
    with home.database.engine.begin() as connection:
        connection.execute(text(f"UPDATE {table} SET {ALTERATIONS[table]}"))
    problems = verify(home).problems
    assert problems and all(f"of {table} is not what was written" in problem for problem in problems)


def test_a_head_whose_row_points_to_another_contingencys_file_does_not_answer(zoo: Zoo) -> None:
    home, _, made, _ = _furnished(zoo)
    other = home.add_head(home.register([contingency("fault-b", 0.3)])[0].row, head(0.9), measured())
    with home.database.write() as session:  # with a digest of its own, as a clever forger would
        session.get_one(HeadRow, made.id).digest = other.digest
    with Registry.open(zoo.path, zoo.url) as asked, pytest.raises(IntegrityError, match="another contingency"):
        asked.cct("fault-a", 0.9)
    assert any("another contingency" in problem for problem in verify(home).problems)


def test_a_deployment_that_points_to_another_contingencys_head_does_not_answer(zoo: Zoo) -> None:
    home, *_ = _furnished(zoo)
    other = home.add_head(home.register([contingency("fault-b", 0.3)])[0].row, head(0.9), measured())
    with home.database.write() as session:
        session.get_one(DeploymentRow, 1).head_id = other.id
    with Registry.open(zoo.path, zoo.url) as asked, pytest.raises(IntegrityError, match="uses a head of 'fault-b'"):
        asked.cct("fault-a", 0.9)
    assert any("uses a head of fault-b" in problem for problem in verify(home).problems)


# --- gc ---------------------------------------------------------------------------------------


def test_gc_is_a_dry_run_unless_told_otherwise(zoo: Zoo) -> None:
    home, *_ = _furnished(zoo)
    orphan = home.artifacts.put(b"nobody needs me")
    garbage = collect_garbage(home, delete=False, grace_s=0)
    assert [file.digest for file in garbage.files] == [orphan] and not garbage.deleted
    assert home.artifacts.get(orphan)
    collect_garbage(home, delete=True, grace_s=0)
    with pytest.raises(IntegrityError, match="missing"):
        home.artifacts.get(orphan)
    assert verify(home).problems == []


def test_gc_spares_young_files_and_clears_up_after_killed_writers(zoo: Zoo) -> None:
    home, *_ = _furnished(zoo)
    home.artifacts.put(b"about to be referred to")
    torn = home.artifacts.root / "ab" / ".torn.tmp"
    torn.parent.mkdir(exist_ok=True)
    torn.write_bytes(b"half")
    assert collect_garbage(home, delete=True).files == []
    os.utime(torn, (0, 0))
    assert [file.path for file in collect_garbage(home, delete=True).files] == [torn]
    assert not torn.exists()


def test_gc_spares_a_file_that_is_referred_to_again_after_it_was_listed(zoo: Zoo, monkeypatch) -> None:
    home, row, *_ = _furnished(zoo)
    weights = b"weights that were given up"
    orphan = home.artifacts.put(weights)
    os.utime(home.artifacts.path(orphan), (0, 0))
    listed = type(home.artifacts).files

    def files(store: Artifacts):
        found = list(listed(store))
        home.add_checkpoint(weights, 10, "kind", {row.id: 0})  # meanwhile
        os.utime(store.path(orphan), (0, 0))
        return found

    monkeypatch.setattr(type(home.artifacts), "files", files)
    assert collect_garbage(home, delete=True).files == []
    assert home.artifacts.get(orphan) == weights


def test_gc_spares_a_file_that_became_young_after_it_was_listed(zoo: Zoo, monkeypatch) -> None:
    home, *_ = _furnished(zoo)
    orphan = home.artifacts.put(b"somebody is about to refer to me")
    os.utime(home.artifacts.path(orphan), (0, 0))
    referred_to = maintenance.references

    def references(*arguments, **options):
        os.utime(home.artifacts.path(orphan))
        return referred_to(*arguments, **options)

    file = next(f for f in home.artifacts.files() if f.digest == orphan)
    monkeypatch.setattr(type(home.artifacts), "files", lambda store: [file])
    monkeypatch.setattr(maintenance, "references", references)
    assert collect_garbage(home, delete=True).files == []
    assert home.artifacts.get(orphan)


def test_content_that_is_stored_again_is_young_again(store: Artifacts) -> None:
    digest = store.put(b"content")
    os.utime(store.path(digest), (0, 0))
    store.put(b"content")
    assert next(iter(store.files())).age_s < 60


def test_gc_never_removes_what_a_deployment_or_its_history_needs(zoo: Zoo) -> None:
    home, row, deployed_once, _ = _furnished(zoo)
    deployed_now = home.add_head(row, head(0.8), measured())
    never = home.add_head(row, head(0.85), measured())
    newest = home.add_head(row, head(0.9), measured())
    lonely = home.add_head(home.register([contingency("fault-b", 0.3)])[0].row, head(0.6), measured())
    home.deploy("fault-a", deployed_now.id, reason="x")
    assert collect_garbage(home, delete=False, heads=True, grace_s=0).heads == [never.id]
    garbage = collect_garbage(home, delete=True, heads=True, grace_s=0)
    assert garbage.heads == [never.id] and [file.digest for file in garbage.files] == [never.digest]
    left = {row.id for row in heads.heads_of(home.database)}
    assert left == {deployed_once.id, deployed_now.id, newest.id, lonely.id}
    assert home.rollback("fault-a").head_id == deployed_once.id
    assert verify(home).problems == []
    assert runs.default_checkpoint(home.database, row.id).digest
