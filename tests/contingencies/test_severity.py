"""Faults given by their impedance: the linear law of severity, against the admittance law and the full network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contingencies.admittance import bus_admittance, machine_admittance
from contingencies.errors import SpecError
from contingencies.library import Contingency, load_system
from contingencies.operators import compile_contingency
from contingencies.references import reference_cct
from contingencies.severity import admittance_law, fault_coefficient, fault_coefficient_slope, impedance_law
from contingencies.spec import ContingencySpec
from tests.cases import narrowed

IEEE39 = load_system("ieee39")
WINDOW = {"t_f": 0.2, "T": 2.5, "t_c": (0.21, 1.21)}
impedances = st.builds(complex, st.floats(0.0, 1.0), st.floats(0.01, 1.0))


def ieee39(fault, clearing=None, **parts):
    spec = {"name": "a", "system": "ieee39", "fault": fault, "clearing": clearing or {"action": "restore"}}
    return Contingency(ContingencySpec.model_validate({**spec, "window": WINDOW, **parts}), IEEE39)


def bus(number=29, **fault):
    return {"kind": "bus", "bus": number, **fault}


@given(z_f=impedances, z_th=impedances)
def test_both_laws_agree_on_the_whole_fault_and_on_none(z_f, z_th):
    linear, bent = impedance_law(z_f, z_th), admittance_law(1.0 / z_f, z_th)
    assert fault_coefficient(1.0, *linear) == pytest.approx(fault_coefficient(1.0, *bent), rel=1e-12)
    assert fault_coefficient(0.0, *linear) == fault_coefficient(0.0, *bent) == 0


@given(z_f=impedances, z_th=impedances, alpha=st.floats(0.05, 0.95))
def test_the_slope_of_a_law_is_its_derivative(z_f, z_th, alpha):
    for law in (impedance_law(z_f, z_th), admittance_law(1.0 / z_f, z_th)):
        difference = (fault_coefficient(alpha + 1e-6, *law) - fault_coefficient(alpha - 1e-6, *law)) / 2e-6
        assert fault_coefficient_slope(alpha, *law) == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("fault", [bus(), {"kind": "line", "line": (16, 17), "position": 0.02}])
def test_a_bolted_fault_is_the_limit_of_ever_larger_shunts(fault):
    bolted = compile_contingency(ieee39({**fault, "impedance_pu": {}}))
    tiny = compile_contingency(ieee39({**fault, "impedance_pu": {"x": 1e-9}}))
    np.testing.assert_allclose(bolted.Y_fault(1.0), tiny.Y_fault(1.0), atol=1e-5)
    if fault["kind"] == "bus":
        shunt = compile_contingency(ieee39({**fault, "shunt_pu": {"b": -1e9}}))
        np.testing.assert_allclose(bolted.Y_fault(1.0), shunt.Y_fault(1.0), atol=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
def test_the_severity_of_a_bolted_fault_is_the_depth_of_the_dip(alpha):
    operators = compile_contingency(ieee39(bus(impedance_pu={})))
    network = operators.network
    source = network.E * np.exp(1j * network.delta_0)
    y_g = machine_admittance(network)
    current = np.zeros(network.n_buses, dtype=complex)
    current[network.machine_bus] = y_g * source
    Y = bus_admittance(network).toarray()
    Y[network.machine_bus, network.machine_bus] += y_g
    node = network.bus(29, "")
    Z = np.linalg.inv(Y)
    fault_current = fault_coefficient(alpha, operators.fault_gain, operators.fault_bend) * (Z @ current)[node]
    left = (Z @ current)[node] - Z[node, node] * fault_current
    assert left == pytest.approx((1.0 - alpha) * network.V[node], abs=1e-9)


@pytest.mark.parametrize("fault", [bus(), {"kind": "line", "line": (16, 17), "position": 0.02}])
@pytest.mark.parametrize("alpha", [0.7, 1.0])
def test_full_network_and_reduced_model_agree_on_bolted_faults(fault, alpha):
    operators = compile_contingency(ieee39({**fault, "impedance_pu": {}}))
    fast = reference_cct(operators, alpha, "fast")
    if fast.cct is not None:
        operators = narrowed(operators, max(0.21, fast.cct - 0.004), fast.cct + 0.004)
    dae = reference_cct(operators, alpha, "dae")
    assert fast.status == dae.status
    if fast.cct is not None:
        assert dae.cct == pytest.approx(fast.cct, abs=2e-4)


def test_ohms_are_converted_by_the_voltage_of_the_bus():
    in_ohm = compile_contingency(ieee39(bus(impedance_ohm={"r": 2.0, "x": 10.0})))
    base = in_ohm.network.base_kv[in_ohm.network.bus(29, "")] ** 2 / in_ohm.network.base_mva
    in_pu = compile_contingency(ieee39(bus(impedance_pu={"r": 2.0 / base, "x": 10.0 / base})))
    assert base > 0
    assert in_ohm.fault_gain == pytest.approx(in_pu.fault_gain, rel=1e-12)


@pytest.mark.parametrize(
    ("fault", "parts", "message"),
    [
        (bus(), {}, "either as shunt_pu or as impedance_pu"),
        (bus(shunt_pu={"b": -1.0}, impedance_pu={}), {}, "either as shunt_pu or as impedance_pu"),
        (bus(impedance_pu={}, impedance_ohm={}), {}, "given twice"),
        (bus(impedance_pu={"r": -1.0}), {}, "greater than or equal to 0"),
        (bus(impedance_pu={}), {"severity": (0.0, 2.0)}, "1 is the whole of a fault given by its impedance"),
    ],
)
def test_contradictory_impedances_are_refused(fault, parts, message):
    with pytest.raises((SpecError, ValueError), match=message):
        ieee39(fault, **parts)
