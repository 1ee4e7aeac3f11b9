"""What contracts with AWS say and no bill does: agreements on spend (EDP, private pricing) and pools of credits.

AWS documents neither in the export, so every rule is a key of the declaration with the default named here.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Month = Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$")]
Text = Annotated[str, Field(min_length=1)]
AccountId = Annotated[str, Field(pattern=r"^[0-9]{12}$")]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
Amount = Annotated[Decimal, Field(gt=0, le=1_000_000_000, decimal_places=2, allow_inf_nan=False)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Term(_Frozen):
    """What agreements and pools have in common; nothing named means every payer of the bill."""

    name: Text
    payer_account_ids: tuple[AccountId, ...] = ()
    currency: Currency = "USD"
    eligible_services: tuple[Text, ...] = ()
    excluded_services: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _services_are_told_one_way(self) -> _Term:
        if self.eligible_services and self.excluded_services:
            raise ValueError("name eligible_services or excluded_services, not both")
        return self


class Period(_Frozen):
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


class Agreement(_Term):
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


class CreditPool(_Term):
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


class Rates(_Frozen):
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


class Terms(_Frozen):
    """The `[terms]` section."""

    agreements: tuple[Agreement, ...] = ()
    credits: tuple[CreditPool, ...] = ()
    rates: tuple[Rates, ...] = ()

    @model_validator(mode="after")
    def _each_rate_is_told_once(self) -> Terms:
        told = [row[:5] for row in self.rows("stated_commitment_rate")]
        twice = next((rate for rate in told if told.count(rate) > 1), None)
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

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Rows of one of the tables of `models.stated` that these terms give."""
        if name == "stated_agreement":
            return [
                (one.name, one.currency, one.counts, one.credits, one.marketplace, one.shortfall)
                for one in self.agreements
            ]
        if name == "stated_agreement_period":
            return [
                (one.name, number, period.started_on, period.ended_on, period.commitment_usd)
                for one in self.agreements
                for number, period in enumerate(one.periods, start=1)
            ]
        if name == "stated_credit_pool":
            return [
                (number, one.name, one.currency, one.matches, one.issued_usd, one.issued_on, one.expires_on)
                for number, one in enumerate(self.credits, start=1)
            ]
        if name == "stated_commitment_rate":
            return [
                (
                    one.commitment_kind,
                    one.purchase_term,
                    one.payment_option,
                    one.region,
                    key,
                    ratio,
                    one.source,
                    one.as_of,
                )
                for one in self.rates
                for key, ratio in one.paid_ratio.items()
            ]
        terms = [("agreement", one) for one in self.agreements] + [("credits", one) for one in self.credits]
        if name == "stated_term_payer":
            # No payer named: all of them.
            return [(kind, one.name, payer) for kind, one in terms for payer in one.payer_account_ids or (None,)]
        # A row without a service says how those that are not named count.
        return [
            (kind, one.name, service, is_eligible)
            for kind, one in terms
            for service, is_eligible in (
                (None, not one.eligible_services),
                *((service, True) for service in one.eligible_services),
                *((service, False) for service in one.excluded_services),
            )
        ]
