"""How the reading of all sources ends: what a build does before it makes its first table."""

from __future__ import annotations

import time
from pathlib import Path

from pipelines.base.console import printable, shortened
from pipelines.cli import _explained
from pipelines.config.settings import load_settings
from pipelines.models.build import Builder
from pipelines.models.publish import plan
from pipelines.models.records import RECORDS
from pipelines.models.refresh import read_bill
from pipelines.models.warehouse import Warehouse

SECONDS = 60


def read_sources(config: Path) -> None:
    """What a build reads, up to the first table that it makes."""
    builder = Builder(Warehouse(load_settings(config)))
    with builder.lake.lock():
        builder.warehouse.sweep()
        planned = plan(builder.warehouse)
        read_bill(builder, planned, planned.months)
        for read in RECORDS.values():
            read(builder.warehouse)
            read_warnings = read.warnings(builder.warehouse)
            assert all(len(sentence) < 3_000 for sentence in read_warnings), read_warnings


def outcome(config: Path) -> tuple[int, str]:
    """How reading ends, as the command ends: exit code and sentence."""
    begun = time.monotonic()
    try:
        read_sources(config)
        code, sentence = 0, ""
    except Exception as error:
        sentence, code = _explained(error)
        if sentence.startswith("Unexpected"):
            raise
    assert time.monotonic() - begun < SECONDS
    return code, printable(shortened(sentence))


def is_one_sentence(sentence: str) -> bool:
    return sentence.endswith(".") and sentence.isprintable() and len(sentence) < 3_000
