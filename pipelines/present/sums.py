"""The sums of dashboards/sums.yml, with the buckets and the days that a chart draws."""

import yaml

from pipelines.base import resources
from pipelines.present.buckets import DRAWN

# A chart shows no more days: they would be thinner than a line.
_DRAWN_DAYS = 92
SUMS: dict[str, str] = yaml.safe_load((resources.DASHBOARDS / "sums.yml").read_text(encoding="utf-8"))
_PARTS = {
    "{is_drawn_bucket}": f"bucket in ({', '.join(repr(bucket) for bucket in DRAWN)})",
    "{is_drawn}": f"usage_date > (select max(usage_date) from mart_cost_ledger_daily) - interval {_DRAWN_DAYS} day",
}


def sum_of(sum: str, where: str = "true", mart: str = "", by: str = "") -> str:
    """The SELECT of a sum, over the rows that `where` holds for, of each value of the columns `by`."""
    sql = SUMS[sum].replace("{where}", where).replace("{mart}", mart).replace("{by}", by)
    for part, text in _PARTS.items():
        sql = sql.replace(part, text)
    return sql
