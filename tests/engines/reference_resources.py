"""A warehouse built by DuckDB, the reference that every other engine is held to."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pipelines.config.settings import load_settings
from pipelines.models.build import Builder
from pipelines.models.catalog import Model
from pipelines.models.contract import load_contract
from pipelines.models.records import RECORDS
from pipelines.models.validate import CheckResult
from pipelines.models.warehouse import Warehouse
from pipelines.models.written import Counted


class House:
    """A warehouse with every table built by DuckDB, and the way to build one of them again elsewhere."""

    def __init__(self, config: Path, tracker: dict[str, Path] | None = None):
        self._settings = load_settings(config)
        self._builder = Builder(Warehouse(self._settings))
        self.months = sorted({delivery.billing_period for delivery in self._builder.warehouse.bill.deliveries})
        self._scratch = config.parent / "scratch"
        self._built: dict[tuple[str, str | None], Path] = {}
        lake = self._builder.lake
        with lake.lock():
            for what, read in RECORDS.items():
                if tracker is None or what != "training runs":
                    read(self._builder.warehouse)
            for name, file in (tracker or {}).items():
                lake.commit(f"raw/{name}", [file], _fingerprint(name), None)
            for model in self._builder.catalog.ordered:
                for month in self.slices(model):
                    made = self.build(model, month, "duckdb")
                    self._built[model.key, month] = made
                    if model.stored:
                        twin = made.with_suffix(".commit")
                        twin.hardlink_to(made)
                        lake.commit(model.key, [twin], _fingerprint(f"{model.key} {month}"), month)

    def publish(self) -> None:
        """Make what was built the last publication, as the next delivery's build finds it."""
        lake = self._builder.lake
        stored = [model.key for model in self._builder.catalog.ordered if model.stored]
        tables = {
            key: {"version": lake.record(key)["version"], "files": [f.name for f in lake.files(key)]} for key in stored
        }
        lake.publish({"code_revision": "", "inputs": {"deliveries": [], "tags": {}}, "tables": tables, "checks": []})

    def slices(self, model: Model) -> list[str | None]:
        """The parts a model is made by, months or months of a source, or None for the whole."""
        return list(self._builder.parts(model, self.months))

    def reference(self, model: Model, month: str | None) -> Path:
        """What DuckDB made of it."""
        return self._built[model.key, month]

    def build(self, model: Model, month: str | None, engine: str) -> Path:
        """Make a table, or one month of it, with an engine and from what DuckDB made; nothing is checked or kept."""
        builder = self._with(engine)
        out = self._scratch / engine / model.name / f"{month or 'whole'}.parquet"
        out.parent.mkdir(parents=True, exist_ok=True)
        builder._stage(model, load_contract(model.key), month, out)
        return out

    def check(self, model: Model, month: str | None, engine: str) -> tuple[list[CheckResult], Counted]:
        """How the checks of what DuckDB made come out on an engine, and its counts.

        Without the digest of the rows, which an engine has only where its files of equal rows may differ.
        """
        files = [self.reference(model, month)]
        results, counts = self._with(engine)._checked(model, load_contract(model.key), month, files, lambda: files)
        return results, counts._replace(rows_digest="")

    def _with(self, engine: str) -> Builder:
        """The builder of this warehouse on an engine."""
        if engine == "duckdb":
            return self._builder
        place = self._settings.warehouse.model_copy(update={"engine": engine})
        return Builder(Warehouse(self._settings.model_copy(update={"warehouse": place})))


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
