"""A small company with a hostile run, published twice, and the dashboard over it on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.bills import write_events
from support.ledgers import build_warehouse
from support.site import FIRST, HOSTILE, HOSTILE_TEAM, SECOND, Site, deliver, hour_of_gpu
from support.small_company import Company, found

from pipelines.base.errors import UsageError
from pipelines.config.settings import load_settings
from pipelines.dashboard.pages import render
from pipelines.dashboard.reader import Reader
from pipelines.dashboard.web import serve
from pipelines.models.warehouse import Warehouse


@pytest.fixture(scope="session")
def company(once: Callable[[str, Callable[[Path], object]], Path]) -> Company:
    """Published on 3 September as delivered: gpu-1 110.08, trn-1 4 x 21.50 = 86.00, the hostile run 60.00 USD;
    restated on the 5th: trn-1 4 x 20.00 = 80.00."""
    root = once("dashboard", publish_twice)
    return Company(root, root / "events")


def publish_twice(root: Path) -> None:
    company = found(root)
    write_events(company.events, hour_of_gpu(HOSTILE, "i-evil", HOSTILE_TEAM), "hostile.jsonl")
    for rate in ("21.50", "20.00"):
        deliver(company, rate)
        build_warehouse(company.config)
    for number, moment in ((1, FIRST), (2, SECOND)):
        record = company.warehouse / "publications" / f"{number:06d}.json"
        record.write_text(json.dumps({**json.loads(record.read_text()), "published_at": moment}))


@pytest.fixture(scope="session")
def serving() -> Callable[[Company], Site]:
    """Serves a company's dashboard on a free port of loopback, until the tests end."""

    def start(company: Company) -> Site:
        listened = threading.Event()
        addresses: list[str] = []

        def ready(address: str) -> None:
            addresses.append(address.rstrip("/"))
            listened.set()

        reader = Reader(Warehouse(load_settings(company.config)))
        with suppress(UsageError):
            # As the command does: the first page of all pays for what is loaded.
            render(reader, "overview", {})
        threading.Thread(target=serve, args=(reader, "127.0.0.1", 0, ready), daemon=True).start()
        assert listened.wait(30)
        return Site(addresses[0], company)

    return start


@pytest.fixture(scope="session")
def site(company: Company, serving: Callable[[Company], Site]) -> Site:
    return serving(company)
