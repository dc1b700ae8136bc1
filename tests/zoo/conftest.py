"""The command line as tests call it."""

import sys

import pytest

import cli


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command line in this process; returns (exit code, standard output, standard error)."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cct-zoo", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call
