"""Ctrl-C ends a command wherever it arrives, within compiled code too."""

import ctypes
import signal
import sys
import time

import pytest

import cli


def test_an_interrupt_within_a_callback_of_compiled_code_is_raised_after_it(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", cli._interrupt_again)
    callback = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        callback()  # nothing can be raised here: Python prints what happened and goes on
        for _ in range(100):
            time.sleep(0.01)


def test_other_mistakes_within_callbacks_are_printed_as_before(monkeypatch, capsys):
    monkeypatch.setattr(sys, "unraisablehook", cli._interrupt_again)
    ctypes.CFUNCTYPE(None)(lambda: 1 / 0)()
    assert "ZeroDivisionError" in capsys.readouterr().err
