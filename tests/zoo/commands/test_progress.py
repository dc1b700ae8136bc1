"""The one display of long work: a line that is redrawn on a terminal, a line now and then elsewhere."""

from types import SimpleNamespace

import pytest

from zoo.commands import progress as module
from zoo.commands.progress import Display, progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""

    class Clock:
        now = 0.0

    monkeypatch.setattr(module.time, "monotonic", lambda: Clock.now)
    return Clock


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True)))


def test_off_a_terminal_a_line_is_printed_every_few_seconds_with_the_time_left(clock, capsys):
    with progress("ieee39") as display:
        display("checking", 0, 100)
        for done in range(1, 11):
            clock.now += 1.0
            display("checking", done, 100)
    assert capsys.readouterr().err.splitlines() == [
        "ieee39: checking 5 of 100 (5%), 1:35 left",
        "ieee39: checking 10 of 100 (10%), 1:30 left",
    ]


def test_quick_work_prints_nothing_off_a_terminal(clock, capsys):
    with progress("quick") as display:
        display("reading", 3, 3)
    assert capsys.readouterr().err == ""


def test_time_left_counts_from_where_a_resumed_stage_began(clock, capsys):
    display = Display("moe")
    display("training", 0.8, 1)
    clock.now = 10.0
    display("training", 0.9, 1, "step 900  loss 1.0e-04")
    assert capsys.readouterr().err == "moe: training 90%, 0:10 left  step 900  loss 1.0e-04\n"


def test_an_unknown_total_shows_what_is_done_and_promises_no_time(clock, capsys):
    display = Display("fit")
    clock.now = 6.0
    display("asking", 40, 0)
    assert capsys.readouterr().err == "fit: asking 40\n"


def test_a_terminal_shows_one_line_for_each_stage_and_sentences_stay(clock, capsys, terminal):
    with progress("pipeline") as display:
        display("training", 0.5, 1)
        display("training", 1, 1)
        display.say("Resumes an interrupted training at step 20.")
        display("heads", 1, 4)
    text = capsys.readouterr().err
    assert text.count("\n") == 3, "the stage that ended, the sentence, the last stage"
    assert text.split("\n")[1] == "Resumes an interrupted training at step 20."
    assert "heads [######------------------] 1 of 4 (25%)" in text


def test_interrupted_work_says_that_it_can_be_resumed_and_leaves_the_cursor_on_a_new_line(clock, capsys, terminal):
    with pytest.raises(KeyboardInterrupt), progress("sweep", resumable=True) as display:
        display("trainings", 1, 4)
        raise KeyboardInterrupt
    assert capsys.readouterr().err.endswith("\nWhat is done is kept; the same command resumes.\n")
