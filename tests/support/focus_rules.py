"""What FOCUS 1.2 demands of a Cost and Usage dataset, written down from its column definitions, as SQL.

Each rule is a condition no row may meet; its name is the column and the requirement in words. Only what a file by
itself can show is here: not whether an account id is the right one.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

# Column: whether it may be null. D decimal, T date/time, S string, J JSON object.
COLUMNS = {
    "AvailabilityZone": "S?", "BilledCost": "D", "BillingAccountId": "S", "BillingAccountName": "S",
    "BillingAccountType": "S", "BillingCurrency": "S", "BillingPeriodStart": "T", "BillingPeriodEnd": "T",
    "CapacityReservationId": "S?", "CapacityReservationStatus": "S?", "ChargeCategory": "S", "ChargeClass": "S?",
    "ChargeDescription": "S", "ChargeFrequency": "S", "ChargePeriodStart": "T", "ChargePeriodEnd": "T",
    "CommitmentDiscountCategory": "S?", "CommitmentDiscountId": "S?", "CommitmentDiscountName": "S?",
    "CommitmentDiscountQuantity": "D?", "CommitmentDiscountStatus": "S?", "CommitmentDiscountType": "S?",
    "CommitmentDiscountUnit": "S?", "ConsumedQuantity": "D?", "ConsumedUnit": "S?", "ContractedCost": "D",
    "ContractedUnitPrice": "D?", "EffectiveCost": "D", "InvoiceId": "S?", "InvoiceIssuerName": "S", "ListCost": "D",
    "ListUnitPrice": "D?", "PricingCategory": "S?", "PricingCurrency": "S", "PricingCurrencyContractedUnitPrice": "D?",
    "PricingCurrencyEffectiveCost": "D", "PricingCurrencyListUnitPrice": "D?", "PricingQuantity": "D?",
    "PricingUnit": "S?", "ProviderName": "S", "PublisherName": "S", "RegionId": "S?", "RegionName": "S?",
    "ResourceId": "S?", "ResourceName": "S?", "ResourceType": "S?", "ServiceCategory": "S", "ServiceName": "S",
    "ServiceSubcategory": "S", "SkuId": "S?", "SkuMeter": "S?", "SkuPriceDetails": "J?", "SkuPriceId": "S?",
    "SubAccountId": "S?", "SubAccountName": "S?", "SubAccountType": "S?", "Tags": "J?",
}  # fmt: skip

# ServiceCategory: its subcategories, besides "Other (<category>)".
SERVICES = {
    "AI and Machine Learning": "AI Platforms|Bots|Generative AI|Machine Learning|Natural Language Processing",
    "Analytics": "Analytics Platforms|Business Intelligence|Data Processing|Search|Streaming Analytics",
    "Business Applications": "Productivity and Collaboration",
    "Compute": "Containers|End User Computing|Quantum Compute|Serverless Compute|Virtual Machines",
    "Databases": "Caching|Data Warehouses|Ledger Databases|NoSQL Databases|Relational Databases|Time Series Databases",
    "Developer Tools": "Developer Platforms|Continuous Integration and Deployment|Development Environments|"
    "Source Code Management|Quality Assurance",
    "Identity": "Identity and Access Management",
    "Integration": "API Management|Messaging|Workflow Orchestration",
    "Internet of Things": "IoT Analytics|IoT Platforms",
    "Management and Governance": "Architecture|Compliance|Cost Management|Data Governance|Disaster Recovery|"
    "Endpoint Management|Observability|Support",
    "Media": "Content Creation|Gaming|Media Streaming|Mixed Reality",
    "Migration": "Data Migration|Resource Migration",
    "Mobile": "",
    "Multicloud": "Multicloud Integration",
    "Networking": "Application Networking|Content Delivery|Network Connectivity|Network Infrastructure|"
    "Network Routing|Network Security",
    "Security": "Secret Management|Security Posture Management|Threat Detection and Response",
    "Storage": "Backup Storage|Block Storage|File Storage|Object Storage|Storage Platforms",
    "Web": "Application Platforms",
    "Other": "",
}
ALLOWED = {
    "ChargeCategory": ("Usage", "Purchase", "Tax", "Credit", "Adjustment"),
    "ChargeClass": ("Correction",),
    "ChargeFrequency": ("One-Time", "Recurring", "Usage-Based"),
    "CommitmentDiscountCategory": ("Spend", "Usage"),
    "CommitmentDiscountStatus": ("Used", "Unused"),
    "CapacityReservationStatus": ("Used", "Unused"),
    "PricingCategory": ("Standard", "Dynamic", "Committed", "Other"),
    "ServiceCategory": tuple(SERVICES),
}
# Both null or neither.
TOGETHER = (
    ("RegionId", "RegionName"), ("SubAccountId", "SubAccountName"), ("SubAccountId", "SubAccountType"),
    ("ResourceId", "ResourceType"), ("PricingQuantity", "PricingUnit"), ("ConsumedQuantity", "ConsumedUnit"),
    ("CommitmentDiscountId", "CommitmentDiscountCategory"), ("CommitmentDiscountId", "CommitmentDiscountType"),
    ("CommitmentDiscountQuantity", "CommitmentDiscountUnit"),
)  # fmt: skip
# Null on a tax, filled on usage and purchases that are no corrections.
PRICED = (
    "PricingQuantity", "PricingCategory", "ListUnitPrice", "ContractedUnitPrice", "SkuId", "SkuPriceId",
    "PricingCurrencyListUnitPrice", "PricingCurrencyContractedUnitPrice",
)  # fmt: skip
UNIT_PRICES = tuple(name for name in PRICED if name.endswith("UnitPrice"))
# Filled only where the other is.
ONLY_WITH = (
    ("CommitmentDiscountStatus", "CommitmentDiscountId"), ("CommitmentDiscountQuantity", "CommitmentDiscountId"),
    ("CommitmentDiscountName", "CommitmentDiscountId"), ("CapacityReservationStatus", "CapacityReservationId"),
    ("SkuPriceDetails", "SkuPriceId"), ("SkuMeter", "SkuId"), ("ResourceName", "ResourceId"),
)  # fmt: skip
# A unit, a unit for a time, or a number of units (facts standards-2026 1.8; what the official validator accepts).
UNIT = (
    "[A-Z][A-Za-z]*(-(Years|Months|Days|Hours|Minutes|Seconds)|/(Year|Month|Day|Hour|Minute|Second)"
    "|/[0-9]+ (Years|Months|Days|Hours|Minutes|Seconds))?|[0-9]+ [A-Z][A-Za-z]*"
)
UNITS = ("PricingUnit", "ConsumedUnit", "CommitmentDiscountUnit")
USAGE_OR_PURCHASE = "ChargeCategory in ('Usage', 'Purchase') and ChargeClass is null"


def violations(file: Path | duckdb.DuckDBPyRelation) -> dict[str, int]:
    """Rows of a Parquet file, a csv or a relation that break a rule, by rule; empty for a conformant dataset."""
    rows = file if isinstance(file, duckdb.DuckDBPyRelation) else read(file)
    counts = ", ".join(f'count(*) filter (where {condition}) as "{name}"' for name, condition in _rules().items())
    relation = rows.aggregate(counts)
    found = dict(zip(relation.columns, relation.fetchall()[0], strict=True))
    for name, (left, right) in {
        "SkuPriceId has one SkuId": ("SkuPriceId", "SkuId"),
        "ServiceName has one ServiceCategory": ("ServiceName", "ServiceCategory"),
        "ServiceName has one ServiceSubcategory": ("ServiceName", "ServiceSubcategory"),
        "CommitmentDiscountId has one CommitmentDiscountUnit": ("CommitmentDiscountId", "CommitmentDiscountUnit"),
        "RegionId has one RegionName": ("RegionId", "RegionName"),
    }.items():
        many = rows.filter(f"{left} is not null").aggregate(f"{left}, count(distinct {right}) as n").filter("n > 1")
        found[name] = len(many.fetchall())
    return {name: count for name, count in found.items() if count}


def read(file: Path) -> duckdb.DuckDBPyRelation:
    """An exported file, typed as FOCUS types its columns; a csv's blank is null."""
    if file.suffix == ".parquet":
        return duckdb.read_parquet(str(file))
    kinds = {"D": "DECIMAL(38,18)", "T": "TIMESTAMPTZ", "S": "VARCHAR", "J": "VARCHAR"}
    types = {name: kinds[kind[0]] for name, kind in COLUMNS.items()}
    rows = duckdb.sql(f"select * from read_csv('{file}', header = true, types = {types}, all_varchar = false)")
    # Every rule asks the rows again, and a relation would read the file as often.
    return duckdb.from_arrow(rows.to_arrow_table())


