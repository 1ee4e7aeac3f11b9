"""What contracts with AWS say and no bill does: agreements on spend (EDP, private pricing) and pools of credits.

AWS documents neither in the export, so every rule is a key of the declaration with the default named here.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipelines.config.fields import AccountId, Amount, Currency, Month, Stated, Text


class Term(Stated):
    """What agreements and pools have in common; nothing named means every payer of the bill."""

    name: Text
    payer_account_ids: tuple[AccountId, ...] = ()
    currency: Currency = "USD"
    eligible_services: tuple[Text, ...] = ()
    excluded_services: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _services_are_told_one_way(self) -> Term:
        if self.eligible_services and self.excluded_services:
            raise ValueError("name eligible_services or excluded_services, not both")
        return self


class Period(Stated):
    """A stretch of whole months, and what is to be spent in it."""

    first_month: Month
    last_month: Month
    commitment_usd: Amount

    @model_validator(mode="after")
    def _months_are_in_order(self) -> Period:
        if self.first_month > self.last_month:
            raise ValueError(f"first_month {self.first_month} is after last_month {self.last_month}; swap them")
        return self

    @property
    def started_on(self) -> date:
        return date.fromisoformat(f"{self.first_month}-01")

    @property
    def ended_on(self) -> date:
        """The last day of it."""
        last = date.fromisoformat(f"{self.last_month}-01")
        return (last + timedelta(days=31)).replace(day=1) - timedelta(days=1)


class Agreement(Term):
    """A commitment to spend. `counts`: "billed" is what invoices say, "effective" spreads upfront fees over their term.
    `credits`: whether what credits paid counts as well ("before" them) or not ("after"). `marketplace`: whether what
    other sellers bill counts. `shortfall`: what is missing at the end is "paid", "carried" into the next period, or
    "none" of it is owed. Tax never counts.
    """

    counts: Literal["billed", "effective"] = "billed"
    credits: Literal["before", "after"] = "before"
    marketplace: bool = False
    shortfall: Literal["paid", "carried", "none"] = "paid"
    periods: Annotated[tuple[Period, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _periods_follow_each_other(self) -> Agreement:
        for before, after in zip(self.periods, self.periods[1:], strict=False):
            if after.first_month <= before.last_month:
                raise ValueError(f"the period from {after.first_month} begins before {before.last_month} has ended")
        return self


class CreditPool(Term):
    """Credits issued under one program; `matches` is text that the description of its lines on the bill has."""

    matches: Text
    issued_usd: Amount
    issued_on: date
    expires_on: date | None = None

    @model_validator(mode="after")
    def _expires_after_it_is_issued(self) -> CreditPool:
        if self.expires_on and self.expires_on <= self.issued_on:
            raise ValueError(f"expires_on {self.expires_on} is not after issued_on {self.issued_on}")
        return self


class Rates(Stated):
    """Rates of an offer of a commitment that the payer knows, from AWS's price list or a quote: price over list price,
    by instance type, "fargate" or "lambda"; without a region they hold in any.
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


class Terms(Stated):
    """The `[terms]` section."""

    agreements: tuple[Agreement, ...] = ()
    credits: tuple[CreditPool, ...] = ()
    rates: tuple[Rates, ...] = ()

    @model_validator(mode="after")
    def _each_rate_is_told_once(self) -> Terms:
        told = Counter(
            (one.commitment_kind, one.purchase_term, one.payment_option, one.region, key)
            for one in self.rates
            for key in one.paid_ratio
        )
        twice = next((rate for rate, count in told.items() if count > 1), None)
        if twice:
            raise ValueError(f"[[terms.rates]] tell {', '.join(filter(None, twice))} twice; remove one")
        return self

    @model_validator(mode="after")
    def _names_are_unique(self) -> Terms:
        for kind in ("agreements", "credits"):
            names = [term.name for term in getattr(self, kind)]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"[[terms.{kind}]] tell {twice[0]} twice; remove one")
        return self
