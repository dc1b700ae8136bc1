"""Formats that pypowsybl reads, and its own opinion of what our readers and our power flow say."""

import io
import sys
import zipfile

import numpy as np
import pytest
import scipy.io

from contingencies.errors import SpecError, UsageError
from contingencies.formats.matpower import read_matpower
from contingencies.formats.powsybl import file_of_grid, read_powsybl, solve_grid
from contingencies.formats.raw import read_raw
from contingencies.formats.stamps import bus_matrix
from contingencies.importing import import_network
from contingencies.library import _shipped
from contingencies.power_flow import solve_power_flow, stored_mismatch
from tests.contingencies.formats.other_texts import UCTE, cdf_text, three_buses
from tests.contingencies.test_importing import RAW

pypowsybl = pytest.importorskip("pypowsybl", reason="the extra 'formats' is not installed")


def by_number(case):
    """The bus matrix with buses in the order of their numbers."""
    order = np.argsort(case.buses.number)
    return bus_matrix(case).toarray()[np.ix_(order, order)]


# --- its networks in our arrays -----------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["ieee14", "ieee57", "ieee300", "micro_grid_be_network", "micro_grid_nl_network",
     "eurostag_tutorial_example1_network", "eurostag_tutorial_example1_with_tie_lines_and_areas",
     "metrix_tutorial_six_buses_network"],
)  # fmt: skip
def test_what_its_load_flow_solves_balances_in_our_arrays(name):
    grid = getattr(pypowsybl.network, f"create_{name}")()
    solve_grid(grid, name)
    case = file_of_grid(grid, name).case
    assert stored_mismatch(case)[0] < 1e-6
    stored = case.buses.v * np.exp(1j * case.buses.angle)
    np.testing.assert_allclose(solve_power_flow(case).V, stored, atol=1e-9)


def test_a_line_with_one_open_end_leaves_its_charging():
    grid = pypowsybl.network.create_ieee14()
    grid.disconnect("L1-5-1")
    grid.update_lines(id="L2-5-1", connected2=False)
    solve_grid(grid, "open")
    case = file_of_grid(grid, "open").case
    assert len(case.branches) == 18
    assert len(case.shunts) == 2  # that of the case, and the line's
    assert stored_mismatch(case)[0] < 1e-6


# --- formats ------------------------------------------------------------------------------------


def test_a_cdf_file_is_the_network_it_was_written_from(tmp_path):
    case = three_buses()
    content = cdf_text(case).encode()
    file = read_powsybl(content, ".cdf", "case.cdf")
    assert file.case.buses.number.tolist() == case.buses.number.tolist()
    assert (file.format, file.frequency_hz, file.renumbered) == ("IEEE CDF", 60.0, False)
    np.testing.assert_allclose(by_number(file.case), by_number(case), atol=1e-9)
    V = solve_power_flow(case).V
    np.testing.assert_allclose(solve_power_flow(file.case).V, V, atol=1e-9)


def test_a_ucte_file_has_lines_in_ohm_and_ratios_of_rated_voltages(tmp_path):
    file = read_powsybl(UCTE.encode(), ".uct", "case.uct")
    case = file.case
    assert file.bus_ids == ("FNORTH11", "FSOUTH11", "FSOUTH21", "BEAST 11")
    assert any("stores no state" in note for note in file.notes)
    line = complex(case.branches.r[0], case.branches.x[0])
    assert line == pytest.approx((3 + 30j) * 100 / 380**2)
    assert case.branches.y_start[0] == pytest.approx(1j * 100e-6 * 380**2 / 100)
    high, low = (case.buses.number.tolist().index(number) for number in (2, 3))
    Y = bus_matrix(case).toarray()
    y = 1 / ((0.5 + 20j) * 100 / 400**2)  # on the rated voltage of side 1, at whose ratio 400 : 225 is no load
    assert Y[high, low] == pytest.approx(-y * (380 / 400) * (220 / 225), rel=1e-9)
    assert stored_mismatch(case)[0] < 1e-6
    path = tmp_path / "case.uct"
    path.write_text(UCTE)
    imported = import_network(path, None, tmp_path / "out")
    assert imported.mismatch_mva < 1e-6
    assert (tmp_path / "out" / "case-buses.csv").read_text().splitlines()[1] == "1,FNORTH11,FNORTH11,380.0"
    written = read_raw((tmp_path / "out" / "case.raw").read_bytes(), "case.raw")
    assert written.frequency_hz == 50.0
    np.testing.assert_allclose(bus_matrix(written.case).toarray(), Y, rtol=1e-12)


def test_a_cgmes_archive_is_the_network_it_was_written_from(tmp_path):
    grid = pypowsybl.network.create_ieee9()
    solve_grid(grid, "ieee9")
    grid.save(str(tmp_path / "case"), format="CGMES")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(tmp_path.glob("case_*.xml")):
            packed.write(file, file.name)
    read = read_powsybl(archive.getvalue(), ".zip", "case.zip")
    assert stored_mismatch(read.case)[0] < 1e-3
    before = file_of_grid(grid, "ieee9").case
    np.testing.assert_allclose(by_number(read.case), by_number(before), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "mva"), [("be", 1.0), ("nl", 10.0)])
