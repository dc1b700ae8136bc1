"""How numbers and tables of the report are written, and what a section says first."""

from dataclasses import replace

import pytest

from zoo.paper.formats import columns, lines_of, number, ours, paper
from zoo.paper.remarks import remarks_of
from zoo.paper.tables import Cell, Quantity, Row, Table
from zoo.paper.verdicts import verdict


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (118744.0, "118,744"), (0.32, "0.32"), (1.6e-6, "1.6e-6"), (202187.8, "202,188")],
)
def test_numbers_are_shown_with_the_digits_they_deserve(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (1.553, 0.2134, "1.55 ± 0.21"),
        (7.862, 1.973, "7.9 ± 2.0"),  # no more decimals than the spread has digits for
        (21.53, 14.2, "22 ± 14"),
        (0.00588, 7.04e-4, "0.00588 ± 0.00070"),
        (203.4, 0.97, "203 ± 1"),  # nor than the mean has
        (2.507, 7.4e-4, "2.51"),  # a spread that would be shown as nought
        (13_980.2, 412.0, "13,980 ± 412"),
        (4.2e-5, 1.13e-5, "(4.2 ± 1.1)e-5"),
        (0.0, 1e-9, "(0.0 ± 1.0)e-9"),
        (2.0, 0.0, "2"),
        (None, None, "–"),
    ],
)
def test_means_and_their_spreads_have_the_same_decimals(mean, std, text):
    assert ours(Cell(mean, std)) == text


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (1.94, 0.2, "1.94 ± 0.20"),
        (0.32, 0.07, "0.32 ± 0.07"),
        (26.2, 11.6, "26.2 ± 11.6"),
        (0.00505, 0.00037, "0.00505 ± 0.00037"),
        (3.23, None, "3.23"),
    ],
)
def test_published_numbers_are_shown_as_they_were_printed(mean, std, text):
    assert paper(Cell(None, None, mean, std)) == text


def test_what_all_rows_would_say_is_said_once():
    quantities = (Quantity("error", "ms"), Quantity("steps"))
    rows = tuple(
        Row(label, (Cell(mine, None, theirs), Cell(1234.5)), f"calibrated; {minutes} min")
        for label, mine, theirs, minutes in (("one", 0.12345, 0.32, 2), ("two", 1.0, 1.0, 1), ("three", 3.0, None, 1))
    )
    table = Table("t", "A table", "Table 1", quantities, rows)
    remarks = remarks_of(table)
    assert remarks.below == ["All rows: calibrated.", "(a) 1 min."]
    assert remarks.rows == ("2 min", "(a)", "(a)")
    assert columns(table) == ["", "error (ms)", "paper", "steps", "remarks"]
    assert lines_of(table)[0] == ["one", "0.123", "0.32", "1,234", "2 min"]
    assert lines_of(table)[2][2] == "–"
    alike = replace(table, rows=tuple(replace(row, why="calibrated") for row in rows))
    assert columns(alike)[-1] == "steps", "no column of remarks where no row has any of its own"


def test_small_states_are_shown_in_powers_of_ten_of_their_unit():
    rows = (Row("one", (Cell(4.88e-4, 7e-5, 1.29e-3, 4.3e-4), Cell(0.5)), ""),)
    table = Table("t", "A table", "Table 6", (Quantity("RMSE omega", "pu"), Quantity("RMSE delta", "rad")), rows)
    assert columns(table) == ["", "RMSE omega (1e-3 pu)", "paper", "RMSE delta (rad)"]
    assert lines_of(table) == [["one", "0.488 ± 0.070", "1.29 ± 0.43", "0.5"]]


@pytest.mark.parametrize(
    ("mean", "std", "words"),
    [
        (0.16, None, "0.16 ms, 2 times smaller than the paper's 0.32"),
        (0.325, None, "0.325 ms, like the paper's 0.32"),
        (1.28, 0.1, "1.28 ms, 4 times the paper's 0.32"),
        (1.28, 0.9, "1.28 ms, 4 times the paper's 0.32 but within the spread of seeds"),
    ],
)
def test_a_section_first_says_how_its_main_number_compares(mean, std, words):
    rows = (Row("ES-PINN", (Cell(mean, std, 0.32, 0.07, count=5),), ""),)
    table = Table("cct", "CCTs", "Table 1", (Quantity("CCT MAE", "ms"),), rows)
    assert verdict("case30-accuracy", [table]) == f"With the paper's residual ES-PINN's CCTs are off by {words}."
    assert verdict("case30-accuracy", []) == ""


def test_a_difference_is_laid_to_the_spread_of_seeds_only_where_there_are_some():
    def said(count):
        rows = (Row("ES-PINN", (Cell(1.28, 0.9, 0.32, 0.07, count),), ""),)
        return verdict("case30-accuracy", [Table("cct", "CCTs", "Table 1", (Quantity("CCT MAE", "ms"),), rows)])

    assert "spread" not in said(2) and "spread" in said(3)


def test_what_depends_on_the_machine_is_not_compared_with_the_paper():
    rows = (
        Row("reduced ODE (compiled, ours)", (Cell(2.8, count=1),), ""),
        Row("ES-PINN, CPU", (Cell(41.5, None, 542.2, count=1),), ""),
    )
    table = Table("runtime", "Time", "Table 2", (Quantity("CCT runtime", "ms"),), rows)
    first = "One CCT takes the compiled ODE, which needs no training, 2.8 ms"
    assert verdict("runtime", [table]) == f"{first}; ES-PINN 41.5 ms."
    alone = replace(table, rows=rows[1:])
    assert verdict("runtime", [alone]) == "", "what continues a sentence is not said without its beginning"


def test_a_verdict_says_numbers_in_whole_units():
    rows = (Row("ES-PINN", (Cell(4.0, None, 1.23, 0.08),), ""),)
    table = Table("trajectories", "States", "Table 1", (Quantity("RMSE delta", "1e-2 rad"),), rows)
    assert verdict("case30-accuracy", [table]) == "ES-PINN's angles are off by 0.04 rad, 3.3 times the paper's 0.0123."


def test_a_verdict_has_a_sentence_for_each_protocol():
    def table(name, error):
        return Table(name, "CCTs", "Table 1", (Quantity("CCT MAE", "ms"),), (Row("ES-PINN", (Cell(error),), ""),))

    assert verdict("case30-accuracy", [table("cct", 1.5), table("cct-shooting", 0.5)]) == (
        "With the paper's residual ES-PINN's CCTs are off by 1.5 ms. "
        "With the shooting residual ES-PINN's CCTs are off by 0.5 ms."
    )
