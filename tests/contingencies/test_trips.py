"""Clearing that trips several lines, and generators: the machine is gone, and the others go on without it."""

import numpy as np
import pytest

from contingencies.admittance import bus_admittance, kron_reduction
from contingencies.errors import SpecError, UsageError
from contingencies.ode import fast_trajectory, strict_trajectory
from contingencies.references import reference_cct
from contingencies.reports import describe_operators
from contingencies.sensitivity import margin_gradient
from tests.cases import compile_text, narrowed, write_smib

TEXT = """name: a-trip
system: {system}
fault: {{kind: bus, bus: {bus}, shunt_pu: {{b: -1.0e+4}}}}
clearing: {clearing}
window: {{t_f: 0.2, T: {T}, t_c: [0.21, 1.21]}}
"""


def tripping(folder, clearing, system="ieee39", bus=16, T=2.5):
    return compile_text(folder, TEXT.format(system=system, bus=bus, clearing=clearing, T=T))


def strict_margins(operators, alpha, instants):
    """Margins of clearing instants, rad, each simulated on its own."""
    peaks = [strict_trajectory(operators, alpha, float(t_c)).separation.max() for t_c in instants]
    return np.array(peaks) - operators.max_separation


def direct_reduction(network, removed, tripped):
    """Y_red with the tripped machines never there: y_g = 0 in theory.md eq. (6)."""
    without = network.machine_bus.copy()
    keep = np.setdiff1d(np.arange(network.n_machines), tripped)
    from dataclasses import replace

    reduced = kron_reduction(
        bus_admittance(network, removed), replace(network, machine_bus=without[keep], x_d=network.x_d[keep])
    )
    Y = np.zeros((network.n_machines,) * 2, dtype=complex)
    Y[np.ix_(keep, keep)] = reduced
    return Y


@pytest.mark.parametrize(
    "clearing",
    [
        "{action: trip, lines: [[16, 17], [3, 4]]}",
        "{action: trip, generators: [38]}",
        "{action: trip, lines: [[16, 17], [4, 3], [26, 29]], generators: [38, 31]}",
    ],
)
def test_tripping_equals_assembling_without_the_lines_and_machines(tmp_path, clearing):
    operators = tripping(tmp_path, clearing)
    direct = direct_reduction(operators.network, operators.removed_branches, operators.tripped_machines)
    np.testing.assert_allclose(operators.Y_post, direct, rtol=0, atol=1e-10 * abs(direct).max())
    gone = list(operators.tripped_machines)
    assert not operators.Y_post[gone].any()
    assert not operators.P_m_post[gone].any()


def test_tripping_one_line_is_removing_it(tmp_path):
    trip = tripping(tmp_path, "{action: trip, lines: [[16, 17]]}")
    remove = tripping(tmp_path, "{action: remove-line, line: [16, 17]}")
    np.testing.assert_array_equal(trip.Y_post, remove.Y_post)
    assert reference_cct(trip, 1.0).cct == reference_cct(remove, 1.0).cct


def test_the_order_in_which_lines_are_named_does_not_matter(tmp_path):
    one = tripping(tmp_path, "{action: trip, lines: [[16, 17], [3, 4]]}")
    other = tripping(tmp_path, "{action: trip, lines: [[4, 3], [17, 16]]}")
    np.testing.assert_allclose(one.Y_post, other.Y_post, rtol=0, atol=1e-12)


def test_fast_strict_and_full_network_agree_when_a_generator_is_tripped(tmp_path):
    operators = tripping(tmp_path, "{action: trip, lines: [[16, 17]], generators: [38]}", bus=29)
    cct = reference_cct(operators, 1.0).cct
    operators = narrowed(operators, cct - 0.003, cct + 0.003)
    answers = {reference: reference_cct(operators, 1.0, reference) for reference in ("fast", "strict", "dae")}
    assert {answer.status for answer in answers.values()} == {"finite"}
    assert answers["fast"].cct == pytest.approx(answers["strict"].cct, abs=1e-5)
    assert answers["fast"].cct == pytest.approx(answers["dae"].cct, abs=5e-4)


def test_a_machine_that_runs_away_counts_until_it_is_tripped_and_not_after(tmp_path):
    # Bus 38 accelerates by far the most under a fault at its own bus; once it is gone the others stay together.
    stay = tripping(tmp_path, "{action: restore}", bus=38)
    leave = tripping(tmp_path, "{action: trip, generators: [38]}", bus=38)
    t_c = 0.2 + 1.2 * (reference_cct(stay, 1.0).duration or np.nan)
    assert strict_margins(stay, 1.0, np.array([t_c]))[0] > 0
    assert strict_margins(leave, 1.0, np.array([t_c]))[0] < 0
    run = strict_trajectory(leave, 1.0, t_c)
    before = run.t <= t_c
    np.testing.assert_array_equal(run.separation[before], np.ptp(run.delta[before], axis=1))
    assert run.separation[-1] < np.ptp(run.delta[-1])


