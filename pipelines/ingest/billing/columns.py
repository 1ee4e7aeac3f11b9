"""The bill columns read from each kind of export, as reviewed in columns.csv, and their position in a delivered file.

Each row of the list is a column of the normalized bill `raw_table`, with the type it is read as, its other names in the
order they are tried, whether a delivery without it is refused (`each line`: also a line), what a value of the wrong
type does (`refuse` the file, `null`: count as unknown, `text`: stand as its text, a map too), the values of a column
with few, and the source of this with its date.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pipelines.base.errors import SourceError
from pipelines.base.resources import listed_rows

REVIEWED = Path(__file__).with_name("columns.csv")
TAGS = "TAGS"
MONEY = "DECIMAL(20,10)"

_MAP_VALUE = re.compile(r"(?P<column>\w+)\['(?P<key>[^']+)'\]")
# What a physical type may feed; `any` is text from a csv, judged value by value.
_FORMS = {"VARCHAR": "text", "TIMESTAMP": "time", MONEY: "number"}
_KINDS = {"text": "text", "time": "a timestamp", "number": "a number"}


@dataclass(frozen=True)
class Column:
    """One column of the normalized bill; a bad value is refused, or else read as missing and counted."""

    name: str
    type: str
    aliases: tuple[str, ...]
    required: bool
    refuses: bool
    is_filled: bool
    allowed: tuple[str, ...]
    takes_any_type: bool = False


@dataclass(frozen=True)
class Delivered:
    """A column as a file has it: `form` is text, number, time, map, any, null or other; `type` is Arrow's."""

    name: str
    form: str
    type: str


@dataclass(frozen=True)
class Source:
    """The source of values: a position among the file's columns, and a key when that column is a map."""

    position: int
    key: str | None = None


@dataclass(frozen=True)
class Tag:
    """A tag column of a bill: `key` is None for a map that holds many tags."""

    position: int
    container: str
    key: str | None = None