def official_faults(shared_data: Path, dataset: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Where rows of a csv break the official list of columns of FOCUS 1.4: names, nulls and allowed values."""
    with (shared_data / "billing" / "focus14" / "focus_1_4_columns.csv").open(encoding="utf-8", newline="") as lines:
        listed = [row for row in csv.DictReader(lines) if row["dataset"].lower() == dataset.replace("_", "")]
    known = {row["column_id"]: row for row in listed}
    assert known
    unknown = [name for name in rows[0] if name not in known and not name.startswith("x_")]
    faults = [f"{name} is not of the dataset" for name in unknown]
    for name, rule in known.items():
        if name not in rows[0]:
            faults += [f"{name} is missing"] * (rule["feature_level"] == "Mandatory")
            continue
        values = {row[name] for row in rows}
        faults += [f"{name} is null"] * (rule["allows_nulls"] == "false" and "" in values)
        allowed = {*rule["allowed_values"].split("|"), ""}
        is_listed = rule["value_format"] == "Allowed Values" and rule["allowed_values"] != "(see spec)"
        faults += [f"{name} is {value}" for value in values - allowed] * is_listed
    return faults


def _rules() -> dict[str, str]:
    rules = {f"{name} is not null": f"{name} is null" for name, kind in COLUMNS.items() if not kind.endswith("?")}
    for name, kind in COLUMNS.items():
        if kind[0] == "S":
            rules[f"{name} is no empty or padded text"] = f"{name} = '' or {name} <> trim({name})"
        if kind[0] == "J":
            rules[f"{name} is a JSON object"] = f"not json_valid({name}) or left({name}, 1) <> '{{'"
    for name, values in ALLOWED.items():
        rules[f"{name} is an allowed value"] = f"{name} not in {values if len(values) > 1 else f'({values[0]!r})'}"
    pairs = [
        f"(ServiceCategory = '{category}' and ServiceSubcategory in "
        f"({', '.join(repr(name) for name in [*names.split('|'), f'Other ({category})'] if name)}))"
        for category, names in SERVICES.items()
    ]
    rules["ServiceSubcategory belongs to its ServiceCategory"] = f"not ({' or '.join(pairs)})"
    for left, right in TOGETHER:
        rules[f"{left} and {right} are null together"] = f"({left} is null) <> ({right} is null)"
    for name, other in ONLY_WITH:
        rules[f"{name} is null where {other} is"] = f"{name} is not null and {other} is null"
    for name in PRICED:
        rules[f"{name} is null on a Tax"] = f"ChargeCategory = 'Tax' and {name} is not null"
        rules[f"{name} is filled on Usage and Purchase"] = f"{USAGE_OR_PURCHASE} and {name} is null"
    for name in UNIT_PRICES:
        rules[f"{name} is not negative"] = f"{name} < 0"
    for name in UNITS:
        rules[f"{name} has the form of a unit"] = f"not regexp_full_match({name}, '{UNIT}')"
    for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
        # Doubles of a file hold some 15 digits.
        gap = f"abs(cast({price} as double) * cast(PricingQuantity as double) - {cost})"
        rules[f"{price} x PricingQuantity is {cost}"] = (
            f"ChargeClass is null and {gap} > 1e-9 * greatest(1, abs({cost}))"
        )
    for cost in ("ListCost", "ContractedCost"):
        rules[f"{cost} of a Credit or Adjustment is its BilledCost"] = (
            f"ChargeCategory in ('Credit', 'Adjustment') and {cost} <> BilledCost"
        )
    return rules | {
        "BillingCurrency is a national currency": "not regexp_full_match(BillingCurrency, '[A-Z]{3}')",
        "PricingCurrency is a currency": "not regexp_full_match(PricingCurrency, '[A-Z]{3}')",
        "EffectiveCost of a Purchase is 0": "ChargeCategory = 'Purchase' and EffectiveCost <> 0",
        "EffectiveCost of a Credit is its BilledCost": "ChargeCategory = 'Credit' and EffectiveCost <> BilledCost",
        "BilledCost is 0 where another than the provider is paid": (
            "ProviderName <> InvoiceIssuerName and BilledCost <> 0"
        ),
        "BilledCost of what a commitment leaves unused is 0": "CommitmentDiscountStatus = 'Unused' and BilledCost <> 0",
        "ChargeFrequency of a Purchase is not Usage-Based": (
            "ChargeCategory = 'Purchase' and ChargeFrequency = 'Usage-Based'"
        ),
        "CommitmentDiscountStatus is filled on Usage of a commitment": (
            "ChargeCategory = 'Usage' and CommitmentDiscountId is not null and CommitmentDiscountStatus is null"
        ),
        "CommitmentDiscountStatus is on Usage only": (
            "ChargeCategory <> 'Usage' and CommitmentDiscountStatus is not null"
        ),
        "CommitmentDiscountQuantity is filled on Usage and Purchase of a commitment": (
            f"{USAGE_OR_PURCHASE} and CommitmentDiscountId is not null and CommitmentDiscountQuantity is null"
        ),
        "CommitmentDiscountQuantity is null elsewhere": (
            "(ChargeCategory not in ('Usage', 'Purchase') or CommitmentDiscountId is null) "
            "and CommitmentDiscountQuantity is not null"
        ),
        "ResourceId of what a commitment leaves unused is the commitment": (
            "CommitmentDiscountStatus = 'Unused' and ResourceId is distinct from CommitmentDiscountId"
        ),
        "PricingCategory of what a commitment covers is Committed": (
            "CommitmentDiscountStatus is not null and PricingCategory <> 'Committed'"
        ),
        "PricingCategory of the purchase of a commitment is not Committed": (
            "ChargeCategory = 'Purchase' and PricingCategory = 'Committed'"
        ),
        "ConsumedQuantity is on Usage only, and not on what is left unused": (
            "(ChargeCategory <> 'Usage' or CommitmentDiscountStatus = 'Unused') and ConsumedQuantity is not null"
        ),
        "ConsumedQuantity is filled on Usage": (
            "ChargeCategory = 'Usage' and CommitmentDiscountStatus is distinct from 'Unused' and ChargeClass is null "
            "and ConsumedQuantity is null"
        ),
        "CapacityReservationStatus is filled on Usage of a reservation": (
            "ChargeCategory = 'Usage' and CapacityReservationId is not null and CapacityReservationStatus is null"
        ),
        "BillingPeriod is a whole month": (
            "day(BillingPeriodStart) <> 1 or BillingPeriodEnd <> BillingPeriodStart + interval '1' month"
        ),
        "ChargePeriodEnd is not before its start": "ChargePeriodEnd < ChargePeriodStart",
    }
