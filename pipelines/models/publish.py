"""Plans a build and publishes its end: which months changed, and one record that makes the marts visible."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, cast

from pipelines.base.errors import shown
from pipelines.ingest.runs.records import ASIDE
from pipelines.models.catalog import PUBLISHED_KEYS, WRITTEN_RAW, load_catalog
from pipelines.models.records import RECORDS, lacks_files
from pipelines.models.revision import code_revision
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse.lake import Publication
from pipelines.warehouse.part import month_of, part_of
from pipelines.warehouse.retention import Pruned

# Most builds find nothing new and end with their plan, which needs no builder.
if TYPE_CHECKING:
    from pipelines.config.settings import Retention
    from pipelines.models.build import Builder

# The check of stg_tracker__run that finds them.
_OPEN_RUN = "run_without_a_recorded_end"
# The result that has the warnings of reading a source.
_WARNED = "source_without_warnings"


@dataclass(frozen=True)
class Plan:
    """What a refresh would do. `months` are all delivered ones, `changed` those a refresh must look at; `damaged`
    are files of the newest publication that are gone or cut short; `is_partial` where a record was not there when
    that one read it."""

    inputs: dict[str, object]
    months: tuple[str, ...]
    changed: tuple[str, ...]
    publication: Publication | None
    damaged: tuple[str, ...] = ()
    is_partial: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the newest publication was made from exactly these inputs by this code."""
        return self.publication is not None and self.publication.inputs == self.inputs

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to do: it was, and its files and what it read are complete."""
        return self.is_known and not self.damaged and not self.is_partial

    @property
    def parts(self) -> tuple[str, ...]:
        """What each source delivers of each month."""
        deliveries = cast(list[dict[str, str]], self.inputs["deliveries"])
        return tuple(part_of(each["billing_period"], each["source"]) for each in deliveries)

    @property
    def requested_months(self) -> tuple[str, ...]:
        """The months a run must build: the changed ones, or all when something else changed or is damaged."""
        return self.months if self.damaged else self.changed or self.months

    @property
    def digest(self) -> str:
        """A short name of this state of the world, the same as long as nothing changes."""
        return hashlib.sha256(repr((self.inputs, self.damaged)).encode()).hexdigest()[:12]


def plan(warehouse: Warehouse) -> Plan:
    """List every source once and compare with the newest publication.

    UsageError where a newer version of trainledger made that one.
    """
    publication = warehouse.lake.publications.predecessor()
    # Readers open the record, so it shows no id either; fingerprints and the names of sources are searched by.
    veil = partial(warehouse.pseudonyms.value, "")
    deliveries = [
        {
            "source": delivery.source,
            "billing_period": delivery.billing_period,
            "delivery_id": veil(delivery.delivery_id),
            "kind": delivery.kind,
            "manifest": veil(delivery.manifest_key),
            "fingerprint": delivery.fingerprint,
            **({"is_gone": True} if delivery.is_gone else {}),
        }
        for delivery in warehouse.bill.deliveries
    ]
    settings = warehouse.settings
    configured = {"machines": settings.machines, "prices": settings.prices}
    inputs: dict[str, object] = {
        "code_revision": code_revision(),
        "deliveries": deliveries,
        "runs": RECORDS["training runs"].fingerprints(warehouse),
        "reservations": RECORDS["reservations"].fingerprints(warehouse),
        "registrations": RECORDS["registrations"].fingerprint(warehouse, settings.proof),
        "decisions": veil(settings.decisions.record()),
        "teams": veil(settings.teams.record()),
        "terms": veil(settings.terms.model_dump(mode="json")),
        "commitments": RECORDS["commitments"].fingerprints(warehouse),
        "invoices": RECORDS["invoices"].fingerprints(warehouse),
        "policy": settings.policy.model_dump(mode="json"),
        "tags": {name: list(keys) for name, keys in sorted(settings.tag_keys.items())},
        **({"serving": RECORDS["serving"].fingerprints(warehouse)} if settings.serving else {}),
        **({"capacity_offers": RECORDS["capacity offers"].fingerprints(warehouse)} if settings.capacity_offers else {}),
        **{name: veil([one.model_dump(mode="json") for one in rows]) for name, rows in configured.items() if rows},
        **({"privacy": warehouse.pseudonyms.record()} if warehouse.pseudonyms else {}),
    }
    months = tuple(sorted({str(delivery["billing_period"]) for delivery in deliveries}))
    damaged = tuple(warehouse.lake.damaged(publication)) if publication else ()
    warned = [check for check in publication.checks if check["check"] == _WARNED] if publication else []
    is_partial = lacks_files(row["warning"] for check in warned for row in check["sample"])
    return Plan(inputs, months, _changed(inputs, months, publication), publication, damaged, is_partial)


def _changed(inputs: dict, months: tuple[str, ...], publication: Publication | None) -> tuple[str, ...]:
    if publication is None:
        return months
    before = publication.inputs
    if any(before.get(part) != inputs[part] for part in inputs if part != "deliveries"):
        return months
    known = {(d["source"], d["billing_period"]): d["fingerprint"] for d in before["deliveries"]}
    found = inputs["deliveries"]
    changed = {d["billing_period"] for d in found if known.get((d["source"], d["billing_period"])) != d["fingerprint"]}
    # The end of an open run, and with it what the run holds, may move with any month.
    has_open_run = any(check["check"] == _OPEN_RUN and not check["passed"] for check in publication.checks)
    return months if changed and has_open_run else tuple(sorted(changed))


def drop_undelivered(builder: Builder, planned: Plan) -> None:
    """Take out of the tables what no configured source has delivered; their earlier versions keep it."""
    for model in builder.catalog.ordered:
        if model.stored and model.grain != "whole":
            for part in sorted({*builder.lake.periods(model.key)} - {*builder.parts(model, planned.months)}):
                with builder.lake.lock(month_of(part)):
                    builder.lake.drop(model.key, part)


def publish(builder: Builder, planned: Plan) -> Publication:
    """Make the tables of a finished build visible together, with what they were made from.

    Returns the newest publication where it shows just that already. Raises CheckError when a table is not up to
    date with its inputs: a publication never mixes two builds.
    """
    from pipelines.models.marts import is_copied, refuse_altered, tables_before, write_copy

    lake = builder.lake
    built = [builder.confirm(name, period) for name, period in builder.steps(planned.months)]
    tables = {model.key: lake.record(model.key) for model in builder.catalog.ordered if model.stored}
    # Before the record: it must not become visible over files that cannot be read.
    refuse_altered(builder.warehouse, tables)
    if planned.publication and planned.is_known and planned.publication.tables == tables:
        if not is_copied(builder.warehouse, planned.publication):
            write_copy(builder.warehouse, planned.publication, None)
        return planned.publication
    builder.warehouse.keep_teams(planned.inputs)
    before = tables_before(lake)
    publication = lake.publish(
        {
            "code_revision": code_revision(),
            "inputs": planned.inputs,
            "tables": tables,
            "before": {key: {"files": before[key]["files"]} for key in PUBLISHED_KEYS if key in before},
            "raw": {key: {"files": [file.name for file in lake.files(key)]} for key in WRITTEN_RAW},
            "checks": [
                *({"table": made.table, "period": made.period, **c.__dict__} for made in built for c in made.checks),
                *_reading_checks(builder, planned.months),
            ],
        }
    )
    write_copy(builder.warehouse, publication, planned.publication)
    builder.warehouse.bill.forget_superseded()
    if retention := builder.warehouse.settings.warehouse.retention:
        prune(builder.warehouse, retention, datetime.now(UTC))
    return publication


def prune(warehouse: Warehouse, retention: Retention, now: datetime, *, dry_run: bool = False) -> Pruned:
    """Remove the publications that `retention` does not keep, and what only they showed; the caller holds the lock.

    UsageError where a newer version of trainledger made the newest one: it may need files this one does not know.
    """
    warehouse.lake.publications.predecessor()
    stored = {model.key for model in load_catalog().ordered if model.stored}
    private = {f"private/{key.partition('/')[2]}" for key in stored if warehouse.pseudonyms}
    known = {*stored, *private, *WRITTEN_RAW}
    pruned = warehouse.lake.prune(now, retention.days, retention.publications, known, dry_run=dry_run)
    if not dry_run:
        kept = warehouse.lake.publications.all()
        deliveries = (delivery for one in kept for delivery in one.inputs.get("deliveries", ()))
        warehouse.bill.forget_unpublished({delivery["fingerprint"] for delivery in deliveries})
        warehouse.forget_teams(kept)
    return pruned


def _tagged_costs(builder: Builder) -> dict[str, str]:
    """What the bill tags with each run that is in no run source, in words, by how warnings begin that set it aside."""
    with builder.open(["detail_provisional_run"]) as engine:
        rows = engine.query(
            "select run_id, string_agg(printf('%.2f', effective_cost_usd) || ' ' || billing_currency, ' and ' "
            "order by billing_currency) from detail_provisional_run group by run_id"
        ).rows()
    return {f"Run {shown(run_id)}": f"{amounts} is tagged with a run that is not read. " for run_id, amounts in rows}


def _reading_checks(builder: Builder, months: tuple[str, ...]) -> Iterator[dict[str, object]]:
    """The warnings of reading the sources, as results next to those of the checks."""
    from pipelines.models.validate import CheckResult

    warehouse = builder.warehouse
    found: list[tuple[str, str | None, Sequence[str]]] = [
        (f"raw/{table}", month, sentences)
        for month in months
        for table, sentences in warehouse.bill.warnings(month).items()
    ]
    for records in RECORDS.values():
        if records.sources(warehouse.settings):
            found.append((f"raw/{records.tables[0]}", None, records.warnings(warehouse)))
    costs = _tagged_costs(builder) if any(ASIDE in one for _, _, sentences in found for one in sentences) else {}
    for table, period, sentences in found:
        result = CheckResult(
            check=_WARNED,
            severity="warn",
            passed=not sentences,
            observed=f"{len(sentences)} warnings",
            unexpected_count=len(sentences),
            sample=[
                {"warning": warehouse.pseudonyms.text(costs.get(sentence.partition(ASIDE)[0], "") + sentence)}
                # A missing file is shown, as the next build has to know of it.
                for sentence in sorted(sentences, key=lambda one: not lacks_files([one]))[:20]
            ],
            title="warnings of reading a source",
        )
        yield {"table": table, "period": period, **result.__dict__}
