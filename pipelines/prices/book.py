"""Prices of instance-hours with effective dates: the reviewed list, or the list as refreshed by a publication."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches

import polars as pl

from pipelines.analysis.repricing import UNSTATED, of_region, price_of_what
from pipelines.base import resources
from pipelines.base.errors import UsageError
from pipelines.config.listed import ListPrice
from pipelines.engine import Engine

OFFERS = ("on_demand", "capacity_block", "reserved")
# NeuronCores of one accelerator (facts aws-billing 5).
CORES = {"Trainium": 2, "Inferentia2": 2, "Trainium2": 8, "Trainium3": 8}
_KEY = ("instance_type", "region_id", "offer", "from_date")
_COLUMNS = (
    "instance_type", "region_id", "offer", "from_date", "price_per_hour_usd", "price_evidence", "is_from_date_exact",
    "source", "as_of", "accelerator_family", "accelerator_name", "accelerator_count",
)  # fmt: skip


@dataclass(frozen=True)
class Price:
    """USD per hour of the whole instance, its effective date and its source."""

    instance_type: str
    offer: str
    usd_per_hour: Decimal
    from_date: date | None
    evidence: str
    source: str
    is_from_date_exact: bool = True

    @property
    def since(self) -> str:
        if self.from_date is None:
            return "as entered"
        return f"{'from' if self.is_from_date_exact else 'by'} {self.from_date}"


class PriceBook:
    """Looks prices up; a type, day or region it lacks is a UsageError that lists what it has."""

    def __init__(self, rows: pl.DataFrame):
        self._rows = rows.select(_COLUMNS)

    def at(self, instance_type: str, day: date, offer: str, region_id: str) -> Price:
        """The price in force on a day."""
        if held := self.held(instance_type, day, offer, region_id):
            return held
        what = f"The price book has no {offer} price of {instance_type} in {region_id}"
        offered = self._known(instance_type, region_id).filter(pl.col("offer") == offer)
        if offered.is_empty():
            others = sorted(set(self._known(instance_type, region_id)["offer"]))
            regions = sorted(set(self._known(instance_type, None)["region_id"]) - {UNSTATED})
            # A price without a region is none of a region that the book does not know.
            is_known = not regions or region_id in set(self._rows["region_id"])
            has = f"it has {', '.join(others)}" if others and is_known else f"other regions are {', '.join(regions)}"
            raise UsageError(f"{what}; {has}.")
        raise UsageError(f"{what} before {offered['from_date'].min()}; choose that day or a later one.")

    def held(self, instance_type: str, day: date, offer: str, region_id: str) -> Price | None:
        """The price in force on a day; None where the book has none."""
        offered = self._rows.filter(pl.col("from_date") <= day, instance_type=instance_type, offer=offer)
        held = of_region(offered, region_id)
        if held.is_empty():
            return None
        row = held.row(-1, named=True)
        return Price(
            instance_type, offer, row["price_per_hour_usd"], row["from_date"], row["price_evidence"], row["source"],
            row["is_from_date_exact"],
        )  # fmt: skip

    def entered(self, instance_type: str, usd_per_hour: Decimal, option: str) -> Price:
        """A price from the command line; UsageError where it is clearly that of an accelerator or a core."""
        for row in self._known(instance_type, None).iter_rows(named=True):
            chips, cores = row["accelerator_count"] or 1, CORES.get(row["accelerator_name"], 1)
            of = price_of_what(usd_per_hour, row["price_per_hour_usd"], chips, cores)
            if of != "instance":
                raise UsageError(
                    f"{option} {usd_per_hour} is the price of one {of} of {instance_type} (the book: "
                    f"{row['price_per_hour_usd'].normalize():f} an hour of the whole instance, {chips} × "
                    f"{row['accelerator_name']}); enter the price of the whole instance."
                )
        return Price(instance_type, "as entered", usd_per_hour, None, "entered", "entered on the command line")

    def family(self, instance_type: str) -> str:
        """gpu, trainium or another accelerator family."""
        return self._known(instance_type, None)["accelerator_family"][0]

    def _known(self, instance_type: str, region_id: str | None) -> pl.DataFrame:
        rows = self._rows.filter(pl.col("instance_type") == instance_type)
        if rows.is_empty():
            raise UsageError(self._unknown(instance_type))
        return rows if region_id is None else of_region(rows, region_id)

    def _unknown(self, name: str) -> str:
        """Why a type is unknown: an accelerator name, a SageMaker type, or a misspelling."""
        rows = self._rows.drop_nulls("accelerator_name")
        chips = {chip.lower().replace(" ", ""): chip for chip in rows["accelerator_name"]}
        chip = chips.get(name.lower().replace(" ", ""))
        if chip is not None:
            types = sorted(set(rows.filter(pl.col("accelerator_name") == chip)["instance_type"]))
            return f"{chip} is an accelerator, not an instance type; name one of {', '.join(types)}."
        if "core" in name.lower():
            return f"{name} is part of an accelerator, not an instance type; name one such as trn1.32xlarge."
        if name.startswith("ml."):
            return f"{name} is SageMaker's, whose prices the book does not have; name the type of EC2, {name[3:]}."
        types = sorted(set(self._rows["instance_type"]))
        near = [known for known in types if known.startswith(f"{name.split('.')[0]}.")]
        near = near or get_close_matches(name, types, n=3)
        return f"The price book does not have {name}; " + (
            f"it has {' and '.join(near)}." if near else "`trainledger query` of mart_price_book lists what it has."
        )


def amount_of(text: str | None) -> Decimal | None:
    """The amount in a text; None where it is no finite number of 0 or more."""
    try:
        amount = Decimal(text or "")
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def reviewed_book(configured: Sequence[ListPrice] = ()) -> PriceBook:
    """The reviewed list of this installation, with `configured` prices in place of those of their day."""
    listed = pl.read_csv(resources.REFERENCE / "ref_list_price.csv", infer_schema=False)
    added = pl.DataFrame([price.listed for price in configured], schema=listed.schema)
    listed = pl.concat([listed.join(added, on=_KEY, how="anti"), added])
    machines = pl.read_csv(resources.REFERENCE / "ref_instance_type.csv", infer_schema=False)
    return PriceBook(
        listed.join(machines.drop("source", "as_of"), on="instance_type", how="left").with_columns(
            pl.col("from_date").str.to_date(),
            pl.col("price_per_hour_usd").cast(pl.Decimal(20, 10)),
            pl.col("is_from_date_exact") == "true",
            pl.col("accelerator_count").cast(pl.Int64),
            price_evidence=pl.lit("book"),
        )
    )


def published_book(marts: Engine) -> PriceBook:
    """The list as a publication refreshed it from its own bill."""
    return PriceBook(marts.query(f"select {', '.join(_COLUMNS)} from mart_price_book"))