def test_the_stored_state_of_the_public_micro_grid_balances(name, mva):
    grid = getattr(pypowsybl.network, f"create_micro_grid_{name}_network")()
    assert stored_mismatch(file_of_grid(grid, name).case)[0] < mva


def test_a_written_raw_file_reads_back_as_the_same_network(tmp_path):
    grid = pypowsybl.network.create_micro_grid_be_network()
    solve_grid(grid, "be")
    path = tmp_path / "be.xiidm"
    grid.save(str(path), format="XIIDM")
    imported = import_network(path, None, tmp_path / "out")
    before = file_of_grid(pypowsybl.network.load(str(path)), "be").case
    np.testing.assert_allclose(bus_matrix(imported.raw.case).toarray(), bus_matrix(before).toarray(), rtol=1e-12)
    assert imported.mismatch_mva < 1e-6
    assert imported.format == "IIDM"


# --- its opinion of our readers -----------------------------------------------------------------


def test_it_reads_our_raw_example_as_we_do(tmp_path):
    ours = read_raw(RAW.read_bytes(), "coast9.raw").case
    grid = pypowsybl.network.load(str(RAW))
    theirs = file_of_grid(grid, "coast9").case
    known = np.isin(ours.buses.number, theirs.buses.number) & (ours.buses.name != "star")
    at = {int(number): k for k, number in enumerate(theirs.buses.number)}
    rows = [at[int(number)] for number in ours.buses.number[known]]
    Y_ours, Y_theirs = (_without_stars(case) for case in (ours, theirs))
    np.testing.assert_allclose(Y_theirs[np.ix_(rows, rows)], Y_ours[np.ix_(known, known)[0], np.flatnonzero(known)],
                               rtol=1e-6, atol=1e-6)  # fmt: skip


def _without_stars(case):
    """The bus matrix with star buses eliminated, their rows and columns 0."""
    Y, star = bus_matrix(case).toarray(), case.buses.name == "star"
    kept = np.flatnonzero(~star)
    reduced = np.zeros_like(Y)
    inner = Y[np.ix_(star, star)]
    reduced[np.ix_(kept, kept)] = Y[np.ix_(kept, kept)] - Y[np.ix_(kept, star)] @ np.linalg.solve(
        inner, Y[np.ix_(star, kept)]
    )
    return reduced


def test_it_reads_the_textbook_matpower_file_as_we_do(tmp_path):
    content = _shipped("systems")["wscc9"].with_suffix(".m").read_bytes()
    ours = read_matpower(content, ".m", "wscc9")
    scipy.io.savemat(tmp_path / "wscc9.mat", {"mpc": _tables(content)})
    grid = pypowsybl.network.load(str(tmp_path / "wscc9.mat"))
    solve_grid(grid, "wscc9")
    theirs = file_of_grid(grid, "wscc9").case
    np.testing.assert_allclose(by_number(theirs), by_number(ours), rtol=1e-9, atol=1e-9)
    order = np.argsort(theirs.buses.number)
    solved = solve_power_flow(ours).V[np.argsort(ours.buses.number)]
    np.testing.assert_allclose((theirs.buses.v * np.exp(1j * theirs.buses.angle))[order], solved, atol=1e-8)


def _tables(content):
    from contingencies.formats.matpower_text import parse_matpower

    file = parse_matpower(content.decode())
    return {"version": "2", "baseMVA": file.base_mva} | {name: rows.values for name, rows in file.tables.items()}


# --- what is wrong ------------------------------------------------------------------------------


def packed(content):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("network_EQ.xml", content)
    return archive.getvalue()


@pytest.mark.parametrize(
    ("content", "suffix", "sentence"),
    [
        (b"hello", ".cdf", "export it again as IEEE CDF"),
        (b"", ".uct", "export it again as UCTE"),
        (b"no archive", ".zip", "it is no readable zip archive"),
        (packed("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"), ".zip", "document type or entities"),
        (b"<!doctype a><network/>", ".xiidm", "document type or entities"),
        (b"<network/>", ".xiidm", "export it again as IIDM"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(content, suffix, sentence):
    with pytest.raises(SpecError, match=sentence) as error:
        read_powsybl(content, suffix, f"case{suffix}")
    assert str(error.value).startswith(f"case{suffix}: ")
    assert "\n" not in str(error.value)


def test_an_archive_that_unpacks_to_any_size_is_refused(monkeypatch):
    monkeypatch.setattr("contingencies.formats.powsybl.MAX_BYTES", 10_000)
    with pytest.raises(SpecError, match="unpacks to more than"):
        read_powsybl(packed(" " * 1_000_000), ".zip", "case.zip")


def test_without_the_library_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pypowsybl", None)
    path = tmp_path / "case.cdf"
    path.write_text(cdf_text(three_buses()))
    with pytest.raises(UsageError, match=r"not installed; install the extra: pip install 'cct-zoo\[formats\]'"):
        import_network(path, None, tmp_path / "out")
    assert not (tmp_path / "out").exists()
