"""Contract terms that no bill contains: agreements on spend (EDP, private pricing), credit pools, quoted rates.

AWS documents none of them in the export, so every rule is a key with the default defined here.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pipelines.config.fields import AccountId, Amount, Currency, Frozen, Month, Months, Text, repeated


class Term(Frozen):
    """What agreements and pools have in common; without payers it covers every payer of the bill."""

    name: Text
    payer_account_ids: tuple[AccountId, ...] = ()
    currency: Currency = "USD"
    eligible_services: tuple[Text, ...] = ()
    excluded_services: tuple[Text, ...] = ()

    def mistakes(self) -> Iterator[str]:
        if self.eligible_services and self.excluded_services:
            yield "name eligible_services or excluded_services, not both"


class Period(Months):
    """Whole months, and the spend committed for them."""

    first_month: Month = Field(...)  # pyright: ignore[reportIncompatibleVariableOverride]
    last_month: Month = Field(...)  # pyright: ignore[reportIncompatibleVariableOverride]
    commitment_usd: Amount

    @property
    def started_on(self) -> date:
        return date.fromisoformat(f"{self.first_month}-01")

    @property
    def ended_on(self) -> date:
        last = date.fromisoformat(f"{self.last_month}-01")
        return (last + timedelta(days=31)).replace(day=1) - timedelta(days=1)


class Agreement(Term):
    """A commitment to spend. `counts`: "billed" as on the bill, "effective" spreads upfront fees over their term.
    `credits`: spend counts "before" or "after" credits. `marketplace`: whether other sellers' charges count.
    `shortfall`: the amount missing at the end is "paid", "carried" into the next period, or "none" of it is owed.
    Tax never counts.
    """

    counts: Literal["billed", "effective"] = "billed"
    credits: Literal["before", "after"] = "before"
    marketplace: bool = False
    shortfall: Literal["paid", "carried", "none"] = "paid"
    periods: Annotated[tuple[Period, ...], Field(min_length=1)]

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        for before, after in zip(self.periods, self.periods[1:], strict=False):
            if after.first_month <= before.last_month:
                yield f"the period from {after.first_month} begins before {before.last_month} has ended"


class CreditPool(Term):
    """Credits issued under one program; `matches` is text in the description of its bill lines."""

    matches: Text
    issued_usd: Amount
    issued_on: date
    expires_on: date | None = None

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if self.expires_on and self.expires_on <= self.issued_on:
            yield f"expires_on {self.expires_on} is not after issued_on {self.issued_on}"


class Rates(Frozen):
    """Rates of a commitment offer, from AWS's price list or a quote: price over list price by instance type, "fargate"
    or "lambda"; without a region they hold in any.
    """

    commitment_kind: Literal[
        "compute_savings_plan", "ec2_instance_savings_plan", "sagemaker_savings_plan", "reserved_instance"
    ]
    purchase_term: Literal["1yr", "3yr"]
    payment_option: Literal["No Upfront", "Partial Upfront", "All Upfront"]
    region: str = ""
    paid_ratio: Annotated[dict[Text, Annotated[float, Field(gt=0, lt=1)]], Field(min_length=1)]
    source: Text
    as_of: date


class Terms(Frozen):
    agreements: tuple[Agreement, ...] = ()
    credits: tuple[CreditPool, ...] = ()
    rates: tuple[Rates, ...] = ()

    def mistakes(self) -> Iterator[str]:
        rates = [
            ", ".join(filter(None, (one.commitment_kind, one.purchase_term, one.payment_option, one.region, key)))
            for one in self.rates
            for key in one.paid_ratio
        ]
        names = {"agreements": [one.name for one in self.agreements], "credits": [one.name for one in self.credits]}
        for kind, found in (names | {"rates": rates}).items():
            if twice := repeated(found):
                yield f"[[terms.{kind}]] contain {twice} twice; remove one"
