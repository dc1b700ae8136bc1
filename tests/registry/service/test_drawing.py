"""The drawing of a network: the same every time, inside its frame, every fault marked by its margin."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from contingencies.library import load_system
from contingencies.network import solve_network
from registry.query import Registry
from registry.service.drawing import HEIGHT, LEVELS, WIDTH, Marked, draw, level_of
from registry.service.layout import layout
from registry.service.ranking import Element, Ranked, outline, rank
from tests.registry.makers import Zoo, contingency
from tests.registry.service.serving import world

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", ["ieee9", "ieee30", "ieee39"])
def test_a_network_is_laid_out_alike_every_time_and_no_two_buses_meet(name: str) -> None:
    network = solve_network(load_system(name))
    first, second = layout(network), layout(network)
    np.testing.assert_array_equal(first, second)
    assert first.min() >= 0 and first.max() <= 1
    gaps = np.hypot(*(first[:, None] - first[None]).transpose(2, 0, 1)) + np.eye(len(first))
    assert gaps.min() > 1e-3
    near = np.hypot(*(first[network.branches.start] - first[network.branches.end]).T)
    assert near.mean() < gaps.mean()  # connected buses are closer together than others


def test_a_network_is_drawn_where_its_case_says_that_its_buses_are() -> None:
    network = solve_network(load_system("wscc9"))  # whose file does not say
    n = network.n_buses
    angle = 2 * np.pi * np.arange(n) / n
    east, north = 500.0 + 30.0 * np.cos(angle), 20.0 * np.sin(angle)
    placed = layout(replace(network, east=east, north=north))
    expected = np.column_stack([east - east.min(), north.max() - north]) / np.ptp(east)
    np.testing.assert_allclose(placed, expected, atol=1e-12)  # north is up, the longer side fills the square
    one_missing = np.where(np.arange(n) == 4, np.nan, east)
    between = layout(replace(network, east=one_missing, north=north))
    neighbours = [
        int(b if a == 4 else a)
        for a, b in zip(network.branches.start, network.branches.end, strict=True)
        if 4 in (a, b)
    ]
    np.testing.assert_allclose(between[4], between[neighbours].mean(axis=0), atol=1e-9)
    together = layout(
        replace(
            network, east=np.where(np.arange(n) == 5, east[6], east), north=np.where(np.arange(n) == 5, north[6], north)
        )
    )
    assert 0.01 < np.hypot(*(together[5] - together[6])) < 0.05
    few = np.where(np.arange(n) < 5, np.nan, east)
    np.testing.assert_array_equal(layout(replace(network, east=few, north=north)), layout(network))


def test_a_drawing_is_well_formed_and_marks_every_fault(sqlite_zoo: Zoo) -> None:
    made = world(sqlite_zoo)
    network = solve_network(contingency().system)
    with Registry.open(made.path) as registry:
        ranked = rank(registry)
    marked = [Marked(one, Element("line", (3, 4))) for one in ranked[:1]]
    marked += [Marked(one, Element("bus", (7,))) for one in ranked[1:]]
    marked += [Marked(one, Element("bus", (999,))) for one in ranked[1:]]  # a bus that this network does not have
    root = ET.fromstring(draw(network, layout(network), marked).replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1))
    assert len(root.findall(f".//{SVG}circle[@class='bus']")) == 30
    links = root.findall(f".//{SVG}a")
    assert sorted(link.get("href") for link in links) == ["/contingencies/fault-a", "/contingencies/fault-b"]
    for circle in root.iter(f"{SVG}circle"):
        assert 0 <= float(circle.get("cx")) <= WIDTH and 0 <= float(circle.get("cy")) <= HEIGHT


def test_levels_follow_margin_and_status(sqlite_zoo: Zoo) -> None:
    with Registry.open(world(sqlite_zoo).path) as registry:
        one: Ranked = rank(registry)[0]
    assert level_of(one) == "fair"
    assert level_of(replace(one, duration_s=0.1)) == "tight"
    assert level_of(replace(one, margin_s=0.01, duration_s=0.5)) == "tight"
    assert level_of(replace(one, alerts=("below-required",))) == "below"
    assert level_of(replace(one, status="left-censored")) == "below"
    assert level_of(replace(one, status="right-censored")) == "stable"
    assert level_of(replace(one, status="no-head", duration_s=None)) == "missing"
    assert set(LEVELS) == {"below", "tight", "fair", "stable", "missing"}


def test_a_description_is_outlined_in_words() -> None:
    shape = outline(contingency().to_json())
    assert (shape.fault, shape.clearing, shape.element) == ("line 3-4 at 50 %", "restore", Element("line", (3, 4)))
