"""Registering contingencies and systems from files: versions, all or nothing, every mistake told at once."""

import json
import os
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_registering_is_idempotent_and_counts_versions(tmp_path, run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = (ROOT / "contingencies/catalogue/ieee9-mech-g2-restore.yaml").read_text()
    file = tmp_path / "mine.yaml"
    file.write_text(shipped.replace("name: ieee9-mech-g2-restore", "name: mine"))
    code, out, _ = run("register-contingency", str(file), "ieee9-mech-g2-restore", "--json")
    first = json.loads(out)
    assert code == 0 and [(r["contingency"], r["version"], r["created"]) for r in first] == [
        ("mine", 1, True),
        ("ieee9-mech-g2-restore", 1, True),
    ]
    assert (tmp_path / ".cct-zoo" / "registry.db").is_file()
    assert not json.loads(run("register-contingency", str(file), "--json")[1])[0]["created"]
    file.write_text(file.read_text().replace("coefficient: 1.25", "coefficient: 1.3"))
    assert json.loads(run("register-contingency", str(file), "--json")[1])[0]["version"] == 2
    listed = {e["contingency"]: e for e in json.loads(run("contingencies", "--json")[1])}
    assert listed["mine"]["version"] == 2 and listed["mine"]["source"] == "registered"
    assert listed["ieee14-line-4-5-remove"]["source"] == "shipped"
    shown = json.loads(run("show", "mine@1", "--json")[1])
    assert shown["version"] == 1 and shown["spec"]["fault"]["coefficient"] == 1.25
    code, out, _ = run("reference-cct", "mine@1", "--alpha", "0.9", "--json")
    assert code == 0 and json.loads(out)["status"] == "finite"


def test_a_directory_is_registered_as_a_whole_or_not_at_all(tmp_path, run) -> None:
    source = ROOT / "contingencies/catalogue/ieee9-mech-g2-restore.yaml"
    folder = tmp_path / "specs" / "below"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        (folder / f"{name}.yaml").write_text(source.read_text().replace("ieee9-mech-g2-restore", name))
    bad = folder / "zzz.yml"
    for wrong, complaint in (("name: [", "YAML"), (source.read_text().replace("generator: 2", "generator: 5"), "5")):
        bad.write_text(wrong.replace("ieee9-mech-g2-restore", "three"))
        code, _, err = run("register-contingency", str(tmp_path / "specs"), "--home", str(tmp_path / "home"))
        assert code == 5 and complaint in err
        assert not (tmp_path / "home" / "registry.db").exists()
    bad.unlink()
    code, out, _ = run("register-contingency", str(tmp_path / "specs"), "--home", str(tmp_path / "home"))
    assert code == 0 and out.count("registered") == 2


def test_the_mistakes_of_all_files_are_told_at_once_and_nothing_is_registered(tmp_path, run) -> None:
    shipped = (ROOT / "contingencies/catalogue/ieee9-mech-g2-restore.yaml").read_text()
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "good.yaml").write_text(shipped)
    (folder / "one.yaml").write_text("name: [")
    (folder / "two.yaml").write_text(
        shipped.replace("coefficient: 1.25", "coefficient: 0").replace("t_f: 0.2", "t_f: x")
    )
    arguments = ("register-contingency", str(folder), "no-such", "nowhere.yaml", "--home", str(tmp_path / "home"))
    code, out, err = run(*arguments)
    lines = err.splitlines()
    assert code == 5 and out == "" and all(line.startswith("Error: ") for line in lines)
    assert [next(w for w in ("one.yaml:", "two.yaml:", "no-such", "nowhere") if w in line) for line in lines] == [
        "one.yaml:", "two.yaml:", "two.yaml:", "no-such", "nowhere",
    ]  # fmt: skip
    assert run("register-contingency", "no-such", "nowhere.yaml", "--home", str(tmp_path / "home"))[0] == 3
    assert not (tmp_path / "home" / "registry.db").exists()


def test_what_does_not_fit_its_network_is_told_for_all_files_with_its_line(tmp_path, run) -> None:
    text = (
        "name: {}\nsystem: {}\nfault:\n  kind: bus\n  bus: {}\n  shunt_pu: {{b: -9}}\nclearing: {{action: restore}}\n"
    )
    (tmp_path / "a.yaml").write_text(text.format("a", "ieee9", 77))
    (tmp_path / "b.yaml").write_text(text.format("b", "ieee9", 78))
    (tmp_path / "c.yaml").write_text(text.format("c", "sys.yaml", 1) + "---\n" + text.format("d", "sys.yaml", 2))
    (tmp_path / "sys.yaml").write_text(
        "name: sys\nnetwork: {pandapower: case9}\nmachines:\n  base: system\n  units:\n"
        "    - {bus: 1, H: 5.0, x_d: 0.1}\nprovenance: made up\n"
    )
    code, _, err = run("register-contingency", str(tmp_path), "--home", str(tmp_path / "home"))
    sentences = [line for line in err.splitlines() if line.startswith("Error: ")]  # a slow machine reports progress
    first, second, third = sentences
    assert code == 5 and "a.yaml:5: fault.bus: bus 77" in first and "b.yaml:5: fault.bus: bus 78" in second
    assert "sys.yaml:5: machines.units: machine data missing" in third, "the system is complained of once"


def test_a_users_own_system_is_registered_with_its_network_and_the_home_stands_alone(tmp_path, run) -> None:
    systems = ROOT / "contingencies/systems"
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(systems / "wscc9.m", folder / "net.m")
    text = (systems / "wscc9.yaml").read_text()
    (folder / "own.yaml").write_text(text.replace("name: wscc9", "name: own").replace("wscc9.m", "net.m"))
    (folder / "fault.yaml").write_text(
        "name: own-fault\nsystem: own.yaml\nfault: {kind: bus, bus: 7, shunt_pu: {b: -1000.0}}\n"
        "clearing: {action: restore}\n"
    )
    home = str(tmp_path / "home")
    code, _, err = run("register-contingency", str(folder), "--home", home)
    assert code == 0, err
    shown = json.loads(run("show", str(folder / "own.yaml"), "--json", "--home", home)[1])
    assert (shown["system"], shown["buses"], shown["lines"], shown["base_mva"]) == ("own", 9, 6, 100.0)
    assert len(shown["machines"]) == 3 and shown["provenance"] and shown["network"] == {"file": "net.m"}
    assert json.loads(run("show", "own", "--json", "--home", home)[1]) == shown, "a registered system by its name"
    assert "provenance: " in run("show", str(folder / "own.yaml"))[1]
    shutil.rmtree(folder)
    os.rename(home, tmp_path / "moved")
    code, out, err = run("reference-cct", "own-fault", "--alpha", "1", "--json", "--home", str(tmp_path / "moved"))
    assert code == 0 and json.loads(out)["contingency"] == "own-fault", err
    assert run("verify", "--home", str(tmp_path / "moved"))[0] == 0
