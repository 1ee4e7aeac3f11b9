"""A table that one test made is taken over by the next that makes it from the same inputs."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from pathlib import Path

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.build import Builder
from pipelines.models.built import Built
from pipelines.models.catalog import BILLS, PUBLISHED, Model
from pipelines.models.contract import Contract

_make = Builder._make


def making_each_once(folder: Path):
    """`Builder._make` for all builds of a test run: rows and checks of each fingerprint are kept in `folder`."""

    def make(
        builder: Builder, model: Model, contract: Contract, period: str | None, fingerprint: str, staged: Path
    ) -> tuple[Built, str]:
        # An earlier publication is read, but is no part of a fingerprint.
        reads_published = not {*PUBLISHED}.isdisjoint(builder.catalog.resting_on(model))
        if reads_published or not isinstance(builder._engine, DuckDBEngine) or builder._gate:
            return _make(builder, model, contract, period, fingerprint, staged)
        key = fingerprint + _lines(builder, model, period)
        rows, record = folder / f"{key}.parquet", folder / f"{key}.built"
        if not record.exists():
            built = _make(builder, model, contract, period, fingerprint, staged)
            # Other workers may keep the same; each puts whole files in place.
            for kept, put in ((rows, lambda to: shutil.copyfile(staged, to)), (record, lambda to: _write(built, to))):
                unfinished = kept.with_suffix(f".{id(builder)}")
                put(unfinished)
                unfinished.replace(kept)
            return built
        staged.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(rows, staged)
        return pickle.loads(record.read_bytes())

    return make


def _lines(builder: Builder, model: Model, period: str | None) -> str:
    """A digest of the bill that a table reads: tests deliver different lines under one id."""
    if {*BILLS}.isdisjoint(builder.catalog.resting_on(model)):
        return ""
    seals = [file.sha256 for raw in builder.warehouse.bill.ingest(period or "") for file in raw.files]
    return "-" + hashlib.sha256("".join(seals).encode()).hexdigest()[:16]


def _write(built: tuple[Built, str], to: Path) -> None:
    to.write_bytes(pickle.dumps(built))
