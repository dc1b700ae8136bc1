"""The boundary and certify commands, on a stored chain of windows whose networks say nothing: a Taylor integrator."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from cli import zoo
from contingencies.errors import NotFoundError, UsageError
from contingencies.library import load_contingency
from contingencies.ode import fast_trajectory
from contingencies.trajectories import Trajectory
from espinn_moe.boundary import learned_boundary
from espinn_moe.margins import HARD
from espinn_moe.surrogate import Surrogate
from registry.home import Home
from tests.cases import operators_of
from zoo.judging.assessment import assess_boundary
from zoo.judging.certificates import certificate_metrics
from zoo.judging.figures import plot_learned_boundary, plot_trajectories
from zoo.lookup import find_registered
from zoo.plots import save_figure
from zoo.surrogates import checkpoints
from zoo.surrogates.catalogue import create_model

torch.set_num_threads(1)
NAME, OTHER = "ieee9-mech-g2-restore", "ieee14-line-4-5-remove"
SEVERITIES = ("--alpha", "0.5", "--alpha", "0.82:0.98:0.04", "--reference", "fast")


def taylor_chain() -> Surrogate:
    surrogate = create_model("es-pinn-chained", [operators_of(NAME)], window_s=0.04)
    with torch.no_grad():
        for parameter in surrogate.parameters():
            parameter.zero_()
    return surrogate


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("home")
    contingency, surrogate = load_contingency(NAME), taylor_chain()
    with Home.open(path) as opened:
        row = find_registered(opened, NAME)
        find_registered(opened, OTHER)
        content = checkpoints.to_bytes("es-pinn-chained", surrogate, [contingency])
        opened.add_checkpoint(content, surrogate.n_parameters, checkpoints.KIND, {row.id: 0})
    return path


def run(*arguments: str):
    return CliRunner(catch_exceptions=False).invoke(zoo, list(arguments), standalone_mode=False)


def test_no_panel_of_a_boundary_figure_covers_another():
    surrogate = taylor_chain()
    found = assess_boundary(surrogate, np.linspace(0.82, 0.98, 5), reference="fast")
    assert found.sensitivity.valid.any()
    figure = plot_learned_boundary(found, (np.array([0.0, 1.0]), np.array([0.3, 1.2]), np.array([[-1, -1], [-1, 1]])))
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert len(boxes) == 5  # margins with their colours, boundaries, errors, sensitivities
    for k, box in enumerate(boxes):
        assert not box.count_overlaps(boxes[k + 1 :])


def test_the_boundary_of_a_checkpoint_stands_beside_the_reference(home, tmp_path):
    figure, table = tmp_path / "boundary.png", tmp_path / "boundary.csv"
    result = run(
        "boundary", NAME, *SEVERITIES, "--home", str(home), "--json", "--plot", str(figure), "--csv", str(table)
    )
    made = json.loads(result.stdout)
    assert made["model"] == "es-pinn-chained" and made["margin"]["kind"] == "hard"
    assert made["cct_errors"]["finite"] == 5 and 1e-3 < made["cct_errors"]["maximum"] < 1e-2
    assert [row["status"] for row in made["rows"]] == ["right-censored"] + ["finite"] * 5
    assert made["rows"][0]["excluded"] == "censored" and made["rows"][1]["excluded"] == "censored-neighbour"
    assert made["implicit_against_reference_ode"]["correlation"] > 0.99
    assert made["error_split"]["rows"] == 5 and 1e-4 < made["error_split"]["smoothing"] < 5e-3
    assert figure.stat().st_size > 10_000
    with table.open() as file:
        assert [float(row["alpha"]) for row in csv.DictReader(file)] == [0.5, 0.82, 0.86, 0.9, 0.94, 0.98]


def test_people_get_a_table_and_sentences(home):
    text = run("boundary", NAME, *SEVERITIES, "--home", str(home), "--margin", "smooth").stdout
    assert "smooth margin" in text and "right-censored" in text and "Split: smoothing" in text
    text = run("certify", NAME, *SEVERITIES, "--home", str(home)).stdout
    assert "the bound covers 5 of 5 rows" in text
    assert "The paper's bound is VACUOUS on 5 of 5 rows." in text


def test_the_full_network_stands_beside_both(home, tmp_path):
    table = tmp_path / "boundary.csv"
    options = ("--alpha", "0.5", "--alpha", "0.9", "--reference", "fast", "--dae", "--home", str(home))
    text = run("boundary", NAME, *options, "--csv", str(table)).stdout
    assert "Full network (DAE):" in text and "minus ODE" in text
    with table.open() as file:
        low, high = csv.DictReader(file)
    assert low["dae_status"] == "right-censored" and low["dae_cct_s"] == ""
    assert float(high["dae_cct_s"]) == pytest.approx(float(high["true_cct_s"]), abs=1e-4)


def test_certificates_are_plain_values_with_a_figure(home, tmp_path):
    figure = tmp_path / "certificates.svg"
    made = json.loads(run("certify", NAME, *SEVERITIES, "--home", str(home), "--json", "--plot", str(figure)).stdout)
    assert made["rows"] == made["bound_covers"] == 5
    for row in made["certificates"]:
        assert abs(row["error"]) <= row["bound"]
        assert row["estimate"] == pytest.approx(row["error"], rel=0.02)
    assert figure.read_text().startswith("<?xml")


def test_a_contingency_without_checkpoint_and_an_impossible_severity_are_refused(home):
    with pytest.raises(NotFoundError, match="checkpoint"):
        raise run("boundary", OTHER, "--home", str(home)).exception
    with pytest.raises(UsageError, match="severity"):
        raise run("certify", NAME, "--alpha", "-1", "--home", str(home)).exception
    with pytest.raises(NotFoundError, match="checkpoint"):
        raise run("boundary", NAME, "--checkpoint", "99", "--home", str(home)).exception


def test_a_surrogate_s_own_certificate_needs_no_reference():
    surrogate = taylor_chain()
    found = certificate_metrics(surrogate, learned_boundary(surrogate, np.array([0.5, 0.9]), 0, HARD))
    assert found["certified_severities"] == 1.0
    assert 0.0 < found["estimated_max_s"] <= found["certified_max_s"] < 3e-2
    assert certificate_metrics(surrogate, learned_boundary(surrogate, np.array([0.5]), 0, HARD)) == {}


def test_trajectories_of_a_surrogate_are_drawn_beside_the_truth(tmp_path):
    ops, alpha, t_c = operators_of(NAME), 0.93, 0.7
    truth = fast_trajectory(ops, alpha, t_c)
    path = tmp_path / "trajectory.png"
    learned = Trajectory(truth.t, truth.delta + 0.1, truth.omega)
    save_figure(plot_trajectories(ops, learned, {"reduced ODE": truth}, alpha, t_c), path)
    assert path.stat().st_size > 10_000
