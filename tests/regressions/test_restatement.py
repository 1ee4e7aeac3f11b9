"""Restatement: AWS delivers a month again and again, in other files, from other exports; each dollar counts once."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.bills import instance_hour, one_attempt, write_config, write_events, write_export
from support.cur_exports import CUR2_LINE, LEGACY_LINE, csv_text, cur2_export, legacy_export, packed
from support.lab import Lab
from support.ledgers import ask, build_warehouse, open_tables, publish_tables

from pipelines.base.errors import SourceError, UsageError
from pipelines.config.settings import load_settings
from pipelines.models.build import Builder

Lines = Sequence[Mapping[str, str]]
Daily = tuple[Builder, list[list[dict[str, Any]]]]
HOUR = timedelta(hours=1)
LEDGER, INVOICES = ("mart_cost_ledger_daily",), ("mart_invoice_reconciliation_monthly",)
# What a delivery changed.
HISTORY = ("fct_restatement", "mart_restatement", "detail_restated_figure")


def hour(day: int, clock: int, resource: str = "i-0node", **more: str) -> dict[str, str]:
    """An hour of a g5.xlarge at 1.006 USD in July 2026."""
    return instance_hour(f"2026-07-{day:02d}T{clock:02d}", resource, "g5.xlarge", "1.006", **more)


def runs_of(root: Path) -> Path:
    """Run r-1 on i-0node, 10:00 to 12:00 on 14 July; run r-2 is known by its tag alone, the same hours."""
    began = datetime(2026, 7, 14, 10)
    events = one_attempt("r-1", ["i-0node"], "g5.xlarge", began, 2 * HOUR)
    return write_events(root / "runs", [*events, *one_attempt("r-2", [], "g5.xlarge", began, 2 * HOUR)])


def deliver(root: Path, lines: Lines, number: int, tables: Sequence[str] = LEDGER, **months: Lines) -> Builder:
    """Deliver July, and other months, as delivery `number`, and build `tables`, or all where none are named."""
    export = write_export(root, {"2026-07": lines, **months}, execution=f"20260801T00000{number}Z-delivery{number}")
    config = write_config(root, billing=export, runs=runs_of(root))
    return publish_tables(config, tables) if tables else build_warehouse(config)


def contents(builder: Builder, *, besides: Sequence[str] = ()) -> dict[str, list[tuple]]:
    """Every stored table's rows in an order of their own, without `besides` and what names the delivery."""
    names = [model.name for model in builder.catalog.ordered if model.stored and model.name not in besides]
    found = {}
    with open_tables(builder, names) as engine:
        for name in names:
            frame = engine.query(f"select * from {name}")
            frame = frame.drop([column for column in ("delivery_id", "source_file") if column in frame.columns])
            found[name] = sorted(map(str, frame.rows()))
    return found


@pytest.mark.parametrize(
    "tables", [(*LEDGER, "mart_run_cost"), pytest.param((), marks=pytest.mark.slow)], ids=["ledger and runs", "all"]
)
def test_reingesting_and_restating_doubles_a_month(tmp_path: Path, tables: Sequence[str]) -> None:
    """T1. Delivered, built twice, restated: every table is what a clean load of the last delivery gives.

    T2. July is restated to less; June, not delivered again, keeps every row.
    """
    june = [instance_hour("2026-06-30T23", "i-0node", "g5.xlarge", "1.006")]
    first, last = [hour(14, 10), hour(14, 11), hour(14, 12)], [hour(14, 10), hour(14, 13)]
    for number, lines, months in ((1, first, {"2026-06": june}), (1, first, {}), (2, last, {})):
        builder = deliver(tmp_path / "grown", lines, number, tables, **months)
    clean = deliver(tmp_path / "clean", last, 2, tables, **{"2026-06": june})
    assert contents(builder, besides=HISTORY) == contents(clean, besides=HISTORY)
    months_of = "select billing_month, sum(billed_cost_usd) from mart_cost_ledger_daily group by 1 order by 1"
    assert ask(builder, months_of).rows() == [
        (date(2026, 6, 1), Decimal("1.006")),
        (date(2026, 7, 1), 2 * Decimal("1.006")),
    ]


