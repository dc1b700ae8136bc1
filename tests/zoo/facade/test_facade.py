"""What `import zoo` offers, from a description to an answer."""

import numpy as np
import pytest

import zoo
from contingencies.errors import GateError, NotFoundError

NAME = "ieee9-mech-g2-restore"  # three machines: the cheapest contingency with a boundary


@pytest.fixture
def registry(tmp_path):
    with zoo.Registry.open(tmp_path / "home", create=True) as opened:
        yield opened


def test_every_public_name_is_where_it_is_said_to_be():
    assert {name: getattr(zoo, name) is not None for name in zoo.__all__} == dict.fromkeys(zoo.__all__, True)
    assert set(zoo.__all__) == set(zoo._HOMES)
    assert set(zoo.__all__) <= set(dir(zoo))
    with pytest.raises(AttributeError, match="dir"):
        zoo.critical_clearing_time  # noqa: B018


def test_a_fault_cleared_before_its_critical_time_stays_in_step_and_one_cleared_after_does_not():
    answer = zoo.reference_cct(NAME, 0.95)
    assert answer.status == "finite"
    assert answer.cct is not None and answer.duration is not None
    before, after = (zoo.simulate(NAME, 0.95, answer.cct + step) for step in (-1e-3, 1e-3))
    assert before.stable and before.crossing is None
    assert not after.stable and answer.cct < after.crossing < after.operators.window.T
    assert list(after.to_frame().columns) == ["t_s", *(f"delta_{b}_rad" for b in (1, 2, 3)),
                                              *(f"omega_{b}_pu" for b in (1, 2, 3)), "separation_rad"]  # fmt: skip
    assert after.to_frame()["separation_rad"].max() == after.largest_separation[1]


def test_a_boundary_is_a_table_with_a_row_for_each_severity():
    heard = []
    found = zoo.boundary(NAME, [0.1, 0.95], report=lambda *words: heard.append(words))
    assert found.status == ("right-censored", "finite")
    assert np.isnan(found.duration[0]) and found.duration[1] == found.cct[1] - 0.2
    assert heard == [("fast reference", 1, 2), ("fast reference", 2, 2)]
    frame = found.to_frame()
    assert frame["alpha"].tolist() == [0.1, 0.95]
    assert frame["cct_s"][1] == pytest.approx(zoo.reference_cct(NAME, 0.95).cct, abs=1e-9)


def test_figures_show_limit_crossing_and_a_zoom_where_synchronism_is_lost():
    unstable = zoo.simulate(NAME, 1.0, 1.2).plot()
    stable = zoo.simulate(NAME, 0.1, 0.3).plot()
    assert len(unstable.axes) == 6 and len(stable.axes) == 3
    limit, zoomed = unstable.axes[2], unstable.axes[3]
    labels = [line.get_label() for line in limit.lines]
    assert any(label.startswith("limit") for label in labels) and any(label.startswith("reached") for label in labels)
    separation = zoomed.lines[0].get_ydata()
    assert np.pi < separation.max() <= 1.5 * np.pi
    assert zoo.boundary(NAME, [0.9, 1.0]).plot().axes
    assert len(zoo.reference_cct(NAME, 1.0).plot().axes[0].lines) == 4  # before, after, limit, fault


def test_a_family_is_ranked_from_the_most_critical():
    found = zoo.screen("wscc9", zoo.Recipe("line", "remove-line"))
    durations = [answer.duration for answer in found.answers if answer.duration is not None]
    assert durations == sorted(durations)
    frame = found.to_frame(required_ms=200.0)
    assert len(frame) == len(found.answers)
    failing = frame[frame["verdict"] == "fail"]
    assert (failing["duration_s"] < 0.2).all() and len(failing)
    assert found.plot(200.0).axes
    with pytest.raises(NotFoundError, match="no place"):
        zoo.screen("wscc9", zoo.Recipe("line", "remove-line", selection=nowhere()))


def nowhere():
    from contingencies.selection import Selection

    return Selection(kv_min=1e6)


def test_a_head_is_distilled_deployed_and_asked(registry):
    from zoo.heads.distill import HeadSettings

    assert registry.names() == [] and registry.heads() == []
    head = zoo.distill(NAME, settings=HeadSettings(strict=2), registry=registry)
    assert registry.names() == [NAME] == registry.names("ieee9") and registry.names("ieee30") == []
    assert [each.id for each in registry.heads(NAME)] == [head.id] and head.objections == []
    assert registry.deployments() == []
    deployed = zoo.deploy(NAME, reason="first", registry=registry)
    assert deployed.changed and not zoo.deploy(NAME, reason="again", registry=registry).changed
    assert zoo.to_frame(registry.deployments())["head_id"].tolist() == [head.id]
    answers = registry.cct(NAME, np.array([0.1, 0.95])).to_frame()
    truth = zoo.reference_cct(NAME, 0.95)
    assert answers["status"].tolist() == ["right-censored", "finite"]
    assert abs(answers["cct_s"][1] - truth.cct) < answers["error_bound_s"][1]
    assert np.isnan(answers["error_bound_s"][0])
    curve = head.to_frame()
    assert curve["cct_s"].min() == pytest.approx(registry.cct(NAME, 1.0).cct)
    assert len(head.plot().axes) == 2
    with pytest.raises(NotFoundError):
        registry.heads("nobody")


def test_a_head_that_was_never_measured_is_refused_by_the_gate(registry):
    from zoo.heads.distill import HeadSettings

    head = zoo.distill(NAME, settings=HeadSettings(strict=0), registry=registry)
    assert head.objections
    with pytest.raises(GateError):
        zoo.deploy(NAME, reason="hope", registry=registry)


def test_a_surrogate_is_trained_and_compared_with_the_reference(registry):
    heard = []
    trained = zoo.train(
        "es-pinn-chained", NAME, registry=registry, report=lambda stage, *_: heard.append(stage), fraction=0.01, steps=6
    )
    assert {"training", "comparing with the reference ODE"} <= set(heard)
    frame = trained.to_frame()
    assert set(frame["contingency"]) == {NAME} and len(frame) == 50
    assert len(trained.plot().axes) == 2
    learned = zoo.learned_boundary(NAME, [0.9, 0.95, 1.0], trained.checkpoint, "fast", registry)
    assert learned.checkpoint == trained.checkpoint and learned.to_frame()["alpha"].tolist() == [0.9, 0.95, 1.0]
    with pytest.raises(NotFoundError, match="catalogue"):
        zoo.train("es-pin", NAME, registry=registry)


def test_one_answer_is_a_table_of_one_row_with_units():
    frame = zoo.CCTAnswer(0.68, 0.48, "finite", 1e-5, 3, None, 1).to_frame()
    assert frame[["cct_s", "duration_s", "error_bound_s"]].values.tolist() == [[0.68, 0.48, 1e-5]]
    assert frame["status"].tolist() == ["finite"] and frame["head"].tolist() == [3]
