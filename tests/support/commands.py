"""The command line, run in this process."""

from __future__ import annotations

import sys

import pytest

from pipelines.cli import main
from support.spoiled import CommandResult


def run_command(capsys: pytest.CaptureFixture[str], *words: str) -> CommandResult:
    """The output of `trainledger WORDS` and its exit code."""
    capsys.readouterr()
    code = 0
    before, sys.argv = sys.argv, ["trainledger", *words]
    try:
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    finally:
        sys.argv = before
    output = capsys.readouterr()
    return CommandResult(code or 0, output.out, output.err)
