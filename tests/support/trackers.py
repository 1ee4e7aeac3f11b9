"""Run events through the staging models alone: no bill, no build, no checks but the one a test asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.base import resources
from pipelines.config.sources import RunSource
from pipelines.engine import Engine
from pipelines.engine.duckdb import DuckDBEngine
from pipelines.ingest.runs.tracker import read_runs
from pipelines.ingest.serving.sources import read_serving
from pipelines.models.catalog import load_catalog
from support.bills import write_events


def staged(root: Path, events: Sequence[dict[str, Any]]) -> Engine:
    """An engine with the staging tables of these events."""
    runs = write_events(root / "runs", events)
    engine = DuckDBEngine()
    for table, frame in read_runs(RunSource(name="jobs", location=str(runs))).tables.items():
        frame.write_parquet(root / f"{table}.parquet")
        engine.view(table, [root / f"{table}.parquet"])
    for table, frame in read_serving([]).tables.items():
        frame.write_parquet(root / f"{table}.parquet")
        engine.view(table, [root / f"{table}.parquet"])
    types = resources.REFERENCE / "ref_instance_type.csv"
    typed = "select * replace (cast(accelerator_count as bigint) as accelerator_count)"
    engine.view_sql("ref_instance_type", f"{typed} from read_csv('{types}', all_varchar = true)")
    engine.view_sql("ref_bedrock_model", f"from read_csv('{resources.REFERENCE / 'ref_bedrock_model.csv'}')")
    # Without a bill, no instance is seen to stay up.
    engine.view_sql(
        "stg_aws__billed_stretch",
        "select '' as payer_account_id, '' as resource_id, timestamp '2026-07-01' as started_at, "
        "timestamp '2026-07-01' as ended_at where false",
    )
    engine.view_sql(
        "stg_aws__pod_machine",
        "select '' as pod_id, '' as resource_id, cast(1 as bigint) as accelerator_count where false",
    )
    month = "timestamp '2026-07-01' as started_at, timestamp '2026-08-01' as ended_at"
    engine.view_sql("stg_aws__usage_span", f"select '2026-07' as billing_period, {month}, false as is_late")
    engine.view_sql("policy", "select 'folded' as team_spelling")
    for model in load_catalog().ordered:
        if model.name.startswith(("stg_tracker__", "stg_serving__")):
            engine.view_sql(model.name, model.text)
    return engine