def test_a_fault_that_lasts_until_the_machine_has_slipped_is_unstable_although_the_machine_leaves(tmp_path):
    leave = tripping(tmp_path, "{action: trip, generators: [38]}", bus=38)
    late = strict_margins(leave, 1.0, np.array([1.0]))[0]
    assert late > 0
    answer = reference_cct(leave, 1.0)
    run = fast_trajectory(leave, 1.0, answer.cct)
    assert run.separation.max() == pytest.approx(leave.max_separation, abs=1e-3)


def test_a_tripped_machine_without_damping_coasts_at_its_last_speed(tmp_path):
    leave = tripping(tmp_path, "{action: trip, generators: [38]}", bus=38)
    machine = leave.tripped_machines[0]
    run = strict_trajectory(leave, 1.0, 0.4)
    after = run.omega[run.t >= 0.4, machine] - 1.0
    decay = np.exp(-leave.D[machine] * (run.t[run.t >= 0.4] - 0.4) / (2.0 * leave.H[machine]))
    np.testing.assert_allclose(after, after[0] * decay, rtol=1e-6)


def test_the_gradient_of_the_margin_agrees_with_differences_when_a_generator_is_tripped(tmp_path):
    operators = tripping(tmp_path, "{action: trip, generators: [38]}", bus=29)
    gradient = margin_gradient(operators, 1.0, 0.32)
    step = 1e-5
    slope = np.diff(strict_margins(operators, 1.0, np.array([0.32 - step, 0.32 + step])))[0] / (2 * step)
    assert gradient.by_t_c == pytest.approx(slope, rel=1e-3)
    assert gradient.high not in operators.tripped_machines or gradient.t_peak <= 0.32


def test_a_report_names_the_generators_that_leave(tmp_path):
    operators = tripping(tmp_path, "{action: trip, lines: [[3, 4]], generators: [38]}")
    report = describe_operators(operators)
    assert report["tripped_generators"] == [38]
    assert report["removed_branches"] == [[3, 4, 1]]


def test_surrogates_refuse_a_contingency_that_trips_a_generator(tmp_path):
    from espinn_moe.surrogate import check_members

    check_members([tripping(tmp_path, "{action: trip, lines: [[16, 17], [3, 4]]}")])
    with pytest.raises(UsageError, match="a-trip trips a generator"):
        check_members([tripping(tmp_path, "{action: trip, generators: [38]}")])


@pytest.mark.parametrize(
    ("clearing", "sentence"),
    [
        ("{action: trip}", "trips nothing; name lines or generators"),
        ("{action: trip, lines: [[16, 16]]}", "starts and ends at the same bus"),
        ("{action: trip, lines: [[16, 17], [17, 16]]}", "line 16-17 is named twice"),
        ("{action: trip, generators: [38, 38]}", "generator 38 is named twice"),
        ("{action: trip, generators: [16]}", "there is no generator at bus 16"),
        ("{action: trip, lines: [[16, 99]]}", "bus 99 does not exist"),
        ("{action: trip, lines: [[16, 19]]}", "islands the generator at bus 33, 34"),
        ("{action: trip, lines: [[16, 17, 2]]}", "has no circuit 2 of 16-17"),
        ("{action: trip, generators: [30, 31, 32, 33, 34, 35, 36, 37, 38]}", "leaves none that could lose synchronism"),
    ],
)
def test_what_cannot_be_tripped_is_said_in_one_sentence(tmp_path, clearing, sentence):
    with pytest.raises(SpecError, match=sentence) as error:
        tripping(tmp_path, clearing)
    assert "contingency.yaml:" in str(error.value)


def test_lines_may_cut_off_a_machine_that_is_tripped_with_them(tmp_path):
    write_smib(tmp_path)
    with pytest.raises(SpecError, match="leaves none that could lose synchronism"):
        tripping(tmp_path, "{action: trip, generators: [1]}", system="smib.yaml", bus=3)
    operators = tripping(tmp_path, "{action: trip, lines: [[16, 19]], generators: [33, 34]}")
    direct = direct_reduction(operators.network, operators.removed_branches, operators.tripped_machines)
    np.testing.assert_allclose(operators.Y_post, direct, rtol=0, atol=1e-10 * abs(direct).max())
