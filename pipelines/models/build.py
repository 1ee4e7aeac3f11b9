"""Builds one table: stage, validate, commit. Used by Dagster and by the command line alike.

A table (or one month of it) is known by a fingerprint of everything it is made from: its text, its contract and
the content of its inputs. What is up to date is left alone, so a killed build goes on where it stopped, a
restated month rebuilds that month only, and the same input gives the same files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from pipelines.engine import Engine, open_engine
from pipelines.errors import CheckError
from pipelines.models import records
from pipelines.models.catalog import BILLS, GIVEN, PUBLISHED, Catalog, Model, load_catalog
from pipelines.models.given import ARGUMENTS, DELIVERIES, argument_select, delivery_select
from pipelines.models.published import view_published
from pipelines.models.totals import Totals, recorded, totals_of
from pipelines.parse import parse_json
from pipelines.quality.contract import Contract, load_contract
from pipelines.quality.told import first_row
from pipelines.quality.validate import CheckResult, validate
from pipelines.stated.tables import STATED, stated_select
from pipelines.warehouse import Warehouse

# Raised when what a build records of a table changes its form: everything is then built again, once.
_FORM = 2


@dataclass(frozen=True)
class Built:
    """What one table, or one month of it, came to; totals by cost basis and currency."""

    table: str
    period: str | None
    fingerprint: str
    row_count: int
    totals: Totals
    checks: list[CheckResult]
    was_current: bool

    @property
    def failures(self) -> list[CheckResult]:
        """The `error` checks that did not pass."""
        return [check for check in self.checks if check.severity == "error" and not check.passed]


class FailedChecks(CheckError):
    """A table whose `error` checks failed; nothing of it was committed."""

    def __init__(self, built: Built):
        self.built = built
        first = built.failures[0]
        where = built.table + (f" {built.period}" if built.period else "")
        count = "1 row" if first.unexpected_count == 1 else f"{first.unexpected_count} rows"
        row = first_row(first.sample)
        shown = f", first: {row}" if row else ""
        more = f" ({len(built.failures) - 1} more checks failed)" if len(built.failures) > 1 else ""
        super().__init__(
            f"{where}: {first.title} fails for {count}{shown}{more}; correct it at its source and build again, "
            "the last good publication stays."
        )


class Builder:
    """Brings the tables of one warehouse up to date, one at a time."""

    def __init__(self, warehouse: Warehouse, catalog: Catalog | None = None):
        self.warehouse = warehouse
        self.lake = warehouse.lake
        self.pseudonyms = warehouse.pseudonyms
        self.catalog = catalog or load_catalog()

    def build(self, name: str, period: str | None = None) -> Built:
        """Build a table; `period` (YYYY-MM) for one replaced by month, None for one replaced whole.

        Raises FailedChecks when an `error` expectation fails.
        """
        model = self.catalog[name]
        contract = load_contract(model.key)
        fingerprint = self._fingerprint(model, contract, period)
        is_there = self.lake.fingerprint(model.key, period) == fingerprint and self.lake.is_whole(model.key, period)
        if is_there and (recorded := self._recorded(model.key, period, fingerprint)):
            return recorded
        staged = self.warehouse.staged(model.key, period)
        row_count, totals = self._stage(model, contract, period, staged)
        others = self.catalog.shown(contract.reads, lambda other: self._files(other.name, period))
        place = self.warehouse.settings.warehouse
        results = validate(
            model.key,
            [staged],
            contract,
            extra=others,
            memory_limit=place.memory_limit,
            threads=place.threads,
            spill=self.warehouse.spill,
        )
        checks = [self.pseudonyms.check(result) for result in results]
        built = Built(model.key, period, fingerprint, row_count, totals, checks, was_current=False)
        if built.failures:
            raise FailedChecks(built)
        if model.layer == "marts":
            self.pseudonyms.file(staged, contract.key)
        # Recorded before the commit: a kill in between repeats the step, one after it loses nothing.
        self.warehouse.store.write(_record_key(model.key, period), _as_json(built))
        self.lake.commit(model.key, [staged], fingerprint, period)
        return built

    def read_runs(self) -> dict[str, int]:
        """Bring the tracker tables up to date with every run source; rows by table."""
        return records.bring_runs(self.warehouse)

    def read_reservations(self) -> int:
        """Bring the table of reserved capacity up to date with its sources; its rows."""
        return records.bring_reservations(self.warehouse)

    def read_registrations(self) -> dict[str, int]:
        """Bring the tables of pre-registrations up to date with their folder; rows by table."""
        return records.bring_registrations(self.warehouse)

    def read_commitments(self) -> int:
        """Bring the table of commitments told beside the bill up to date with its sources; its rows."""
        return records.bring_commitments(self.warehouse)

    def confirm(self, name: str, period: str | None = None) -> Built:
        """What a table's committed build came to; CheckError when its inputs have changed since."""
        model = self.catalog[name]
        fingerprint = self._fingerprint(model, load_contract(model.key), period)
        built = self._recorded(model.key, period, fingerprint)
        if built is None or self.lake.fingerprint(model.key, period) != fingerprint:
            where = model.key + (f" {period}" if period else "")
            raise CheckError(f"{where} is behind its inputs; run `trainledger build` to the end first.")
        return built

    def open(self, names: Sequence[str], period: str | None = None) -> Engine:
        """An engine in which `names` and all they rest on can be queried."""
        engine = open_engine(self.warehouse.settings.warehouse, spill=self.warehouse.spill)
        try:
            for name in names:
                self._view(engine, name, period, seen=set())
        except BaseException:
            engine.close()
            raise
        return engine

    def _stage(self, model: Model, contract: Contract, period: str | None, staged: Path) -> tuple[int, Totals]:
        with self.open(model.inputs, period) as engine:
            if model.kind == "sql":
                source = model.text
            else:
                made = staged.with_suffix(".made.parquet")
                self._frame(model, engine).write_parquet(made)
                engine.view("made", [made])
                source = "select * from made"
            columns = ", ".join(f'cast("{c.name}" as {c.type}) as "{c.name}"' for c in contract.columns)
            order = ", ".join(f'"{name}"' for name in contract.key or [c.name for c in contract.columns])
            engine.write(f"select {columns} from ({source}) as made_rows order by {order}", staged)
            engine.view("staged_rows", [staged])
            return totals_of(engine, "staged_rows", [c.name for c in contract.columns])

    def _frame(self, model: Model, engine: Engine) -> pl.DataFrame:
        """The rows of a table that Python makes: a reviewed list, or a Polars transform."""
        if model.kind == "reference":
            return pl.read_csv(model.path, infer_schema=False)
        return model.transform({name: engine.query(f"select * from {name}") for name in model.inputs})

    def _view(self, engine: Engine, name: str, period: str | None, seen: set[str]) -> None:
        if name in seen:
            return
        seen.add(name)
        if name in BILLS:
            self.warehouse.bill.view(engine, name, period)
        elif name in ARGUMENTS:
            engine.view_sql(name, argument_select(name, period, self.warehouse.settings.policy))
        elif name == DELIVERIES:
            engine.view_sql(name, delivery_select(self.warehouse.bill.deliveries))
        elif name in STATED:
            engine.view_sql(name, stated_select(name, self.warehouse.settings.decisions, self.warehouse.settings.terms))
        elif name in PUBLISHED:
            view_published(engine, self.lake, name, PUBLISHED[name])
        elif name in self.catalog and not self.catalog[name].stored:
            for wanted in self.catalog[name].inputs:
                self._view(engine, wanted, period, seen)
            engine.view_sql(name, self.catalog[name].text)
        else:
            engine.view(name, self._files(name, period))

    def _files(self, name: str, period: str | None) -> list[Path]:
        """Committed files of a table: of the month for a model made by month, else all of it."""
        key, month = self._address(name, period)
        files = self.lake.files(key, month)
        if not files:
            raise CheckError(f"{key} has not been built yet; run `trainledger build`.")
        return files

    def _address(self, name: str, period: str | None) -> tuple[str, str | None]:
        """Where a table rests, and the month of it that a model of `period` reads."""
        if name in GIVEN:
            return f"raw/{name}", None
        model = self.catalog[name]
        return model.key, period if model.grain == "month" else None

    def _fingerprint(self, model: Model, contract: Contract, period: str | None) -> str:
        known = f"{_FORM}{self.pseudonyms.seal} {model.key} {period}\n{contract.digest}\n{model.text}"
        seal = hashlib.sha256(known.encode())
        for name in self.catalog.resting_on(model):
            if name in BILLS:
                parts = [self.warehouse.bill.fingerprint(name, period)]
            elif name in ARGUMENTS:
                parts = [argument_select(name, period, self.warehouse.settings.policy)]
            elif name == DELIVERIES:
                parts = [delivery_select(self.warehouse.bill.deliveries)]
            elif name in STATED:
                parts = [stated_select(name, self.warehouse.settings.decisions, self.warehouse.settings.terms)]
            elif name in PUBLISHED:
                parts = []  # what was published before is no reason to build again
            elif name in self.catalog and not self.catalog[name].stored:
                parts = [self.catalog[name].text]
            else:
                # Only the content counts: an input rebuilt to the same rows changes nothing here.
                parts = self.lake.contents(*self._address(name, period))
            seal.update(f"\n{name}: {' '.join(parts)}".encode())
        return seal.hexdigest()[:16]

    def _recorded(self, key: str, period: str | None, fingerprint: str) -> Built | None:
        if not self.warehouse.store.exists(_record_key(key, period)):
            return None
        try:
            record = parse_json(self.warehouse.store.read(_record_key(key, period)))
            record["checks"] = [CheckResult(**check) for check in record["checks"]]
            record["totals"] = recorded(record["totals"])
            built = replace(Built(**record), was_current=True)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            return None  # Damaged: as good as none, the table is built again.
        return built if built.fingerprint == fingerprint else None


def _record_key(key: str, period: str | None) -> str:
    return f"checks/{key}/{period or 'whole'}.json"


def _as_json(built: Built) -> bytes:
    record = built.__dict__ | {"checks": [check.__dict__ for check in built.checks]}
    return json.dumps(record, default=str, indent=1, sort_keys=True).encode()
