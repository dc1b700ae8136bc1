"""The commands that take over PSS/E files, as a user meets them."""

from pathlib import Path

import pytest

from tests.zoo.commands.test_simulate import run, run_json

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
RAW, DYR, CON = (EXAMPLES / f"coast9.{suffix}" for suffix in ("raw", "dyr", "con"))


def test_an_import_reports_balance_machines_and_what_was_left_out(tmp_path):
    report = run_json("import", RAW, DYR, "--output", tmp_path)
    assert report["mismatch_mva"] < 0.1
    assert (report["version"], report["frequency_hz"], report["machines"]) == (33, 50.0, 3)
    assert report["static_units"] == [[3, "W"]]
    assert sorted(report["written"]) == ["coast9.dyr", "coast9.raw", "coast9.yaml"]
    assert any("SEXS" in note for note in report["notes"])
    assert report["warnings"] == []
    code, output, _ = run("import", RAW, DYR, "--output", tmp_path, "--name", "other")
    assert code == 0
    assert "stored state: largest mismatch" in output
    assert "system file:" in output


def test_an_import_without_machines_says_what_is_missing(tmp_path):
    code, output, _ = run("import", RAW, "--output", tmp_path)
    assert code == 0
    assert "machines: none given; add H of every unit" in output


def test_a_list_is_registered_and_answered(tmp_path):
    run("import", RAW, DYR, "--output", tmp_path)
    out = tmp_path / "list.yaml"
    report = run_json("import-contingencies", CON, "--system", tmp_path / "coast9.yaml", "--output", out)
    assert report["members"] == ["coast9-north-east-1", "coast9-city-corridor", "coast9-west-unit"]
    assert [item["place"] for item in report["left_out"]] == ["coast9-east-unit-2"]
    home = ("--home", tmp_path / "home")
    assert run("register-contingency", out, *home)[0] == 0
    answer = run_json("reference-cct", "coast9-west-unit", "--alpha", 1, *home)
    assert answer["status"] == "finite"
    code, _, error = run("train", "es-pinn-chained", "coast9-west-unit", "--steps", 1, *home)
    assert code == 2
    assert "trips a generator" in error


def test_a_list_for_another_network_is_an_error_and_writes_nothing(tmp_path):
    out = tmp_path / "list.yaml"
    for options in ((), ("--json",)):
        code, output, error = run("import-contingencies", CON, "--system", "wscc9", "--output", out, *options)
        assert code == 5
        assert "no contingency of the list fits system wscc9; give --system the network that the list is for" in error
        assert "wscc9-west-unit" in output  # with the reason
    assert not out.exists()


def test_a_system_file_is_no_contingency_and_the_other_way_round(tmp_path):
    system, contingency = EXAMPLES / "island5.yaml", EXAMPLES / "island5-bus-2.yaml"
    code, _, error = run("register-contingency", system, "--home", tmp_path)
    assert code == 5
    assert error.count("\n") == 0 and "describes a system, not a contingency; write a contingency" in error
    code, _, error = run("screen", contingency, "--fault", "bus", "--clearing", "restore")
    assert code == 5
    assert error.count("\n") == 0 and "describes a contingency, not a system; give the file" in error


@pytest.mark.parametrize(("arguments", "code", "sentence"), [
    (("import", "gone.raw", "--output", "x"), 3, "gone.raw: no such file"),
    (("import", RAW, DYR, "--output", "system.yaml"), 2, "names a file; give a directory"),
    (("import", DYR, "--output", "x"), 2, "does not end in .raw"),
    (("import-contingencies", "gone.con", "--system", "ieee39", "--output", "x.yaml"), 3, "gone.con: no such file"),
    (("import-contingencies", CON, "--system", "nowhere", "--output", "x.yaml"), 3, "is not shipped"),
    (("screen", "ieee39", "--fault", "bus", "--clearing", "restore", "--rating-min", 5), 2, "a rating selects lines"),
    (("screen", "ieee39", "--fault", "bus", "--clearing", "restore", "--include", "@gone"), 3, "gone: no such file"),
    (("screen", DYR, "--fault", "line", "--clearing", "remove-line"), 2, "not a system file (.yaml)"),
    (("pipeline", "--system", "ieee39", "--area", 2), 2, "--area describes a family"),
])  # fmt: skip
def test_mistakes_end_with_one_sentence_and_a_code(arguments, code, sentence):
    ended, _, error = run(*arguments)
    assert ended == code
    assert sentence in error


def test_places_may_be_listed_in_a_file(tmp_path):
    (tmp_path / "places.txt").write_text("# the west\nline-16-17-*\n\nline-3-4-*\n")
    family = ("generate-contingencies", "ieee39", "--fault", "line", "--clearing", "remove-line", "--position", 0.5)
    report = run_json(*family, "--output", tmp_path / "n-1", "--include", f"@{tmp_path / 'places.txt'}")
    assert report["members"] == ["ieee39-line-3-4-remove", "ieee39-line-16-17-remove"]
