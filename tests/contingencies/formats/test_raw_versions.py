"""One network in PSS/E versions 32 to 35 is one network, whatever columns each version adds."""

from dataclasses import fields
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contingencies.formats.raw import read_raw
from contingencies.formats.stamps import bus_matrix
from tests.contingencies.formats.psse_versions import Plain, columns, printed, written

VERSIONS = (32, 33, 34, 35)
KV = (400.0, 220.0, 20.0)
some = st.floats(-2.0, 2.0).map(lambda x: round(x, 6))
positive = st.floats(0.05, 2.0).map(lambda x: round(x, 6))
ratios = st.floats(0.8, 1.2).map(lambda x: round(x, 6))
codes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2))


def windings(draw, cw, count):
    """Windings whose WINDV says a ratio near 1 in the unit of the code."""
    found = []
    for kv in KV[:count]:
        nominal, ratio = draw(st.sampled_from([0.0, 0.95 * kv])), draw(ratios)
        found.append(
            {"WINDV": ratio * kv if cw == 2 else ratio, "NOMV": nominal, "ANG": 10 * draw(some), "RATE": 300.0}
        )
    return found


@st.composite
def transformers(draw, count):
    cw, cz, cm = draw(codes)
    impedances = []
    for _ in range(1 if count == 2 else 3):
        r, x, mva = 0.01 * draw(positive), 0.1 + draw(positive), draw(st.sampled_from([50.0, 100.0, 300.0]))
        impedances += [r * mva * 1e6 if cz == 3 else r, x, mva]
    magnetising = (0.001, -0.02) if cm == 1 else (1e5, 0.02)
    return {
        "I": 1, "J": 2, "K": 3 if count == 3 else 0, "CKT": str(count), "CW": cw, "CZ": cz, "CM": cm,
        "MAG1": magnetising[0], "MAG2": magnetising[1], "STAT": draw(st.sampled_from([0, 1, 1])),
        "impedances": impedances, "windings": windings(draw, cw, count),
    }  # fmt: skip


@st.composite
def networks(draw):
    lines = [
        {"I": i, "J": sign * j, "CKT": c, "R": 0.01 * draw(positive), "X": draw(positive), "B": draw(some),
         "RATE": 100 * draw(positive), "GI": draw(some), "BI": draw(some), "GJ": draw(some), "BJ": draw(some),
         "ST": draw(st.integers(0, 1))}
        for i, j, c, sign in [(1, 2, "1", 1), (2, 3, "A", -1), (1, 2, "2", 1)]
    ]  # fmt: skip
    return Plain(
        base=draw(st.sampled_from([100.0, 250.0])),
        bus=[
            {"I": k + 1, "NAME": f"BUS {k + 1}", "BASKV": kv, "IDE": 3 if k == 0 else 1, "AREA": k + 1, "ZONE": 7,
             "VM": draw(ratios), "VA": 10 * draw(some)}
            for k, kv in enumerate(KV)
        ],
        load=[
            {"I": 2, "ID": str(k), "STAT": draw(st.integers(0, 1)), "PL": draw(some), "QL": draw(some),
             "IP": draw(some), "IQ": draw(some), "YP": draw(some), "YQ": draw(some)}
            for k in range(2)
        ],
        generator=[
            {"I": 1, "ID": "G", "PG": draw(some), "QG": draw(some), "QT": 50.0, "QB": -50.0, "VS": draw(ratios),
             "MBASE": 100 * draw(positive), "ZR": 0.01, "ZX": draw(positive), "RT": 0.0, "XT": draw(positive),
             "STAT": draw(st.integers(0, 1))}
        ],
        branch=lines,
        transformer=[draw(transformers(2)), draw(transformers(3))],
        switched=[{"I": 3, "ID": "S", "STAT": draw(st.integers(0, 1)), "RMIDNT": "", "BINIT": 50 * draw(some)}],
    )  # fmt: skip


def read(network, version):
    return read_raw(written(network, version).encode(), "case.raw")


