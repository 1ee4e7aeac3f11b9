"""Planning over many payers and months: what it reads, how often, and that unchanged bills cost next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from support.cur_exports import CUR2_LINE, cur2_export, parquet, stored
from support.ledgers import publish_tables
from support.payers import months_from, write_payers
from support.small_company import found

from pipelines.config.settings import Settings, load_settings
from pipelines.ingest.billing import raw
from pipelines.ingest.billing.delivery import load
from pipelines.models.publish import plan
from pipelines.models.warehouse import Warehouse
from pipelines.warehouse import storage_s3
from pipelines.warehouse.storage_local import LocalStore
from pipelines.warehouse.stores import open_store

MONTHS = months_from("2025-11", 4)
PAYERS = 3


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(write_payers(tmp_path, PAYERS, MONTHS))


def test_every_month_of_every_payer_is_planned(settings: Settings) -> None:
    planned = plan(Warehouse(settings))
    assert planned.months == planned.changed == tuple(MONTHS)
    found = [(made["source"], made["billing_period"], made["kind"]) for made in planned.inputs["deliveries"]]
    kinds = {0: "cur2", 1: "cur", 2: "cur2"}
    assert found == [(f"payer-{number}", month, kinds[number]) for number in range(PAYERS) for month in MONTHS]


def test_a_manifest_is_read_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    plain = LocalStore.open
    monkeypatch.setattr(LocalStore, "open", lambda store, key: read.append(key) or plain(store, key))
    first = plan(Warehouse(settings))
    assert len(read) == PAYERS * len(MONTHS)
    read.clear()
    assert plan(Warehouse(settings)).inputs == first.inputs and read == []


def test_a_log_that_was_gone_for_a_moment_is_read_by_the_next_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back as it was listed, so no fingerprint shows it; a record shows 20 of the warnings of a source."""
    company, aside, plain = found(tmp_path), tmp_path / "aside", LocalStore.open
    log = company.events / "events.jsonl"
    for number in range(20):
        (company.events / f"damaged-{number}.jsonl").write_text("damaged\n")

    def open_late(store: LocalStore, key: str) -> BinaryIO:
        if key == log.name:
            log.rename(aside)
        return plain(store, key)

    with monkeypatch.context() as moment:
        moment.setattr(LocalStore, "open", open_late)
        publish_tables(company.config, ["stg_tracker__run"])
    aside.rename(log)
    assert not plan(Warehouse(load_settings(company.config))).is_current
    builder = publish_tables(company.config, ["stg_tracker__run"])
    assert builder.lake.row_count("staging/stg_tracker__run") == 2
    assert plan(Warehouse(load_settings(company.config))).is_current


def test_the_bill_is_described_once_a_month(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of some fifty tables asks what its bill is, to know whether it is up to date."""
    described: list[int] = []
    plain = raw.raw_select
    monkeypatch.setattr(raw, "raw_select", lambda raws, *rest: described.append(len(raws)) or plain(raws, *rest))
    bill = Warehouse(settings).bill
    seen = {bill.fingerprint("aws_cur_line_item", month) for _ in range(3) for month in MONTHS}
    assert len(seen) == len(MONTHS) and described == [PAYERS] * len(MONTHS)


def test_columns_that_files_share_are_recorded_once(tmp_path: Path) -> None:
    """A delivery of hundreds of files of hundreds of columns is planned by reading its record."""
    line = CUR2_LINE | {f"product_attribute_{number}": "x" for number in range(100)}
    odd = parquet([CUR2_LINE | {"product_operation": "x"}])
    sizes = []
    for names in ("ab", "abcdefghijkl"):
        files = {f"{name}.parquet": parquet([line | {"line_item_resource_id": name}]) for name in names}
        root = cur2_export(tmp_path / names, {**files, "odd.parquet": odd})
        (raw,) = stored(root, tmp_path / names / "raw")
        assert load(raw.folder) == raw
        assert len({file.columns for file in raw.files}) == 2
        sizes.append((raw.folder / "delivery.json").stat().st_size)
    # Each of the ten files more has a key, a size and a total; of a hundred columns it would have 9,000 bytes.
    assert (sizes[1] - sizes[0]) / 10 < 1000


@pytest.fixture
def on_s3(settings: Settings, s3_endpoint: str) -> Settings:
    """The same bills, each payer's in a bucket of its own."""
    import boto3

    client = boto3.client("s3", endpoint_url=s3_endpoint)
    sources = []
    for source in settings.billing:
        local, bucket = Path(source.location), f"bucket-{source.name}"
        place = f"s3://{bucket}/{'cur' if local.name == 'ml-cur' else 'cur2'}/{local.name}"
        client.create_bucket(Bucket=bucket)
        store = open_store(place, endpoint_url=s3_endpoint)
        for path in local.rglob("*"):
            if path.is_file():
                content = path.read_bytes().replace(b"example-billing", bucket.encode())
                store.write(
                    path.relative_to(local).as_posix(), content if path.suffix == ".json" else path.read_bytes()
                )
        sources.append(source.model_copy(update={"location": place, "endpoint_url": s3_endpoint}))
    return settings.model_copy(update={"billing": tuple(sources)})


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The path of every request to S3, `client` for each client that was made."""
    from botocore.httpsession import URLLib3Session

    sent: list[str] = []
    send, make = URLLib3Session.send, storage_s3.connect
    monkeypatch.setattr(
        URLLib3Session, "send", lambda self, request: sent.append(request.url.partition("?")[0]) or send(self, request)
    )
    monkeypatch.setattr(storage_s3, "connect", lambda *rest, **more: sent.append("client") or make(*rest, **more))
    yield sent


def test_payers_on_s3_share_a_client_and_cost_a_listing_each(on_s3: Settings, requests: list[str]) -> None:
    first = plan(Warehouse(on_s3))
    assert sum(path.endswith("Manifest.json") for path in requests) == PAYERS * len(MONTHS)
    requests.clear()
    warehouse = Warehouse(on_s3)
    assert plan(warehouse).inputs == first.inputs
    assert requests.count("client") == 1
    assert sorted(path.rpartition("/")[2] for path in requests if path != "client") == [
        f"bucket-payer-{number}" for number in range(PAYERS)
    ]
    # Nor does fetching what was planned make another one.
    assert [raw.line_count for raw in warehouse.bill.ingest(MONTHS[0])] == [1] * PAYERS
    assert requests.count("client") == 1


def test_a_delivery_of_ten_thousand_files_is_planned_by_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is opened."""
    location = cur2_export(tmp_path, {f"part-{number:05d}.csv.gz": b"x" for number in range(10_000)})
    config = tmp_path / "trainledger.toml"
    config.write_text(f'[warehouse]\nlocation = "w"\n[[billing]]\nname = "payer"\nlocation = "{location}"\n')
    read: list[str] = []
    plain = LocalStore.open
    monkeypatch.setattr(LocalStore, "open", lambda store, key: read.append(key) or plain(store, key))
    warehouse = Warehouse(load_settings(config))
    (planned,) = plan(warehouse).inputs["deliveries"]
    assert planned["billing_period"] == "2026-07"
    (delivery,) = warehouse.bill.deliveries
    assert len(delivery.objects) == 10_000 and not delivery.missing
    assert [Path(key).name for key in read] == ["ml-cur2-Manifest.json"]