@dataclass(frozen=True)
class Layout:
    """How one file feeds the normalized columns: sources in order of preference, and its tag columns.

    `warnings` are what is read as missing; they do not name the file.
    """

    sources: dict[str, tuple[Source, ...]]
    tags: tuple[Tag, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class TagKey:
    """A tag of a file: its key as delivered, the kind of column it came in, and the Parquet column."""

    key: str
    container: str
    column: str
    in_map: bool


@dataclass(frozen=True)
class RawFile:
    """One delivered file in the raw store: Parquet named `name` of `size` bytes, rows in the delivered order.

    `billed_total`: of a csv with every delivered digit, of Parquet to 10 places a line; `sha256` is of the
    delivered bytes; `focus_version` is by the delivered columns, empty for a report of AWS.
    """

    key: str
    name: str
    size: int
    line_count: int
    billed_total: Decimal
    columns: tuple[Delivered, ...]
    tag_keys: tuple[TagKey, ...]
    warnings: tuple[str, ...]
    sha256: str = ""
    focus_version: str = ""


@dataclass(frozen=True)
class ColumnList:
    """The columns we read of one family of exports, as reviewed in columns.csv.

    `table` is the raw table they make, `billed` the column whose sum is kept with each file, `list_price` what it
    would be at public prices, `export` what the delivered files are called.
    """

    table: str
    billed: str
    list_price: str
    export: str

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self._listed if column.type != TAGS)

    @cached_property
    def containers(self) -> dict[str, tuple[str, ...]]:
        """Columns that hold tags, with their aliases: as a map of this name, or one column per tag after `<name>_`."""
        return {column.name: column.aliases for column in self._listed if column.type == TAGS}

    @cached_property
    def map_names(self) -> frozenset[str]:
        """Columns that are maps, JSON text in a csv."""
        found = (_MAP_VALUE.fullmatch(alias) for column in self.columns for alias in column.aliases)
        names = (name for container, aliases in self.containers.items() for name in (container, *aliases))
        return frozenset(names) | {match["column"] for match in found if match}

    @cached_property
    def digest(self) -> str:
        """Changes with the list, so that a csv converted by an older list is converted again."""
        return hashlib.sha256(repr(self._listed).encode()).hexdigest()

    @cached_property
    def _listed(self) -> tuple[Column, ...]:
        return tuple(
            Column(
                row["column_name"],
                row["type"],
                tuple(filter(None, row["aliases"].split("|"))),
                row["required"] != "no",
                row["on_bad_value"] == "refuse",
                row["required"] == "each line",
                tuple(filter(None, row["allowed_values"].split("|"))),
                row["on_bad_value"] == "text",
            )
            for row in listed_rows(REVIEWED)
            if row["raw_table"] == self.table
        )

    def layout(self, columns: Sequence[Delivered], where: str) -> Layout:
        """How a file's columns feed the bill; `where` names the file in errors.

        Raises SourceError when a required column is absent or a column has a type it cannot have.
        """
        positions: dict[str, list[int]] = {}
        tags: list[Tag] = []
        warnings: list[str] = []
        for position, column in enumerate(columns):
            name = snake(column.name)
            if column.form != "null":
                positions.setdefault(name, []).append(position)
            tags += self._tags_of(column, name, position)
            if name in self.map_names and column.form not in ("map", "any", "null"):
                warnings.append(
                    f"column {column.name} is {column.type}, not a map of texts; it is read as missing. Have it "
                    "delivered as a map."
                )
        sources: dict[str, tuple[Source, ...]] = {}
        for wanted in self.columns:
            found, warning = _sources_of(wanted, columns, positions, where)
            sources[wanted.name] = found
            warnings += warning
            if wanted.required and not any(snake(c.name) in (wanted.name, *wanted.aliases) for c in columns):
                self._refuse_other_kind(columns, where)
                fix = f"it is not a complete {self.export}, or the export must be set up to deliver that column"
                raise SourceError(f"{where} has no column {wanted.name}; {fix}.")
        if self is FOCUS and (unknown := unknown_columns([column.name for column in columns])):
            warnings.append(
                f"{', '.join(unknown[:8])} {'is' if len(unknown) == 1 else 'are'} not of FOCUS 1.0 to {NEWEST} and "
                "not read. Check whether a newer version of trainledger reads them."
            )
        order = list(self.containers)
        tags.sort(key=lambda tag: order.index(tag.container))
        return Layout(sources, tuple(tags), tuple(warnings))

    def version(self, columns: Sequence[str]) -> str:
        """The version of FOCUS of a file with these columns; empty for a report of AWS."""
        return focus_version(columns) if self is FOCUS else ""

    def _refuse_other_kind(self, columns: Sequence[Delivered], where: str) -> None:
        """A manifest without columns may be of FOCUS or of a report; its files show which."""
        names = {snake(column.name).replace("_", "") for column in columns}
        for other in LISTS:
            if other is not self and other.billed.replace("_", "") in names:
                kind = "focus" if other is FOCUS else "auto"
                fix = f'write kind = "{kind}" in its [[billing]] entry'
                raise SourceError(f"{where} has the columns of another kind of bill ({other.export}); {fix}.")

    def _tags_of(self, column: Delivered, name: str, position: int) -> list[Tag]:
        for container, aliases in self.containers.items():
            if name in (container, *aliases) and column.form == "map":
                return [Tag(position, container)]
            if name.startswith(f"{container}_") and column.form in ("text", "any"):
                key = column.name.partition("/")[2] or column.name[len(container) + 1 :]
                return [Tag(position, container, key)]
        return []


CUR = ColumnList(
    "aws_cur_line_item", "line_item_unblended_cost", "pricing_public_on_demand_cost", "AWS cost and usage report"
)
FOCUS = ColumnList("aws_focus_line_item", "billed_cost", "list_cost", "FOCUS export")
LISTS = (CUR, FOCUS)


def tag_containers() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for listed in LISTS for name in listed.containers))


@cache
def snake(name: str) -> str:
    """AWS's rule from csv header to Athena name: `lineItem/UnblendedCost` -> `line_item_unblended_cost`.

    A name already in snake case stays as it is.
    """
    parted = re.sub(r"(?=[A-Z])", "_", name).lower()
    return re.sub(r"[^a-z0-9]+", "_", parted).strip("_")


