"""The generated large bill: as long as requested, true to AWS's identities, joined by its run events."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.base.errors import UsageError
from pipelines.bench import bill as bench_bill
from pipelines.bench.bill import BenchData, add_day, restate, write_bench_bill
from pipelines.config.settings import load_settings

LINES = 40_000


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> BenchData:
    # Small files, so that there are several.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_bill, "LINES_PER_FILE", 15_000)
        return write_bench_bill(tmp_path_factory.mktemp("bench"), LINES)


def read(data: BenchData) -> pa.Table:
    manifest = json.loads((data.export / f"metadata/BILLING_PERIOD={data.month}/bench-Manifest.json").read_text())
    files = [data.export / uri.split("/cur2/bench/", 1)[1] for uri in manifest["dataFiles"]]
    return pa.concat_tables([pq.ParquetFile(file).read() for file in files])


def column(content: pa.Table, name: str, *kinds: str) -> np.ndarray:
    """A numeric column of the lines of these types, nulls as zero."""
    chosen = np.isin(content["line_item_line_item_type"].to_numpy().astype(str), kinds)
    return np.nan_to_num(content[name].to_numpy()[chosen].astype(float))


@pytest.fixture(scope="module")
def content(bench: BenchData) -> pa.Table:
    return read(bench)


def test_as_many_lines_as_requested_in_several_files(bench, content):
    assert len(content) == bench.line_count == LINES
    assert len(list(bench.export.glob("data/*/*/*.parquet"))) == 3
    assert len(set(content["identity_line_item_id"].to_pylist())) == LINES
    assert load_settings(bench.config).billing[0].location == str(bench.export.resolve())


def test_identities_hold(content):
    covered = column(content, "line_item_unblended_cost", "SavingsPlanCoveredUsage").sum()
    negated = column(content, "line_item_unblended_cost", "SavingsPlanNegation").sum()
    assert covered > 0 and covered + negated == pytest.approx(0, abs=1e-6)
    effective = column(content, "savings_plan_savings_plan_effective_cost", "SavingsPlanCoveredUsage").sum()
    used = column(content, "savings_plan_used_commitment", "SavingsPlanRecurringFee")
    held = column(content, "savings_plan_total_commitment_to_date", "SavingsPlanRecurringFee")
    assert used.sum() == pytest.approx(effective, abs=1e-6)
    assert (used <= held).all() and len(used) == 3 * 744
    reserved = column(content, "reservation_effective_cost", "DiscountedUsage").sum()
    assert column(content, "line_item_unblended_cost", "RIFee").sum() == pytest.approx(reserved, abs=1e-6)


def test_shape_is_that_of_a_large_company(content):
    usage_types = content["line_item_usage_type"].to_pylist()
    accelerated = [name for name in usage_types if name.split(".")[0].endswith((":p5", ":p4d", ":trn1", ":g6e"))]
    assert 0.02 < len(accelerated) / LINES < 0.05
    assert len(set(usage_types)) > 140
    assert len(set(content["line_item_usage_account_id"].to_pylist())) > 200
    tagged = sum(len(tags) > 0 for tags in content["resource_tags"].to_pylist())
    assert 0.4 < tagged / LINES < 0.6


def test_runs_claim_machines_of_the_bill(bench, content):
    billed = set(content["line_item_resource_id"].to_pylist())
    events = [json.loads(line) for path in bench.events.rglob("*.jsonl") for line in path.read_text().splitlines()]
    claimed = {event["resource"] for event in events if event["event"] == "resource_joined"}
    assert claimed and claimed <= billed
    assert len({event["run_id"] for event in events}) == bench.run_count


def test_a_restatement_changes_some_lines(bench, content, tmp_path):
    again = write_bench_bill(tmp_path, 20_000)
    before = read(again)
    changed = restate(tmp_path)
    after = read(again)
    assert len(list(again.export.glob("data/*/*"))) == 2
    cost = [content["line_item_unblended_cost"].to_numpy() for content in (before, after)]
    assert np.count_nonzero(cost[0] != cost[1]) == changed > 0
    assert cost[1].sum() > cost[0].sum()
    assert before.schema == after.schema
    assert restate(tmp_path) == changed
    assert read(again)["line_item_unblended_cost"].to_numpy().sum() > cost[1].sum()


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path):
    for folder in ("one", "two"):
        write_bench_bill(tmp_path / folder, 10_000, seed=7)
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert [
        path for path in files if (tmp_path / "one" / path).read_bytes() != (tmp_path / "two" / path).read_bytes()
    ] == []
    write_bench_bill(tmp_path / "three", 10_000, seed=8)
    data = next(path for path in files if path.suffix == ".parquet")
    assert (tmp_path / "one" / data).read_bytes() != (tmp_path / "three" / data).read_bytes()


def test_too_few_lines_are_refused(tmp_path):
    with pytest.raises(UsageError, match="at least 10000 lines, not 5"):
        write_bench_bill(tmp_path, 5)


def test_another_day_adds_lines_and_runs_to_those_delivered(tmp_path):
    data = write_bench_bill(tmp_path, 10_000)
    before, runs_before = read(data), len(list(data.events.rglob("*.jsonl")))
    add_day(tmp_path, 12_000)
    after = read(data)
    # Earlier files are delivered again as they were, the new one after them.
    assert len(after) == 22_000 and after.slice(0, 10_000).equals(before)
    assert len(set(after["identity_line_item_id"].to_pylist())) == 22_000
    assert len(list(data.events.rglob("*.jsonl"))) > runs_before
