"""Shipped systems keep the operators that stored heads were made for."""

from pathlib import Path

import numpy as np
import pytest

from contingencies.library import load_system
from contingencies.network import solve_network
from contingencies.reduction import reduce_network

# Read by pandapower and solved by its power flow, as all releases up to 0.1 did, to 1e-11 MVA. Those releases stopped
# at 1e-8 MVA, which left up to 2.6e-9 pu in the internal voltages of ieee118 and below 1e-9 in all others.
BEFORE = Path(__file__).parent / "data" / "networks_before.npz"


@pytest.mark.parametrize("name", ["ieee9", "wscc9", "ieee14", "ieee30", "ieee39", "ieee118"])
def test_a_shipped_system_is_the_network_that_it_was(name):
    network = solve_network(load_system(name))
    with np.load(BEFORE) as before:
        assert network.bus_numbers[network.machine_bus].tolist() == before[f"{name}.machines"].tolist()
        np.testing.assert_allclose(network.E, before[f"{name}.E"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(network.delta_0, before[f"{name}.delta_0"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(reduce_network(network).Y_pre, before[f"{name}.Y_red"], rtol=0, atol=1e-9)
