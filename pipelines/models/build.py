"""Builds one table: stage, check, commit. Used by Dagster and by the command line alike.

A table, or one part of it, is known by a fingerprint of everything it is made from: its text, its contract and
the content of its inputs. What is up to date is left alone, so a killed build goes on where it stopped, a
restated month rebuilds that month only, and the same input gives the same files. A part is a month or, of tables
made line by line, what one billing source delivers of a month (warehouse/part.py); `period` is the name of one.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from pipelines.base.code import code_digest
from pipelines.base.errors import CheckError
from pipelines.engine import Engine, open_engine
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.built import BuildRecords, Built
from pipelines.models.catalog import BILLS, INPUT_TABLES, PUBLISHED, SCHEMAS, Catalog, Grain, Model, load_catalog
from pipelines.models.checks import Check
from pipelines.models.contract import Contract, load_contract
from pipelines.models.marts import view_published
from pipelines.models.revision import BUILD_CODE
from pipelines.models.session import (
    CONFIGURED,
    DELIVERIES,
    THIS_MONTH,
    configured_select,
    delivery_select,
    month_select,
)  # fmt: skip
from pipelines.models.validate import CheckResult, Gate, Validated, validate
from pipelines.models.warehouse import Warehouse
from pipelines.models.warnings import advice, example
from pipelines.models.written import Counted, written_select
from pipelines.warehouse.lake import Slice
from pipelines.warehouse.part import is_within, month_of, part_of, source_of
from pipelines.warehouse.pseudonyms import Pseudonyms

# Raised when what a build records of a table changes its form: everything is then built again, once.
_FORM = 4
# Parts of one table are committed together up to this many bytes: a killed build repeats no more than these.
_BATCH_BYTES = 64 << 20


class FailedChecks(CheckError):
    """A table whose `error` checks failed; nothing of it was committed."""

    def __init__(self, built: Built):
        self.built = built
        first = built.failures[0]
        where = built.table + (f" {month_of(built.period)}" if built.period else "")
        count = "1 row" if first.unexpected_count == 1 else f"{first.unexpected_count} rows"
        shown = example(built.table, first.sample)
        shown = f", for example {shown}" if shown else ""
        more = f" ({len(built.failures) - 1} more checks failed)" if len(built.failures) > 1 else ""
        super().__init__(
            f"{where}: {first.title} fails for {count}{shown}{more}; correct it at its source and build again, "
            f"the last good publication stays.{advice(built.table, first.check)}"
        )


class Builder:
    """Brings the tables of one warehouse up to date, one at a time, in one engine session.

    Tables are views of the session, named when they are read; steps pass names, never rows.
    """

    def __init__(self, warehouse: Warehouse, catalog: Catalog | None = None):
        self.warehouse = warehouse
        self.lake = warehouse.lake
        self.pseudonyms = warehouse.pseudonyms
        self.catalog = catalog or load_catalog()
        self._records = BuildRecords(warehouse.store)

    def steps(self, parts: Sequence[str], only: Collection[str] = ()) -> list[tuple[str, str | None]]:
        """Every table, and of those kept by parts each of `parts`, inputs first; of `only` these and what they rest on.

        `parts` are months, or months of one source, for which tables kept by month are made too.
        """
        wanted = self._resting_on(only)
        return [
            (model.name, part)
            for model in self.catalog.ordered
            if model.stored and (not only or model.name in wanted)
            for part in self.parts(model, parts)
        ]

    def parts(self, model: Model, wanted: Sequence[str]) -> Sequence[str | None]:
        """The parts of a table that lie in the `wanted` ones, or that these lie in; None for one that has no parts."""
        if model.grain != "source":
            return list(dict.fromkeys(map(month_of, wanted))) if model.grain == "month" else [None]
        delivered = [part_of(each.billing_period, each.source) for each in self.warehouse.bill.deliveries]
        return [part for part in delivered if any(is_within(part, one) for one in wanted)]

    def phases(self, parts: Sequence[str]) -> list[tuple[Grain, list[tuple[str, str | None]]]]:
        """The steps of all tables kept by parts, and of what they rest on, in as few phases as can be; of parts that
        are of one source, those of tables kept by source.

        Each phase is of tables of one grain, and reads only itself and those before it.
        """
        kept = ("source",) if any(map(source_of, parts)) else ("source", "month")
        steps = self.steps(parts, [each.name for each in self.catalog.ordered if each.stored and each.grain in kept])
        turns: tuple[Grain, ...] = ("whole", "source", "month")
        phase: dict[str, int] = {}
        for name in dict.fromkeys(name for name, _ in steps):
            model = self.catalog[name]
            last = max((phase.get(read, 0) for read in self.catalog.resting_on(model)), default=0)
            phase[name] = last + (turns.index(model.grain) - last) % 3
        ordered = sorted(steps, key=lambda step: phase[step[0]])
        return [(turns[number % 3], list(group)) for number, group in groupby(ordered, key=lambda step: phase[step[0]])]

    def build_steps(self, steps: Iterable[tuple[str, str | None]]) -> Iterator[Built]:
        """Build tables in the order of `steps`, the parts of each together; to be read to the end."""
        for name, group in groupby(steps, key=lambda step: step[0]):
            yield from self.build_parts(name, [part for _, part in group])

    def build_months(self, name: str, months: Sequence[str]) -> Iterator[Built]:
        """`build_parts` for months of a table, all their sources included, or the whole of one not kept by parts."""
        return self.build_parts(name, self.parts(self.catalog[name], months))

    def build_parts(self, name: str, parts: Sequence[str | None]) -> Iterator[Built]:
        """Build parts of a table, or the whole of it (None), and commit them together; to be read to the end.

        Raises FailedChecks when an `error` expectation fails; the parts before it are committed.
        """
        model = self.catalog[name]
        made: list[tuple[Built, Slice]] = []
        try:
            for period in parts:
                built, part = self._build(model, period)
                if part:
                    made.append((built, part))
                    if sum(part.size for _, part in made) > _BATCH_BYTES:
                        self._commit(model, made)
                        made = []
                yield built
        except FailedChecks:
            self._commit(model, made)
            raise
        self._commit(model, made)

    def confirm(self, name: str, period: str | None = None) -> Built:
        """What a table's committed build came to; CheckError when its inputs have changed since."""
        model = self.catalog[name]
        fingerprint = self._fingerprint(model, load_contract(model.key), period)
        built = self._records.find(model.key, period, fingerprint)
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

    def _build(self, model: Model, period: str | None) -> tuple[Built, Slice | None]:
        """What a table came to, and its files where they are to be committed."""
        contract = load_contract(model.key)
        fingerprint = self._fingerprint(model, contract, period)
        keys = [model.key, *([_private(model)] if self._is_kept_apart(model) else [])]
        is_there = all(self.lake.fingerprint(k, period) == fingerprint and self.lake.is_whole(k, period) for k in keys)
        if is_there and (recorded := self._records.find(model.key, period, fingerprint)):
            return recorded, None
        staged = self.warehouse.staged(model.key, period)
        built, rows_digest = self._make(model, contract, period, fingerprint, staged)
        if built.failures:
            raise FailedChecks(built)
        if self.warehouse.is_on_store and model.layer not in SCHEMAS:
            objects = self.warehouse.staged_objects(model.key, period)
            return built, Slice(period, tuple(objects), fingerprint, rows_digest, contract.arrow_schema)
        # Public tables are read on one machine, also to see whether their bytes are as published.
        part = Slice(period, tuple(self.warehouse.staged_here(model.key, period)), fingerprint)
        if model.layer not in SCHEMAS:
            return built, replace(part, rows_digest=rows_digest)
        for file, apart in zip(part.staged, self._apart(model, part), strict=True):
            assert isinstance(file, Path)
            if self._is_kept_apart(model):
                shutil.copyfile(file, apart)
            self._pseudonyms_of(model).file(file, contract.key)
        return built, part

    def _make(
        self, model: Model, contract: Contract, period: str | None, fingerprint: str, staged: Path
    ) -> tuple[Built, str]:
        """Write a table's rows to `staged`, check them and add them up; with what stands for its rows (`Slice`)."""
        self._stage(model, contract, period, staged)
        pseudonyms = self._pseudonyms_of(model)
        place = self.warehouse
        here = partial(place.staged_here, model.key, period)
        made = (
            [place.store.uri(o.key) for o in place.staged_objects(model.key, period)] if place.is_on_store else here()
        )
        results, scan = self._checked(model, contract, period, made, here)
        checks = [pseudonyms.check(result) for result in results]
        built = Built(model.key, period, fingerprint, scan.row_count, scan.totals, checks, was_current=False)
        return built, scan.rows_digest

    def _commit(self, model: Model, made: Sequence[tuple[Built, Slice]]) -> None:
        if made:
            # Recorded before the commit: a kill in between repeats the step, one after it loses nothing.
            self._records.write([built for built, _ in made])
            if self._is_kept_apart(model):
                kept = [replace(part, staged=tuple(self._apart(model, part))) for _, part in made]
                self.lake.commit_slices(_private(model), kept)
            self.lake.commit_slices(model.key, [part for _, part in made])

    def _apart(self, model: Model, part: Slice) -> list[Path]:
        """The files of a public table with their ids, of which there is one for each that is published."""
        first = self.warehouse.staged(_private(model), part.period)
        return [first.with_suffix(f".{number}.parquet") for number in range(len(part.staged))]

    def _stage(self, model: Model, contract: Contract, period: str | None, staged: Path) -> None:
        """Make a table's rows, in the types and the order of its contract, as one Parquet file or a folder of them."""
        engine = self._engine
        if not engine.follows:
            # Its views are created again for every table: what they read may have been replaced since.
            engine.close()
            del self._engine
            engine = self._engine
        seen: set[str] = set()
        for name in model.inputs:
            self._view(engine, name, period, seen)
        columns = [(column.name, column.type) for column in contract.columns]
        out = self.warehouse.staged_uri(model.key, period) if self.warehouse.is_on_store else staged
        if model.kind == "sql":
            return engine.write(written_select(columns, contract.key, model.text), out)
        frame = self._listed(model, contract) if model.kind == "reference" else model.transform(engine.query)
        with self.warehouse.lent(frame) as made:
            engine.view("made", [made])
            engine.write(written_select(columns, contract.key, "select * from made"), out)

    def _listed(self, model: Model, contract: Contract) -> pl.DataFrame:
        """A reviewed list; configured machines and prices replace the rows of their key."""
        rows = pl.read_csv(model.path, infer_schema=False)
        if not (configured := self._configured(model)):
            return rows
        added = pl.DataFrame(configured, schema=rows.schema)
        return pl.concat([rows.join(added, on=contract.key, how="anti"), added])

    def _configured(self, model: Model) -> list[dict[str, Any]]:
        settings = self.warehouse.settings
        lists = {"ref_instance_type": settings.machines, "ref_list_price": settings.prices}
        return [one.listed for one in lists.get(model.name, ())]

    def check(self, name: str) -> list[CheckResult]:
        """How the checks of a committed table come out now, over all its months."""
        model = self.catalog[name]
        files = self._files(name, None)
        here = partial(self.lake.files, self._address(name, None)[0])
        return self._checked(model, load_contract(model.key), None, files, here)[0]

    def _checked(
        self,
        model: Model,
        contract: Contract,
        period: str | None,
        files: Sequence[Path | str],
        here: Callable[[], Sequence[Path]],
    ) -> tuple[list[CheckResult], Counted]:
        """What the checks of a table's files come to; `here` brings those of a mart, which are few, to this machine."""
        self._view_checked(self._engine, model, contract, period, files)
        gate = self._gate if model.layer == "marts" else None
        if gate and self._checker is not self._engine:
            # What other tables hold is compared by the engine alone: they may be as long as the bill.
            self._view_checked(self._checker, model, replace(contract, reads=()), period, here())
            gate = partial(_without, contract.reads, gate)
        return validate(self._engine, model.name, contract, gate=gate)

    def _view_checked(
        self, engine: Engine, model: Model, contract: Contract, period: str | None, files: Sequence[Path | str]
    ) -> None:
        seen = {model.name}
        for name in contract.reads:
            self._view(engine, name, period, seen)
        engine.view(model.name, files)

    @cached_property
    def _engine(self) -> Engine:
        """The session that makes tables."""
        return open_engine(self.warehouse.settings.warehouse, spill=self.warehouse.spill)

    @cached_property
    def _checker(self) -> DuckDBEngine:
        """The session of the gate, the same one where it can be."""
        if isinstance(self._engine, DuckDBEngine):
            return self._engine
        place = self.warehouse.settings.warehouse
        return DuckDBEngine(memory_limit=place.memory_limit, threads=place.threads, spill=self.warehouse.spill)

    @cached_property
    def _gate(self) -> Gate | None:
        if self.warehouse.settings.warehouse.gate == "none":
            return None
        from pipelines.models.gate import ExpectationsGate

        return ExpectationsGate(self._checker)

    def _view(self, engine: Engine, name: str, period: str | None, seen: set[str]) -> None:
        if name in seen:
            return
        seen.add(name)
        if name in BILLS:
            self.warehouse.bill.view(engine, name, period)
        elif name in PUBLISHED:
            view_published(engine, self.lake, name, PUBLISHED[name], is_on_store=self.warehouse.is_on_store)
        elif select := self._select(name, period):
            for wanted in self.catalog[name].inputs if name in self.catalog else ():
                self._view(engine, wanted, period, seen)
            engine.view_sql(name, select)
        else:
            engine.view(name, self._files(name, period))

    def _select(self, name: str, period: str | None) -> str | None:
        """The SELECT of a table that is computed where it is read; None for a stored one."""
        if name == THIS_MONTH:
            return month_select(period and month_of(period))
        if name == DELIVERIES:
            return delivery_select(self.warehouse.bill.deliveries)
        if name in CONFIGURED:
            return configured_select(name, self.warehouse.settings)
        return self.catalog[name].text if name in self.catalog and not self.catalog[name].stored else None

    def _files(self, name: str, period: str | None) -> Sequence[Path | str]:
        """Committed files of a table: of the part for a model made by parts, else all of it."""
        key, month = self._address(name, period)
        find = self.lake.addresses if self.warehouse.is_on_store else self.lake.files
        files = find(key, month)
        if not files and name in self.catalog:
            # A publication names no tables that are kept apart.
            files = find(self.catalog[name].key, month)
        if not files:
            raise CheckError(f"{key} has not been built yet; run `trainledger build`, or `migrate` after an upgrade.")
        return files

    def _resting_on(self, names: Collection[str]) -> set[str]:
        """The tables themselves, what they are made from, and what the checks of any of them read."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self.catalog and name not in found:
                found.add(name)
                waiting += [*self.catalog[name].inputs, *load_contract(self.catalog[name].key).reads]
        return found

    def _address(self, name: str, period: str | None) -> tuple[str, str | None]:
        """Where a table rests, and the part of it that a model of `period` reads: of a source its own alone."""
        if name in INPUT_TABLES:
            return f"raw/{name}", None
        model = self.catalog[name]
        key = _private(model) if self._is_kept_apart(model) else model.key
        if model.grain == "whole" or period is None:
            return key, None
        return key, month_of(period) if model.grain == "month" else period

    def _is_kept_apart(self, model: Model) -> bool:
        """Whether a public table is also stored with its ids, for other tables to be made from.

        Where ids become pseudonyms, a public table no longer joins the tables behind it.
        """
        return bool(self.pseudonyms) and model.layer in SCHEMAS and model.name in self._inputs

    def _pseudonyms_of(self, model: Model) -> Pseudonyms:
        """What makes the pseudonyms of a table: some are made from published rows, which have theirs."""
        published = {name for name, key in PUBLISHED.items() if key.partition("/")[0] in SCHEMAS}
        has_published = bool(self.catalog.behind(model.name) & published)
        return self.pseudonyms if has_published or not self.pseudonyms else self.pseudonyms.of_sources()

    @cached_property
    def _inputs(self) -> frozenset[str]:
        """The tables that other tables, or checks of them, read."""
        models = self.catalog.ordered
        reads = (name for model in models for name in (*model.inputs, *load_contract(model.key).reads))
        return frozenset(reads)

    def _fingerprint(self, model: Model, contract: Contract, period: str | None) -> str:
        known = f"{_FORM}{code_digest(*BUILD_CODE)}{self.pseudonyms.seal} {model.key} {period}\n{contract.digest}\n"
        seal = hashlib.sha256(f"{known}{model.text}{model.code}{self._configured(model) or ''}".encode())
        for name in self.catalog.resting_on(model):
            if name in BILLS:
                parts = [self.warehouse.bill.fingerprint(name, period)]
            elif name in PUBLISHED:
                parts = []  # an earlier publication is no reason to build again
            elif select := self._select(name, period):
                parts = [select]
            else:
                # Only the content counts: an input rebuilt to the same rows changes nothing here.
                parts = self.lake.contents(*self._address(name, period))
            seal.update(f"\n{name}: {' '.join(parts)}".encode())
        return seal.hexdigest()[:16]


def _without(others: Collection[str], gate: Gate, table: str, checks: Sequence[Check]) -> Mapping[str, Validated]:
    """What a gate counts for checks that read none of the `others`."""
    return gate(table, [check for check in checks if not any(name in check.query for name in others)])


def _private(model: Model) -> str:
    """The address of a public table's rows with their ids, apart from the folders that others read."""
    return f"private/{model.name}"
