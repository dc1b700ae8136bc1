"""Commands at an operating point: what is given, what is left out, and what is refused."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli import zoo

EXAMPLE = str(Path(__file__).parents[3] / "docs" / "examples" / "ieee30-operating-points.yaml")


def run(tmp_path, *arguments):
    return CliRunner().invoke(zoo, [*arguments, "--home", str(tmp_path)], catch_exceptions=True)


def test_a_simulation_says_at_which_operating_point_it_was_made(tmp_path):
    done = run(tmp_path, "simulate", EXAMPLE, "--alpha", "0.9", "--t-c", "0.5", "--at", "load=1.1", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["at"] == pytest.approx({"load": 1.1, "generation.2": 40.0})


def test_more_load_shortens_the_fault_that_is_survived(tmp_path):
    asked = [
        run(tmp_path, "reference-cct", EXAMPLE, "--alpha", "0.9", "--at", f"load={load}", "--json")
        for load in (1.0, 1.1)
    ]
    light, heavy = (json.loads(done.stdout)["duration_s"] for done in asked)
    assert heavy < light


def test_the_sensitivity_is_the_slope_between_two_points(tmp_path):
    done = run(tmp_path, "sensitivity", EXAMPLE, "--alpha", "0.9", "--at", "load=1.1", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    slope = next(row["s_per_unit"] for row in found["changes"] if row["condition"] == "load")
    beside = [
        json.loads(run(tmp_path, "reference-cct", EXAMPLE, "--alpha", "0.9", "--at", f"load={load}", "--json").stdout)[
            "cct_s"
        ]
        for load in (1.0995, 1.1005)
    ]
    assert slope == pytest.approx((beside[1] - beside[0]) / 1e-3, rel=0.01)
    assert [abs(row["ms"]) for row in found["changes"]] == sorted(
        (abs(r["ms"]) for r in found["changes"]), reverse=True
    )


def test_the_cct_along_a_line_is_drawn_and_tabled(tmp_path):
    along, picture = str(Path(EXAMPLE).parent / "ieee30-line-position.yaml"), tmp_path / "along.png"
    done = run(
        tmp_path, "surface", along, "--alpha", "0.9", "--over", "position", "--points", "3", "--plot", str(picture)
    )
    assert done.exit_code == 0, done.exception or done.output
    assert picture.stat().st_size > 5000 and len(done.stdout.splitlines()) == 5
    middle = json.loads(run(tmp_path, "reference-cct", along, "--alpha", "0.9", "--json").stdout)
    assert f"{1e3 * middle['duration_s']:.3f}" in done.stdout


def test_a_surface_marks_where_every_clearing_instant_is_stable(tmp_path):
    picture = tmp_path / "surface.svg"
    options = ("--alpha", "0.8", "--over", "load,generation.2", "--points", "3", "--plot", str(picture))
    done = run(tmp_path, "surface", EXAMPLE, *options)
    assert done.exit_code == 0, done.exception or done.output
    light, _, heavy = done.stdout.splitlines()[2:]
    assert ">" in light.split() and ">" not in heavy.split()
    assert picture.stat().st_size > 5000
