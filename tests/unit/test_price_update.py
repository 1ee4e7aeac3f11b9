"""`trainledger prices update`: the book compared with offer files of the AWS Price List, in the layout AWS publishes.

Amounts of the unchanged prices are those of the book (facts aws-billing 5); the changed ones are made up.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from support.bills import instance_hour, write_config
from support.lab import Lab

from pipelines.base.errors import SourceError, UsageError
from pipelines.config.settings import load_settings
from pipelines.prices.book import reviewed_book
from pipelines.prices.command import update
from pipelines.prices.offer_file import as_toml, price_changes

HEAD = """"FormatVersion","v1.0"
"Disclaimer","This pricing list is for informational purposes only."
"Publication Date","2026-11-18T21:06:40Z"
"Version","20261118210640"
"OfferCode","AmazonEC2"
"""
COLUMNS = (
    "SKU", "OfferTermCode", "TermType", "EffectiveDate", "Unit", "PricePerUnit", "Currency", "Instance Type", "Tenancy",
    "Operating System", "CapacityStatus", "Pre Installed S/W", "MarketOption", "Region Code",
)  # fmt: skip
SOLD = {
    "OfferTermCode": "JRTCKXETXF", "TermType": "OnDemand", "EffectiveDate": "2026-11-01", "Unit": "Hrs",
    "Currency": "USD", "Tenancy": "Shared", "Operating System": "Linux", "CapacityStatus": "Used",
    "Pre Installed S/W": "NA", "MarketOption": "OnDemand", "Region Code": "us-west-2",
}  # fmt: skip
UNCHANGED = {"SKU": "A1", "Instance Type": "p5.48xlarge", "PricePerUnit": "55.0400000000"}
CHANGED = {"SKU": "A2", "Instance Type": "p4d.24xlarge", "PricePerUnit": "19.7618000000"}
NEW = {"SKU": "A3", "Instance Type": "trn2.3xlarge", "PricePerUnit": "2.5000000000"}
OF_OTHER_KINDS = (
    {**UNCHANGED, "SKU": "B1", "PricePerUnit": "0.0000000000", "MarketOption": "CapacityBlock"},
    {**UNCHANGED, "SKU": "B2", "PricePerUnit": "63.87", "Operating System": "Windows"},
    {**UNCHANGED, "SKU": "B3", "PricePerUnit": "60.544", "Tenancy": "Dedicated"},
    {**UNCHANGED, "SKU": "B4", "PricePerUnit": "30.1", "TermType": "Reserved"},
    {**UNCHANGED, "SKU": "B5", "PricePerUnit": "55.1", "CapacityStatus": "UnusedCapacityReservation"},
    {"SKU": "B6", "Instance Type": "m5.large", "PricePerUnit": "0.096"},
)


def offer_file(folder: Path, *products: dict[str, str], head: str = HEAD) -> Path:
    path = folder / "index.csv"
    rows = [COLUMNS, *([{**SOLD, **product}[name] for name in COLUMNS] for product in products)]
    path.write_text(head + "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows))
    return path


def test_only_linux_on_demand_prices_of_accelerators_that_differ_are_changes(tmp_path: Path) -> None:
    path = offer_file(tmp_path, *OF_OTHER_KINDS, UNCHANGED, CHANGED, NEW)
    settings = load_settings(write_config(tmp_path, billing="export"))
    changes, agreeing = price_changes([path], reviewed_book(), settings.accelerator_families)
    assert agreeing == 1
    assert [(one.price.instance_type, one.price.price_per_hour_usd, one.price.from_date) for one in changes] == [
        ("p4d.24xlarge", Decimal("19.7618"), date(2026, 11, 18)),
        ("trn2.3xlarge", Decimal("2.5"), date(2026, 11, 18)),
    ]
    assert [one.held and one.held.usd_per_hour for one in changes] == [Decimal("21.95764"), None]


def test_a_price_that_takes_effect_later_holds_from_that_day(tmp_path: Path) -> None:
    path = offer_file(tmp_path, {**CHANGED, "EffectiveDate": "2026-12-01", "PricePerUnit": "20.0000000000"})
    ((one,), _) = price_changes([path], reviewed_book(), ["p4d.24xlarge"])
    assert one.price.from_date == date(2026, 12, 1)
    # Not as 2E+1.
    assert 'price_per_hour_usd = "20"\n' in as_toml([one.price])


def test_nothing_is_written_before_the_changes_were_reviewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, path = write_config(tmp_path, billing="export"), offer_file(tmp_path, UNCHANGED, CHANGED)
    before = config.read_text()
    update([path], write=False, config=config)
    assert config.read_text() == before
    shown = capsys.readouterr().out
    assert "21.95764" in shown and "19.7618" in shown and "-10.0%" in shown
    assert "1 price differs from the book, 1 agrees." in shown

    update([path], write=True, config=config)
    (price,) = load_settings(config).prices
    assert (price.instance_type, price.region_id, price.offer) == ("p4d.24xlarge", "us-west-2", "on_demand")
    assert price.source == "AWS Price List, published 2026-11-18, SKU A2"
    held = reviewed_book([price]).at("p4d.24xlarge", date(2026, 11, 20), "on_demand", "us-west-2")
    assert held.usd_per_hour == Decimal("19.7618")
    update([path], write=True, config=config)
    assert len(load_settings(config).prices) == 1


@pytest.mark.parametrize(
    ("head", "products", "message"),
    [
        ("", [UNCHANGED], "has no Publication Date above a header that starts with SKU"),
        (
            HEAD,
            [UNCHANGED, {**UNCHANGED, "SKU": "A9", "PricePerUnit": "56"}],
            "has two prices of p5.48xlarge in us-west-2",
        ),
        (HEAD, [{**UNCHANGED, "PricePerUnit": "free"}], "the price of SKU A1 is 'free', not an amount"),
        (HEAD, [{**UNCHANGED, "EffectiveDate": "soon"}], "'soon' is not a date"),
    ],
)
def test_a_file_that_is_no_offer_file_is_refused(
    tmp_path: Path, head: str, products: list[dict[str, str]], message: str
) -> None:
    with pytest.raises(SourceError) as refused:
        price_changes([offer_file(tmp_path, *products, head=head)], reviewed_book(), ["p5.48xlarge"])
    assert message in str(refused.value)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = offer_file(tmp_path, UNCHANGED)
    path.write_text(path.read_text().replace('"MarketOption"', '"Market"'))
    with pytest.raises(SourceError, match="has no column MarketOption"):
        price_changes([path], reviewed_book(), ["p5.48xlarge"])


def test_a_price_configured_twice_is_refused(tmp_path: Path) -> None:
    config = write_config(tmp_path, billing="export")
    entry = '[[prices]]\ninstance_type = "p9.48xlarge"\nregion_id = "us-east-1"\noffer = "on_demand"\n'
    entry += "from_date = 2026-11-01\nprice_per_hour_usd = 90\n"
    config.write_text(config.read_text() + "\n" + entry + entry)
    with pytest.raises(UsageError, match=r"contain p9\.48xlarge us-east-1 on_demand 2026-11-01 twice"):
        load_settings(config)


@pytest.mark.parametrize("region_id", ["us", "unstated"])
def test_an_on_demand_price_is_of_one_region(tmp_path: Path, region_id: str) -> None:
    """Comparisons read no price of an area: one that is declared would be missing without a word."""
    config = write_config(tmp_path, billing="export")
    entry = f'[[prices]]\ninstance_type = "p9.48xlarge"\nregion_id = "{region_id}"\noffer = "on_demand"\n'
    entry += "from_date = 2026-11-01\nprice_per_hour_usd = 90\n"
    config.write_text(config.read_text() + "\n" + entry)
    with pytest.raises(UsageError, match=f"region_id {region_id} is not a region"):
        load_settings(config)


def test_block_prices_are_of_a_region_then_of_its_area() -> None:
    """standards-2026 4: p5en in July 2026 is 54.92 in the US and 49.928 elsewhere; p5e in us-west-1 was 49.749."""
    at, july, june = reviewed_book().at, date(2026, 7, 2), date(2026, 6, 1)
    prices = [
        at(kind, day, "capacity_block", region).usd_per_hour
        for kind, day, region in (
            ("p5en.48xlarge", july, "us-east-2"), ("p5en.48xlarge", july, "eu-north-1"),
            ("p5e.48xlarge", june, "us-west-1"), ("p5e.48xlarge", june, "us-east-1"),
            ("p5.4xlarge", july, "us-east-1"), ("p5.4xlarge", july, "ap-northeast-1"),
        )
    ]  # fmt: skip
    assert [str(price.normalize()) for price in prices] == ["54.92", "49.928", "49.749", "39.799", "5.191", "4.72"]


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nope\.csv does not exist; give the index\.csv"):
        price_changes([tmp_path / "nope.csv"], reviewed_book(), ["p5.48xlarge"])


def test_the_bill_dates_a_price_better_than_the_book() -> None:
    """The book has the cut of p5.48xlarge from 98.32 to 55.04 by 1 June 2025; the bill shows it on 20 June. On 25 June
    only a machine with a licensed system ran, which changes no price."""

    def hour(day: str, rate: str) -> dict[str, str]:
        place = {"line_item_usage_type": "BoxUsage:p5.48xlarge", "product_region_code": "us-east-1"}
        return instance_hour(f"{day}T10", "i-1", "p5.48xlarge", rate) | place

    months = {"2025-05": [hour("2025-05-20", "98.32")]}
    months["2025-06"] = [hour("2025-06-03", "98.32"), hour("2025-06-20", "55.04"), hour("2025-06-25", "64.26")]
    months["2025-06"] += [hour("2025-06-26", "55.04")]
    query = "select from_date, price_evidence, price_per_hour_usd from mart_price_book where offer = 'on_demand' "
    with Lab(months, {}) as lab:
        found = lab.ask(f"{query} and instance_type = 'p5.48xlarge' and region_id = 'us-east-1'", "mart_price_book")
    assert sorted(found) == [
        (date(2024, 12, 1), "book", Decimal("98.32")),
        (date(2025, 5, 20), "bill", Decimal("98.32")),
        (date(2025, 6, 20), "bill", Decimal("55.04")),
    ]


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ("us-east-1", ["21.95764"]),
        # The book has no price of this region, so the bill alone shows what it is.
        ("eu-west-3", ["21.95764", "25.63"]),
    ],
)
def test_the_newest_days_of_a_licensed_machine_change_no_price_that_the_book_has(
    region: str, expected: list[str]
) -> None:
    """p4d.24xlarge is 21.95764 by the book and by the bill of 3 June 2026; on 25 June a licensed one ran alone."""
    lines = [
        instance_hour(f"2026-06-{day}T10", "i-1", "p4d.24xlarge", rate, product_region_code=region)
        for day, rate in (("03", "21.95764"), ("25", "25.63"))
    ]
    query = "select price_per_hour_usd from mart_price_book where price_evidence = 'bill' and region_id = "
    with Lab({"2026-06": lines}, {}) as lab:
        found = lab.ask(f"{query}'{region}' order by from_date", "mart_price_book")
    assert [price for (price,) in found] == [*map(Decimal, expected)]
