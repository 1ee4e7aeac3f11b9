"""The bill by month in one dimension at a time. Expected figures are added up by hand from the twelve lines below."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from pipelines.engine.duckdb import DuckDBEngine
from pipelines.models.catalog import load_catalog

# month, currency, bucket, family, account, service, hours, list, effective, billed, instance type, team, run, run tag
# The entity is Microsoft's in account 9, else that of AWS.
LEDGER = """
    select cast(m || '-01' as date) as billing_month, c as billing_currency, b as bucket, f as accelerator_family,
        a as account_id, case when a = '9' then 'Microsoft' else 'AWS' end as billing_entity,
        s as service, i as instance_type, t as team, r as run_id, g as tag_run_id,
        cast(h as decimal(38, 10)) as accelerator_hours, cast(l as decimal(38, 10)) as list_cost_usd,
        cast(e as decimal(38, 10)) as effective_cost_usd, cast(p as decimal(38, 10)) as billed_cost_usd
    from (values
        ('2026-07', 'USD', 'run', 'gpu', '1', 'AmazonEC2', 16, 110, 100, 90, 'p5.48xlarge', 'nlp', 'r-1', null),
        ('2026-07', 'USD', 'idle', 'gpu', '1', 'AmazonEC2', 4, 30, 25, 25, 'p5.48xlarge', null, null, null),
        ('2026-07', 'USD', 'other', 'none', '2', 'AmazonS3', 0, null, 75, 75, null, null, null, null),
        ('2026-08', 'USD', 'run', 'trainium', '1', 'AmazonEC2', 8, 60, 37, 37, 'trn1.32xlarge', 'nlp', 'r-2', null),
        ('2026-08', 'USD', 'run', 'none', '1', 'AmazonEC2', 0, 0, 3, 3, null, 'nlp', 'r-2', null),
        ('2026-08', 'USD', 'other', 'none', '2', 'AmazonS3', 0, 10, 10, 10, null, null, null, null),
        ('2026-08', 'NOK', 'other', 'none', '2', 'AmazonS3', 0, -5, -5, -5, null, null, null, null),
        ('2026-07', 'EUR', 'other', 'none', '2', 'AmazonS3', 0, 4, 4, 4, null, null, null, null),
        ('2026-07', 'EUR', 'other', 'none', '9', 'Virtual Machines', 0, 5, 5, 5, 'Standard_NC40ads', null, null, null),
        ('2026-07', 'EUR', 'idle', 'gpu', '1', 'AmazonEC2', 1, 8, 8, 8, 'p5.48xlarge', null, null, null),
        ('2026-08', 'EUR', 'other', 'none', '2', 'AmazonS3', 0, 6, 6, 6, null, null, null, null),
        ('2026-08', 'EUR', 'idle', 'gpu', '1', 'AmazonEC2', 1, 8, 8, 8, 'p5.48xlarge', null, null, null),
        ('2026-08', 'EUR', 'idle', 'gpu', '1', 'AmazonEC2', 1, 8, null, 0, 'p5.48xlarge', null, null, null)
    ) as line(m, c, b, f, a, s, h, l, e, p, i, t, r, g)