def test_a_month_that_grows_from_two_chunks_to_three_is_read_once(tmp_path: Path) -> None:
    """T4. Two files, then three under the same or other names; what the manifest names counts, old files or not."""

    def legacy(payer: str, number: int, chunks: int) -> Path:
        month, assembly = "20260701-20260801", f"asm-{number}"
        line = LEGACY_LINE | {"bill/PayerAccountId": payer, "lineItem/UsageAccountId": payer}
        return legacy_export(
            tmp_path / payer,
            {
                f"ml-cur-{n:05d}.csv.gz": packed(csv_text([line | {"lineItem/ResourceId": f"i-{n}"}]))
                for n in range(1, chunks + 1)
            },
            assembly=assembly,
            folder=f"{month}/{assembly}" if payer == create_new else month,
        )

    payers = create_new, _ = "000000000001", "000000000002"
    bill = Decimal(LEGACY_LINE["lineItem/UnblendedCost"])
    total = (
        "select payer_account_id, sum(billed_cost_usd) from mart_invoice_reconciliation_monthly group by 1 order by 1"
    )
    for number, chunks in ((1, 2), (2, 3)):
        config = two_sources(tmp_path, *(legacy(payer, number, chunks) for payer in payers))
        assert ask(publish_tables(config, INVOICES), total).rows() == [(payer, chunks * bill) for payer in payers]


def test_kinds_of_export_in_one_bucket_are_read_apart(tmp_path: Path) -> None:
    """T4. A legacy report and a CUR 2.0 export of different payers below one bucket: two entries, no line twice."""
    legacy_export(tmp_path / "bucket" / "cur", {"a.csv.gz": packed(csv_text([LEGACY_LINE]))})
    other = CUR2_LINE | {"bill_payer_account_id": "999900001111", "line_item_usage_account_id": "999900002222"}
    cur2_export(tmp_path / "bucket" / "exports" / "ml-cur2", {"b.csv.gz": packed(csv_text([other]))})
    config = two_sources(tmp_path, tmp_path / "bucket" / "cur", tmp_path / "bucket" / "exports" / "ml-cur2")
    invoices = "select payer_account_id, line_count from mart_invoice_reconciliation_monthly"
    rows = ask(publish_tables(config, INVOICES), invoices)
    assert sorted(rows.rows()) == sorted(
        [(LEGACY_LINE["bill/PayerAccountId"], 1), ("999900001111", 1)], key=lambda row: row[0]
    )


def two_sources(root: Path, one: Path, other: Path, *more: str) -> Path:
    config = write_config(root, billing=one)
    keys = [*more, "", ""]
    text = config.read_text().replace('name = "payer"\n', f'name = "old"\n{keys[0]}\n')
    config.write_text(text + f'\n[[billing]]\nname = "new"\nlocation = "{other}"\n{keys[1]}\n')
    return config


def test_two_reports_in_one_prefix_are_mixed(tmp_path: Path) -> None:
    """T5. Refused by name as one; read apart when each entry names its own."""
    for name, cost in (("ml-a", "1"), ("ml-b", "2")):
        line = CUR2_LINE | {"bill_payer_account_id": f"00000000000{cost}", "line_item_unblended_cost": cost}
        cur2_export(tmp_path / "prefix", {f"{name}.csv.gz": packed(csv_text([line]))}, name=name)
        if (tmp_path / "prefix" / "data").exists():
            (tmp_path / "prefix" / name).mkdir()
            for part in ("data", "metadata"):
                shutil.move(tmp_path / "prefix" / part, tmp_path / "prefix" / name / part)
    place = tmp_path / "prefix"
    with pytest.raises(SourceError, match=r"holds 2 exports \(ml-a/ml-a, ml-b/ml-b\)"):
        build_warehouse(write_config(tmp_path, billing=place))
    config = two_sources(tmp_path, place, place, 'export = "ml-a"', 'export = "ml-b"')
    invoices = "select payer_account_id, billed_cost_usd from mart_invoice_reconciliation_monthly"
    rows = ask(publish_tables(config, INVOICES), invoices)
    assert sorted(rows.rows()) == [("000000000001", Decimal(1)), ("000000000002", Decimal(2))]
    with pytest.raises(SourceError, match="no manifest of an export 'ml-c'"):
        build_warehouse(two_sources(tmp_path, place, place, 'export = "ml-a"', 'export = "ml-c"'))


