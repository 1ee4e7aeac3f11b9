"""The list of bill columns, and how a file's own columns are matched to it."""

from __future__ import annotations

from collections import Counter

import pytest

from pipelines.base.errors import SourceError
from pipelines.ingest.billing.columns import CUR, LISTS, ColumnList, Delivered, Source, snake, tag_containers

REQUIRED = [column.name for column in CUR.columns if column.required]


def delivered(*names: str, form: str = "any") -> list[Delivered]:
    return [Delivered(name, form, "string") for name in names]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        # AWS's own examples and the consequences named in facts aws-billing 1.1.
        ("lineItem/UnblendedCost", "line_item_unblended_cost"),
        ("savingsPlan/SavingsPlanARN", "savings_plan_savings_plan_a_r_n"),
        ("reservation/ReservationARN", "reservation_reservation_a_r_n"),
        ("resourceTags/user:RunId", "resource_tags_user_run_id"),
        ("product/instanceType", "product_instance_type"),
        ("line_item_unblended_cost", "line_item_unblended_cost"),
    ],
)
def test_headers_become_athena_names(header: str, name: str) -> None:
    assert snake(header) == name


@pytest.mark.parametrize("listed", LISTS, ids=lambda listed: listed.table)
def test_a_list_has_no_twins_and_only_known_types(listed: ColumnList) -> None:
    names = [name for column in listed.columns for name in (column.name, *column.aliases)]
    # Where no host is named, the provider of the service is the host.
    twins = {name for name, count in Counter(names).items() if count > 1}
    assert twins <= {"service_provider_name", "serviceprovidername"}
    assert {column.type for column in listed.columns} == {"VARCHAR", "TIMESTAMP", "DECIMAL(20,10)"}
    assert listed.billed in {column.name for column in listed.columns if column.required}


def test_tags_are_read_in_one_order() -> None:
    assert tag_containers() == ("resource_tags", "tags", "cost_category")


def test_a_required_column_that_is_absent_is_named() -> None:
    with pytest.raises(SourceError, match=r"^a\.csv has no column line_item_unblended_cost; "):
        CUR.layout(delivered(*(name for name in REQUIRED if name != "line_item_unblended_cost")), "a.csv")


def test_aliases_stand_in_and_a_map_only_where_there_is_no_column() -> None:
    names = [*REQUIRED, "product_region", "product", "savingsPlan/SavingsPlanArn"]
    columns = [*delivered(*names[:-2]), Delivered("product", "map", "map"), *delivered(names[-1])]
    found = CUR.layout(columns, "a.csv").sources
    assert found["product_region_code"] == (Source(names.index("product_region")),)
    assert found["product_product_name"] == (Source(names.index("product"), "product_name"),)
    assert found["savings_plan_savings_plan_a_r_n"] == (Source(len(names) - 1),)
    assert found["line_item_net_unblended_cost"] == ()


def test_a_column_of_the_wrong_type_is_refused_by_name() -> None:
    columns = [c for c in delivered(*REQUIRED) if c.name != "line_item_unblended_cost"]
    columns.append(Delivered("line_item_unblended_cost", "text", "string"))
    with pytest.raises(SourceError, match=r"a\.parquet: column line_item_unblended_cost is string, not a number; "):
        CUR.layout(columns, "a.parquet")


def test_a_list_price_of_the_wrong_type_is_only_missing() -> None:
    found = CUR.layout([*delivered(*REQUIRED), Delivered("pricing_public_on_demand_cost", "text", "string")], "a")
    assert found.sources["pricing_public_on_demand_cost"] == ()
    assert found.warnings == (
        "column pricing_public_on_demand_cost is string, not a number; it is read as missing. "
        "Have it delivered with the type AWS gives it.",
    )
