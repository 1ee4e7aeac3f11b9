"""Many readers while publications come and go: none errs, and none sees a part of two builds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.campaign import Campaign
from support.ledgers import build_warehouse
from support.small_company import AUGUST, Company

from pipelines.config.settings import Retention, load_settings
from pipelines.models.marts import write_copy
from pipelines.models.publish import prune
from pipelines.models.warehouse import Warehouse

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]
READERS, PUBLICATIONS = 24, 200


def test_24_readers_of_200_publications(built_company: Company, tmp_path: Path, campaign: Campaign) -> None:
    """Odd ones have the first rate of August, even ones another; every tenth prunes those before it."""
    company = built_company.copy(tmp_path)
    company.deliver(AUGUST, "20.00")
    build_warehouse(company.config)
    warehouse = Warehouse(load_settings(company.config))
    records = [{**vars(one)} for one in warehouse.lake.publications.all()]
    for record in records:
        del record["number"], record["published_at"]
    readers = subprocess.Popen(
        [sys.executable, "-m", "support.many_readers", company.config, str(READERS)],
        env=os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert readers.stdout is not None and readers.stdout.readline() == "reading\n"
    before = warehouse.lake.publications.newest()
    with warehouse.lake.lock():
        for number in range(3, PUBLICATIONS + 1):
            published = warehouse.lake.publish(records[(number - 1) % 2])
            assert published.number == number
            assert write_copy(warehouse, published, before) == ""
            before = published
            if number % 10 == 0:
                tomorrow = datetime.now(UTC) + timedelta(days=2)
                pruned = prune(warehouse, Retention(days=1, publications=(1, 2)), tomorrow)
                assert len(pruned.publications) == (7 if number == 10 else 10)
    company.config.with_suffix(".stop").touch()
    answers = [json.loads(line) for line in readers.stdout]
    assert readers.wait() == 0 and len(answers) == READERS
    # 110.08 and four hours of August at 21.50, then at 20.00.
    costs = {1: "196.0800000000", 0: "190.0800000000"}
    for answer in answers:
        assert {tuple(one) for one in answer["seen"]} <= {(odd, cost, cost) for odd, cost in costs.items()}
        assert {tuple(one) for one in answer["copies"]} <= {(cost, cost) for cost in costs.values()}
        assert len(answer["numbers"]) > 1
        campaign.counts["reads"] += answer["reads"]
    numbers = {number for answer in answers for number in answer["numbers"]}
    campaign.counts["publications read"] = len(numbers)
    assert numbers <= {*range(2, PUBLICATIONS + 1)}
    assert {tuple(one) for answer in answers for one in answer["seen"]} == {(odd, c, c) for odd, c in costs.items()}