@settings(max_examples=30)
@given(network=networks())
def test_a_network_reads_alike_in_every_version(network):
    first = read(network, 32)
    for version in VERSIONS[1:]:
        other = read(network, version)
        assert other.version == version
        np.testing.assert_array_equal(other.step_up, first.step_up)
        for name in ("buses", "loads", "shunts", "branches", "units"):
            one, two = getattr(first.case, name), getattr(other.case, name)
            for column in fields(one):
                np.testing.assert_array_equal(
                    getattr(two, column.name), getattr(one, column.name), err_msg=f"{version} {name}.{column.name}"
                )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("cw", "cz", "cm"), list(product((1, 2, 3), (1, 2, 3), (1, 2))))
def test_every_combination_of_unit_codes_says_the_same_three_windings(version, cw, cz, cm):
    t, nominal, mva, base = (1.05, 0.97, 1.02), (390.0, 225.0, 21.0), (300.0, 150.0, 80.0), 100.0
    z = (0.002 + 0.05j, 0.003 + 0.12j, 0.004 + 0.1j)  # between the windings, pu on the system base
    y_m = 0.0015 - 0.008j  # at the bus of winding 1, pu on the system base
    impedances = []
    for value, own in zip(z, mva, strict=True):
        value = value if cz == 1 else value * own / base
        impedances += [value.real * own * 1e6, abs(value), own] if cz == 3 else [value.real, value.imag, own]
    off_nominal = (KV[0] / nominal[0]) ** 2  # losses and exciting current are given at the nominal voltage
    losses, current = y_m.real * base * 1e6 / off_nominal, abs(y_m) * base / mva[0] / off_nominal
    windv = {1: t, 2: [a * kv for a, kv in zip(t, KV, strict=True)],
             3: [a * kv / n for a, kv, n in zip(t, KV, nominal, strict=True)]}[cw]  # fmt: skip
    transformer = {
        "I": 1, "J": 2, "K": 3, "CKT": "1", "CW": cw, "CZ": cz, "CM": cm, "STAT": 1,
        "MAG1": y_m.real if cm == 1 else losses, "MAG2": y_m.imag if cm == 1 else current, "impedances": impedances,
        "windings": [{"WINDV": w, "NOMV": n, "ANG": a} for w, n, a in zip(windv, nominal, (0, 0, 30), strict=True)],
    }  # fmt: skip
    buses = [{"I": k + 1, "BASKV": kv, "IDE": 3 if k == 0 else 1, "VM": 1.0, "VA": 0.0} for k, kv in enumerate(KV)]
    case = read(Plain(bus=buses, transformer=[transformer]), version).case
    a = np.array([*t, 1.0]) * np.exp(1j * np.deg2rad([0, 0, 30, 0]))
    legs = ((z[0] + z[2] - z[1]) / 2, (z[0] + z[1] - z[2]) / 2, (z[1] + z[2] - z[0]) / 2)
    expected = np.zeros((4, 4), dtype=complex)
    for k, leg in enumerate(legs):
        expected[k, k], expected[3, 3] = 1 / leg, expected[3, 3] + 1 / leg
        expected[k, 3] = expected[3, k] = -1 / leg
    expected = expected / np.conj(a)[:, None] / a[None, :]
    expected[0, 0] += y_m
    np.testing.assert_allclose(bus_matrix(case).toarray(), expected, rtol=1e-9)


@pytest.mark.parametrize("version", VERSIONS)
def test_node_breaker_records_comments_and_names_are_passed_over(version):
    network = Plain(
        bus=[{"I": 1, "BASKV": 400.0, "IDE": 3, "NAME": "0 / END OF X"}, {"I": 2, "BASKV": 400.0, "IDE": 1}],
        branch=[{"I": 1, "J": 2, "CKT": "1", "R": 0.0, "X": 0.1, "B": 0.0, "ST": 1}],
    )
    case = read(network, version).case
    assert case.buses.number.tolist() == [1, 2]
    assert len(case.branches) == 1
    assert case.branches.x.tolist() == [0.1]


def test_the_writer_knows_the_published_number_of_columns():
    assert [len(columns("branch", version)) for version in VERSIONS] == [24, 24, 34, 34]
    assert [len(columns("generator", version)) for version in VERSIONS] == [28, 28, 29, 30]
    assert printed("load", 35, {"I": 1}).count(",") == 17
