"""The command line, run in this process."""

from __future__ import annotations

import sys

import pytest

from pipelines.cli import main
from support.spoiled import Said


def run_command(capsys: pytest.CaptureFixture[str], *words: str) -> Said:
    """What `trainledger WORDS` says and how it leaves."""
    capsys.readouterr()
    code = 0
    before, sys.argv = sys.argv, ["trainledger", *words]
    try:
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    finally:
        sys.argv = before
    told = capsys.readouterr()
    return Said(code or 0, told.out, told.err)