def _sources_of(
    wanted: Column, columns: Sequence[Delivered], positions: dict[str, list[int]], where: str
) -> tuple[tuple[Source, ...], list[str]]:
    plain: list[Source] = []
    in_map: list[Source] = []
    warnings: list[str] = []
    for alias in (wanted.name, *wanted.aliases):
        value = _MAP_VALUE.fullmatch(alias)
        if value is None:
            same = positions.get(alias, [])
            plain += [Source(position) for position in same]
            if len(same) > 1:
                names = " and ".join(columns[position].name for position in same)
                warnings.append(
                    f"the columns {names} are one column, {alias}; each line takes the first that is filled. Keep one."
                )
        else:
            held = positions.get(value["column"], [])
            in_map += [Source(position, value["key"]) for position in held if columns[position].form == "map"]
    fits = _FORMS[wanted.type]
    misfits = [s for s in plain if columns[s.position].form not in (fits, "any") and not wanted.takes_any_type]
    if misfits:
        column = columns[misfits[0].position]
        fault = f"column {column.name} is {column.type}, not {_KINDS[fits]}"
        if wanted.refuses:
            raise SourceError(f"{where}: {fault}; deliver it again with the type AWS gives it.")
        plain = [source for source in plain if source not in misfits]
        return tuple(plain), [
            *warnings,
            f"{fault}; it is read as missing. Have it delivered with the type AWS gives it.",
        ]
    # Reading a map costs as much as many columns, so it only stands in for a column that is absent.
    return tuple(plain or in_map), warnings


NEWEST = "1.4"
# Cost and Usage of FOCUS 1.4, then what 1.4 removed (facts standards-2026 1.1; the official list of columns).
_KNOWN = frozenset(
    """
    AllocatedMethodDetails AllocatedMethodId AllocatedResourceId AllocatedResourceName AllocatedTags
    AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingAccountType BillingCurrency
    BillingPeriodEnd BillingPeriodStart CapacityReservationId CapacityReservationStatus ChargeCategory
    ChargeClass ChargeDescription ChargeFrequency ChargePeriodEnd ChargePeriodStart CommitmentDiscountCategory
    CommitmentDiscountId CommitmentDiscountName CommitmentDiscountQuantity CommitmentDiscountStatus
    CommitmentDiscountType CommitmentDiscountUnit CommitmentProgramEligibilityDetails ConsumedQuantity
    ConsumedUnit ContractApplied ContractedCost ContractedUnitPrice EffectiveCost HostProviderName
    InvoiceDetailId InvoiceId InvoiceIssuerName ListCost ListUnitPrice PricingCategory PricingCurrency
    PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost PricingCurrencyListUnitPrice PricingQuantity
    PricingUnit RegionId RegionName ResourceId ResourceName ResourceType ServiceCategory ServiceName
    ServiceProviderName ServiceSubcategory SkuId SkuMeter SkuPriceDetails SkuPriceId SubAccountId SubAccountName
    SubAccountType Tags
    ProviderName PublisherName
    """.lower().split()
)
# The columns that a version added, the newest first; a file may lack some of them.
_ADDED = {
    NEWEST: {"invoicedetailid", "commitmentprogrameligibilitydetails"},
    "1.3": {"serviceprovidername", "hostprovidername", "contractapplied", "allocatedmethodid", "allocatedresourceid"},
    "1.2": {"invoiceid", "billingaccounttype", "pricingcurrency"},
    "1.1": {"servicesubcategory", "skumeter"},
}
_REMOVED = {"providername", "publishername"}


def focus_version(columns: Sequence[str]) -> str:
    """The version of a Cost and Usage file with these columns, `1.0` to `1.4`."""
    names = {_plain(name) for name in columns}
    version = next((version for version, added in _ADDED.items() if names & added), "1.0")
    # A 1.4 file without its optional columns lacks those that 1.4 removed too.
    return NEWEST if version == "1.3" and not names & _REMOVED else version


def declared_version(metadata: Any) -> str:
    """The version that FOCUS metadata name, which is known to us or not; empty where they name none."""
    found = metadata if isinstance(metadata, dict) else {}
    schema = found.get("Schema")
    named = found.get("FocusVersion") or (schema.get("FocusVersion") if isinstance(schema, dict) else None)
    return named if isinstance(named, str) and re.fullmatch(r"\d\.\d{1,2}", named) else ""


def is_newer(version: str) -> bool:
    """Whether a version is later than all that we know."""
    return tuple(map(int, version.split("."))) > tuple(map(int, NEWEST.split(".")))


def unknown_columns(columns: Sequence[str]) -> list[str]:
    """The columns of a file of `NEWEST` or later that no version up to it has; custom ones begin with x_."""
    if focus_version(columns) != NEWEST:
        return []
    return [name for name in columns if _plain(name) not in _KNOWN and not name.lower().startswith(("x_", "tags"))]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