def test_two_payers_in_one_export_are_kept_apart() -> None:
    """T5. An organization of two payers has two bills, whichever files they lie in."""
    lines = [
        hour(14, 10, f"i-{n}", bill_payer_account_id=f"00000000000{n}", bill_invoice_id=f"INV-{n}") for n in (1, 2)
    ]
    bills = f"select payer_account_id, invoice_id, billed_cost_usd from {INVOICES[0]} order by 1"
    with Lab({"2026-07": lines}, {}) as lab:
        assert lab.ask(bills, *INVOICES) == [(f"00000000000{n}", f"INV-{n}", Decimal("1.006")) for n in (1, 2)]


def test_each_delivery_shows_what_it_changed_and_which_figures_it_moved(tmp_path: Path) -> None:
    """Three deliveries of July.

    1. r-1's two hours on i-0node, and one of i-0tag that no run explains: 3 × 1.006 = 3.018.
    2. A refund of 1.000 dated 13 July: 1 line more, billed 2.018, the 13th moves, no run does.
    3. A tag backfill names r-2 on i-0tag: billed as before, 1.006 moves from unattributed to r-2 on the 14th.
    A fourth build of the same changes nothing.
    """
    refund = {
        **hour(13, 10, ""),
        "line_item_line_item_type": "Refund",
        "line_item_unblended_cost": "-1.000",
        "pricing_public_on_demand_cost": "",
    }
    first = [hour(14, 10), hour(14, 11), hour(14, 10, "i-0tag")]
    second = [*first, refund]
    third = [*second[:2], hour(14, 10, "i-0tag", resource_tags='{"user_run_id": "r-2"}'), refund]
    for number, lines in ((1, first), (2, second), (3, third), (3, third)):
        builder = deliver(tmp_path, lines, number, HISTORY)
    rows = ask(
        builder,
        "select delivery_no, delivery_id, line_count, billed_cost_usd, refund_billed_cost_usd, line_count_change, "
        "billed_change_usd, effective_change_usd, moved_run_count, moved_day_count, most_moved_run_id, "
        "most_moved_run_change_usd from mart_restatement order by delivery_no",
    ).rows()
    none, nought = (None,) * 7, Decimal(0)
    assert rows == [
        (1, "delivery1", 3, Decimal("3.018"), nought, *none),
        (2, "delivery2", 4, Decimal("2.018"), Decimal(-1), 1, Decimal(-1), Decimal(-1), 0, 1, None, None),
        (3, "delivery3", 4, Decimal("2.018"), Decimal(-1), 0, nought, nought, 1, 1, "r-2", Decimal("1.006")),
    ]
    # Each of them by name, effective; what is no use of a thing stands in the bucket other.
    costs = "before_cost_usd, after_cost_usd, cost_change_usd"
    figures = f"select delivery_no, figure_key, {costs} from detail_restated_figure"
    price, run = Decimal("1.006"), "2026-07-14 run"
    assert ask(builder, f"{figures} where cost_basis = 'effective' order by 1, 2").rows() == [
        (2, "2026-07-13 other", nought, Decimal(-1), Decimal(-1)),
        (3, run, 2 * price, 3 * price, price),
        (3, "2026-07-14 unattributed", price, nought, -price),
        (3, "r-2", nought, price, price),
    ]


@pytest.fixture(scope="module")
def day_by_day(tmp_path_factory: pytest.TempPathFactory) -> Daily:
    """An hour a day at 1.006 USD, delivered day by day, and the days that each delivery is reported to lack.

    1. The 13th and 14th. 2. The 15th too. 3. The 16th too, and the 13th at 1.500, listed at 2.000. 4. No 15th and 16th.
    5. The 15th again.
    """
    thirteenth = hour(13, 10, line_item_unblended_cost="1.500", pricing_public_on_demand_cost="2.000")
    days = {day: hour(day, 10) for day in (13, 14, 15, 16)}
    deliveries = [
        [days[13], days[14]],
        [days[13], days[14], days[15]],
        [thirteenth, days[14], days[15], days[16]],
        [thirteenth, days[14]],
        [thirteenth, days[14], days[15]],
    ]
    root, missing = tmp_path_factory.mktemp("daily"), []
    for number, lines in enumerate(deliveries, 1):
        builder = deliver(root, lines, number, HISTORY)
        published = builder.lake.publications.newest()
        assert published is not None
        checks = {check["check"]: check for check in published.checks}
        missing.append([*checks["days_that_were_published_are_gone"]["sample"]])
    return builder, missing