"""


@pytest.fixture(scope="module")
def summary() -> Iterator[DuckDBEngine]:
    yield from summed("r-1")


@pytest.fixture(scope="module")
def unbilled() -> Iterator[DuckDBEngine]:
    """The one recorded run is on no line; r-1 and r-2 are known by a tag alone."""
    yield from summed("r-9")


def summed(run_id: str) -> Iterator[DuckDBEngine]:
    """The summary where one run is recorded."""
    catalog = load_catalog()
    with DuckDBEngine(threads=1) as engine:
        engine.view_sql("fct_ledger", LEDGER)
        engine.view_sql("ref_bucket", f"select * from read_csv('{catalog['ref_bucket'].path}', all_varchar = true)")
        engine.view_sql("dim_run", f"select '{run_id}' as run_id")
        # No fee of these months lacks its use.
        engine.view_sql(
            "detail_billing_month",
            "select cast(null as date) as billing_month, '' as currency, cast(null as decimal(38, 10)) as "
            "month_unallocated_fee_usd where 1 = 0",
        )
        engine.view_sql("summary", catalog["mart_cost_summary_monthly"].text)
        yield engine


def rows(engine: DuckDBEngine, columns: str, condition: str) -> list[tuple]:
    return engine.query(f"select {columns} from summary where {condition} order by all").rows()


def test_the_whole_bill_is_one_row_a_month_and_currency(summary: DuckDBEngine) -> None:
    """July: 100 + 25 + 75 = 200. August: 40 + 10 = 50, which is 150 less, and 250 since July."""
    found = rows(
        summary,
        "strftime(billing_month, '%Y-%m'), effective_cost_usd, monthly_change_usd, running_effective_cost_usd",
        "dimension = 'total' and billing_currency = 'USD'",
    )
    assert found == [("2026-07", 200, None, 200), ("2026-08", 50, -150, 250)]


def test_the_newest_month_of_each_currency_has_the_running_totals_of_all(summary: DuckDBEngine) -> None:
    """All currencies are last billed in August."""
    found = rows(summary, "distinct billing_currency, strftime(billing_month, '%Y-%m')", "is_newest_month")
    assert found == [("EUR", "2026-08"), ("NOK", "2026-08"), ("USD", "2026-08")]


def test_a_bucket_that_a_month_lacks_cost_nothing_in_it(summary: DuckDBEngine) -> None:
    """Idle cost 25 in July and nothing in August: 25 of 200 is 12.5 %, 25 of 250 since July is 10 %."""
    found = rows(
        summary,
        "strftime(billing_month, '%Y-%m'), effective_cost_usd, effective_share_ratio, running_share_ratio",
        "dimension_value = 'idle' and billing_currency = 'USD'",
    )
    eighth, tenth = Decimal("0.125"), Decimal("0.1")
    assert found == [("2026-07", 25, eighth, eighth), ("2026-08", 0, 0, tenth)]


def test_a_recorded_run_that_is_on_no_line_costs_an_unknown_amount(unbilled: DuckDBEngine) -> None:
    """What the run cost is not the nothing that its bucket has in EUR and NOK; what only a tag names keeps its cost."""
    found = rows(unbilled, "billing_currency, effective_cost_usd", "dimension_value = 'run' and is_newest_month")
    assert sorted(set(found)) == [("EUR", None), ("NOK", None), ("USD", 40)]


def test_every_bucket_is_there_in_every_month(summary: DuckDBEngine) -> None:
    """Eight buckets, two months of USD and EUR and one of NOK."""
    assert len(rows(summary, "*", "dimension = 'bucket'")) == 8 * 5


def test_a_list_price_that_is_unknown_stays_unknown(summary: DuckDBEngine) -> None:
    """S3 has no list price in July, so July's whole and everything added to it is unknown; August's is 60 + 10."""
    found = rows(summary, "list_cost_usd, running_list_cost_usd", "dimension = 'total' and billing_currency = 'USD'")
    assert sorted(found, key=str) == [(70, None), (None, None)]


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [
        ("bucket_group", [("other", 10), ("run", 40), ("serving", 0), ("unused", 0)]),
        ("accelerator_family", [("gpu", 0), ("none", 13), ("trainium", 37)]),
        ("accelerator", [("accelerator", 37), ("no accelerator", 13)]),
        ("accelerator_instance_type", [("no accelerator", 13), ("p5.48xlarge", 0), ("trn1.32xlarge", 37)]),
        ("accelerator_account", [("1", 37), ("no accelerator", 13)]),
        ("accelerator_team", [("nlp", 37), ("no accelerator", 13), ("no team", 0)]),
        ("accelerator_run", [("no accelerator", 13), ("no run", 0), ("run or run tag", 37)]),
        ("other_service", [("AmazonS3", 10), ("not other", 40)]),
        ("run_accelerator_family", [("gpu", 0), ("no run", 10), ("trainium", 40)]),
        ("account", [("1", 40), ("2", 10)]),
        ("service", [("AmazonEC2", 40), ("AmazonS3", 10)]),
    ],
)
def test_each_dimension_divides_the_bill(summary: DuckDBEngine, dimension: str, expected: list[tuple]) -> None:
    """August in USD: 37 for Trainium and 3 for the traffic of a run in account 1, 10 for S3 in account 2."""
    condition = f"dimension = '{dimension}' and billing_currency = 'USD' and billing_month = date '2026-08-01'"
    assert rows(summary, "dimension_value, effective_cost_usd", condition) == expected


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [
        ("accelerator", [("accelerator", 8), ("no accelerator", 4), ("other provider", 5)]),
        ("accelerator_family", [("gpu", 8), ("none", 4), ("other provider", 5)]),
        ("accelerator_instance_type", [("no accelerator", 4), ("other provider", 5), ("p5.48xlarge", 8)]),
    ],
)
def test_another_provider_is_neither_an_accelerator_nor_none(
    summary: DuckDBEngine, dimension: str, expected: list[tuple]
) -> None:
    """July in EUR: 4 for S3, 8 for an idle p5, 5 for a machine of Microsoft."""
    condition = f"dimension = '{dimension}' and billing_currency = 'EUR' and billing_month = date '2026-07-01'"
    assert rows(summary, "dimension_value, effective_cost_usd", condition) == expected


def test_a_share_of_less_than_nothing_is_unknown(summary: DuckDBEngine) -> None:
    """The only line in NOK is a credit of 5."""
    assert set(rows(summary, "effective_share_ratio", "billing_currency = 'NOK'")) == {(None,)}


def test_a_partial_cost_has_no_share_and_no_change(summary: DuckDBEngine) -> None:
    """An hour of a GPU in August has no cost on the bill: S3 cost 2 more, and its share of the whole is unknown."""
    found = rows(
        summary,
        "dimension_value, effective_cost_usd, monthly_change_usd, effective_share_ratio, running_share_ratio",
        "billing_currency = 'EUR' and dimension in ('service', 'total') and billing_month = date '2026-08-01'",
    )
    assert found == [
        ("AmazonEC2", 8, None, None, None),
        ("AmazonS3", 6, 2, None, None),
        ("Virtual Machines", 0, -5, None, None),
        ("all", 14, None, None, None),
    ]
