"""Frequency and base: what changes with them is known in closed form, and everything else stays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.formats.stamps import bus_matrix
from contingencies.library import load_system
from contingencies.power_flow import solve_power_flow
from contingencies.references import reference_cct
from tests.cases import compile_text, write_smib
from tests.contingencies.formats.other_texts import three_buses

SMIB = """name: smib
system: smib.yaml
fault: {{kind: bus, bus: 3, impedance_pu: {{}}}}
clearing: {{action: restore}}
window: {{t_f: 0.2, T: {T}, t_c: [0.21, {last}]}}
"""


def equal_area(p: float, x: float, H: float, frequency: float) -> float:
    """Critical duration of a bolted fault at the machine's network bus, s: P_e = 0 while it lasts, then as before.

    With P_max sin(delta_0) = p, the critical angle has cos(delta_c) = (pi - 2 delta_0) sin(delta_0) - cos(delta_0), and
    from rest delta grows by omega_b p t^2 / (4 H): t = sqrt(4 H (delta_c - delta_0) / (omega_b p)).
    """
    V_1, V_2 = 1.0, 1.0
    x_net = x - 0.3  # between the terminal and the infinite bus
    theta = np.arcsin(p * x_net / (V_1 * V_2))
    E = V_1 * np.exp(1j * theta) + 0.3j * (V_1 * np.exp(1j * theta) - V_2) / (1j * x_net)
    delta_0 = np.angle(E)
    delta_c = np.arccos((np.pi - 2 * delta_0) * np.sin(delta_0) - np.cos(delta_0))
    return float(np.sqrt(4 * H * (delta_c - delta_0) / (2 * np.pi * frequency * p)))


def smib(folder, frequency, H, p, base=100.0):
    path = write_smib(folder, p=100 * p, H=H * 100.0 / base, x_d=0.3 * base / 100.0)
    text = path.read_text().replace("frequency_hz: 60", f"frequency_hz: {frequency}\nbase_mva: {base}")
    path.write_text(text.replace("x_d: 1.0e-7", f"x_d: {1e-7 * base / 100.0}"))
    return compile_text(folder, SMIB.format(T=4.0, last=1.8))


@settings(max_examples=12)
@given(H=st.floats(2.0, 6.0), p=st.floats(0.6, 0.95), frequency=st.sampled_from([16.7, 50.0, 60.0]))
def test_a_critical_duration_falls_with_the_root_of_the_frequency(tmp_path_factory, H, p, frequency):
    folder = tmp_path_factory.mktemp("smib")
    x = 0.3 + 0.15 + 1 / (1 / 0.5 + 1 / 0.93)
    answer = reference_cct(smib(folder, frequency, H, p), 1.0)
    assert answer.duration == pytest.approx(equal_area(p, x, H, frequency), abs=2e-5)


@settings(max_examples=8)
@given(base=st.floats(10.0, 1000.0), frequency=st.sampled_from([50.0, 60.0]))
def test_the_base_of_the_machines_does_not_move_a_cct(tmp_path_factory, base, frequency):
    one, other = (smib(tmp_path_factory.mktemp("smib"), frequency, 3.5, 0.9, mva) for mva in (100.0, base))
    assert reference_cct(other, 1.0).cct == pytest.approx(reference_cct(one, 1.0).cct, abs=2e-6)


@given(base=st.floats(1.0, 1e4))
def test_another_base_keeps_voltages_and_powers_in_mva(base):
    case = three_buses()
    other = case.on_base(base)
    solved, again = solve_power_flow(case), solve_power_flow(other)
    np.testing.assert_allclose(again.V, solved.V, atol=1e-9)
    np.testing.assert_allclose(again.S_units * base, solved.S_units * case.base_mva, atol=1e-6)
    np.testing.assert_allclose(
        bus_matrix(other).toarray() * base, bus_matrix(case).toarray() * case.base_mva, rtol=1e-12, atol=1e-9
    )
    back = other.on_base(case.base_mva)
    np.testing.assert_allclose(back.branches.x, case.branches.x, rtol=1e-12)


@pytest.mark.parametrize("frequency", [50.0, 60.0])
def test_the_frequency_stretches_time_without_damping(tmp_path, frequency):
    """With D = 0 the swing equation has omega_b / 2H alone: twice the frequency is half the inertia."""
    one = reference_cct(smib(tmp_path, frequency, 4.0, 0.85), 1.0)
    (tmp_path / "twice").mkdir()
    other = reference_cct(smib(tmp_path / "twice", 2 * frequency, 8.0, 0.85), 1.0)
    assert other.duration == pytest.approx(one.duration, abs=2e-6)
    assert load_system(str(tmp_path / "smib.yaml")).spec.frequency_hz == frequency
