"""How often a build reads the lines of a bill: each time costs processor time for every line (docs/benchmarks.md)."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from pipelines.ingest.billing.columns import CUR
from pipelines.models.catalog import load_catalog


def test_a_build_reads_the_lines_of_a_report_only_in_these_tables() -> None:
    """A table that is stored counts once for each name in its SELECT behind which the raw lines are."""
    catalog = load_catalog()

    def scans(text: str) -> int:
        return sum(scans_of(table.name) for table in sqlglot.parse_one(text, read="duckdb").find_all(exp.Table))

    def scans_of(name: str) -> int:
        if name == CUR.table:
            return 1
        return scans(catalog[name].text) if name in catalog and not catalog[name].stored else 0

    found = {}
    for model in catalog.ordered:
        if model.stored:
            count = scans(model.text) if model.kind == "sql" else sum(map(scans_of, model.inputs))
            found |= {model.name: count} if count else {}
    # All columns of every line; a further one costs about a second of processor time a million lines. Two of the second
    # kind are one: that of lines known by their product (stg_aws__line_item) ends at once where there are none.
    whole = {"stg_aws__cur_combination": 1, "fct_charge": 2, "detail_commitment_use_hourly": 2}
    # A few columns, or lines of one kind.
    parts = ("savings_plan_hourly", "commitment_fee", "billed_stretch", "pod_machine")
    assert found == whole | {f"stg_aws__{name}": 1 for name in parts} | {"stg_aws__pod_hourly": 3}
