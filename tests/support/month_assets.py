"""Assets of one month, each step in a process of its own: `python -m support.month_assets MONTH`."""

from __future__ import annotations

import sys

import dagster as dg

from pipelines.config.settings import load_settings
from pipelines.definitions import assemble
from pipelines.defs.steps import asset_key

TABLES = ("aws_cur_line_item", "aws_focus_line_item", "stg_aws__billed_stretch", "stg_aws__cur_combination")


def job() -> dg.JobDefinition:
    """The job of these assets."""
    keys = [asset_key(name) for name in TABLES]
    made = dg.define_asset_job("some", dg.AssetSelection.assets(*keys), executor_def=dg.multiprocess_executor)
    return dg.Definitions.merge(assemble(load_settings()), dg.Definitions(jobs=[made])).resolve_job_def("some")


def main(month: str) -> None:
    """Materialize the tables of a month; a failed step ends with a traceback."""
    with dg.DagsterInstance.get() as instance:
        done = dg.execute_job(
            dg.reconstructable(job),
            instance=instance,
            tags={"dagster/partition": month},
            run_config={"execution": {"config": {"max_concurrent": 2}}},
            raise_on_error=True,
        )
        assert done.success


if __name__ == "__main__":
    main(sys.argv[1])
