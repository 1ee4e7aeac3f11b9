"""The version of FOCUS that a file is of, by its metadata or its columns; their number does not show it."""

import re
from collections.abc import Sequence
from typing import Any

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