def test_new_days_are_no_restatement_and_days_that_vanish_are_reported(day_by_day: Daily) -> None:
    """2. No published day changes. 3. The 13th costs 0.494 more. 4. The bill lacks 2 × 1.006. 5. It lacks the 16th."""
    builder, missing = day_by_day
    restated = "restated_day_count, new_day_count, restated_effective_change_usd, restated_billed_change_usd"
    price, raise_, nought = Decimal("1.006"), Decimal("0.494"), Decimal(0)
    assert ask(builder, f"select delivery_no, {restated} from mart_restatement order by 1").rows() == [
        (1, None, None, None, None),
        (2, 0, 1, nought, nought),
        (3, 1, 1, raise_, raise_),
        (4, 2, 0, -2 * price, -2 * price),
        (5, 0, 1, nought, nought),
    ]
    gone = [[(row["missing_day_count"], str(row["first_missing_date"])[:10]) for row in rows] for rows in missing]
    assert gone == [[], [], [], [(2, "2026-07-15")], [(1, "2026-07-16")]]
    assert [Decimal(str(rows[0]["missing_effective_cost_usd"])) for rows in missing[3:]] == [2 * price, price]


def test_figures_that_moved_sum_to_what_the_delivery_changed(day_by_day: Daily) -> None:
    """The buckets of the days are all of the bill, so what they moved by is the delivery's change, on every basis.

    Nothing is taken from output but the two sides that must agree.
    """
    builder, _ = day_by_day
    restated = "select delivery_no, list_change_usd, effective_change_usd, billed_change_usd from mart_restatement"
    of = "coalesce(sum(cost_change_usd) filter (where cost_basis = '{}'), 0)"
    days = "from detail_restated_figure where figure_table = 'mart_cost_ledger_daily' group by delivery_no"
    moved = f"select delivery_no, {', '.join(of.format(basis) for basis in ('list', 'effective', 'billed'))} {days}"
    changes = ask(builder, f"{restated} where delivery_no > 1 order by 1").rows()
    assert [row[1:] != (0, 0, 0) for row in changes] == [True] * 4
    assert ask(builder, f"{moved} order by 1").rows() == changes


def test_a_late_refund_stays_in_its_bill_and_on_its_day() -> None:
    """Facts 2.5, pitfall 14: billed in August, for a day in July."""
    refund = {
        **hour(14, 10, ""),
        "line_item_line_item_type": "Refund",
        "line_item_unblended_cost": "-0.5",
        "bill_invoice_id": "INV-8",
    }
    days = f"select billing_month, usage_date, billed_cost_usd from {LEDGER[0]} where charge_category = 'Refund'"
    with Lab({"2026-07": [hour(14, 10)], "2026-08": [refund]}, {}) as lab:
        assert lab.ask(days, *LEDGER) == [(date(2026, 8, 1), date(2026, 7, 14), Decimal("-0.5"))]


def moved_export(root: Path) -> tuple[Path, Path]:
    """A legacy report of June and July, and a CUR 2.0 export of July and August that took over from it."""
    june = LEGACY_LINE | {"bill/BillingPeriodStartDate": "2026-06-01T00:00:00Z"}
    legacy_export(root / "cur", {"a.csv.gz": packed(csv_text([june]))}, month="20260601-20260701")
    legacy_export(root / "cur", {"b.csv.gz": packed(csv_text([LEGACY_LINE]))})
    same = {
        "bill_payer_account_id": LEGACY_LINE["bill/PayerAccountId"],
        "line_item_usage_account_id": LEGACY_LINE["lineItem/UsageAccountId"],
    }
    cur2_export(root / "cur2", {"c.csv.gz": packed(csv_text([CUR2_LINE | same]))})
    return root / "cur", root / "cur2"


def test_an_export_moved_to_another_kind_counts_its_month_of_change_twice(tmp_path: Path) -> None:
    """Both deliver July: refused by both names; with the months declared, June and July are each there once."""
    old, new = moved_export(tmp_path)
    with pytest.raises(SourceError, match=r"new and old both deliver 2026-07 .* last_month = \"2026-06\" for old and"):
        build_warehouse(two_sources(tmp_path, old, new))
    config = two_sources(tmp_path, old, new, 'last_month = "2026-06"', 'first_month = "2026-07"')
    restated = "select billing_month, source_name, line_count from fct_restatement order by 1"
    rows = ask(publish_tables(config, HISTORY[:1]), restated)
    assert rows.rows() == [(date(2026, 6, 1), "old", 1), (date(2026, 7, 1), "new", 1)]


def test_the_delivery_of_a_month_in_two_exports_names_both(tmp_path: Path) -> None:
    """Two accounts of one payer, an export each; only that of "old" is delivered again, with an hour more of 1.006.

    Nothing changed under the id of "new", and the account that "old" leaves out at last is refused by its name.
    """
    ids = {"old": "111100001111", "new": "111100002222"}

    def export(name: str, version: str, *clocks: int) -> Path:
        lines = [hour(14, clock, f"i-{name}", line_item_usage_account_id=ids[name]) for clock in clocks]
        return write_export(tmp_path, {"2026-07": lines}, name=name, execution=f"20260801T000000Z-{version}")

    config = two_sources(tmp_path, export("old", "o1", 10), export("new", "n1", 10))
    publish_tables(config, HISTORY[:2])
    export("old", "o2", 10, 11)
    builder = publish_tables(config, HISTORY[:2])
    named = (
        "select delivery_no, source_name, delivery_id, line_count, billed_change_usd from mart_restatement order by 1"
    )
    assert ask(builder, named).rows() == [
        (1, "new, old", "n1, o1", 2, None),
        (2, "new, old", "n1, o2", 3, Decimal("1.006")),
    ]
    published = builder.lake.publications.newest()
    assert published is not None and [check["check"] for check in published.checks if not check["passed"]] == []
    export("old", "o3")
    with pytest.raises(
        SourceError, match=r"old-Manifest.json contains no line, yet 2026-07 was published with 3 lines"
    ):
        publish_tables(config, HISTORY[:2])


def test_a_month_left_out_between_two_exports_is_reported(tmp_path: Path) -> None:
    """June by the old, August by the new: July is missing, and a warning states it."""
    august = {"2026-08": [instance_hour("2026-08-01T10", "i-0node", "g5.xlarge", "1")]}
    june = {"2026-06": [instance_hour("2026-06-01T10", "i-0node", "g5.xlarge", "1")]}
    config = two_sources(tmp_path, write_export(tmp_path, june, name="old"), write_export(tmp_path, august, name="new"))
    builder = publish_tables(config, HISTORY[:1])
    published = builder.lake.publications.newest()
    assert published is not None
    (gap,) = [check for check in published.checks if check["check"] == "a_month_between_delivered_ones_is_missing"]
    assert not gap["passed"] and str(gap["sample"][0]["next_month"]).startswith("2026-08")


@pytest.mark.parametrize(
    ("last", "day", "is_reported"), [("07", "01", False), ("07", "10", True), ("05", "10", True), ("04", "10", False)]
)
def test_a_payer_without_the_newest_month_is_reported(tmp_path: Path, last: str, day: str, is_reported: bool) -> None:
    """One payer has July and August up to its first or its tenth day; the other ended before, or is late."""
    ids = {"bill_payer_account_id": "000011113333", "line_item_usage_account_id": "000011114444"}
    july, august = (
        [instance_hour(f"2026-{date}T10", "i-0node", "g5.xlarge", "1", **ids)] for date in ("07-10", f"08-{day}")
    )
    old = {f"2026-{last}": [instance_hour(f"2026-{last}-10T10", "i-0node", "g5.xlarge", "1")]}
    new = write_export(tmp_path, {"2026-07": july, "2026-08": august}, name="new")
    config = two_sources(tmp_path, write_export(tmp_path, old, name="old"), new)
    published = publish_tables(config, HISTORY[:1]).lake.publications.newest()
    assert published is not None
    failed = [check for check in published.checks if not check["passed"]]
    assert [(check["check"], check["sample"][0]["source_name"]) for check in failed] == [
        ("the_newest_month_of_a_payer_is_missing", "old")
    ] * is_reported


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('first_month = "2026-7"', "key 'first_month': write a month such as 2026-07"),
        ('first_month = "2026-08"\nlast_month = "2026-07"', "first_month 2026-08 is after last_month 2026-07"),
    ],
)
def test_months_that_make_no_sense_are_refused(tmp_path: Path, keys: str, message: str) -> None:
    config = two_sources(tmp_path, tmp_path / "a", tmp_path / "b", keys)
    with pytest.raises(UsageError, match=message):
        load_settings(config)
