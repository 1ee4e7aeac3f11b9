"""The buckets of the ledger in their order, as sql/reference/ref_bucket.csv names them."""

from pipelines.base.resources import REFERENCE, listed_rows

_ROWS = sorted(listed_rows(REFERENCE / "ref_bucket.csv"), key=lambda row: int(row["sort_order"]))

# Each bucket's meaning in one line.
BUCKETS = {row["bucket"]: row["meaning"] for row in _ROWS}
LABELS = {row["bucket"]: row["label"] for row in _ROWS}
# Paid for and used by no run.
UNUSED = tuple(row["bucket"] for row in _ROWS if row["bucket_group"] == "unused")
# What charts draw: runs, serving, and what was paid for and not used.
DRAWN = tuple(row["bucket"] for row in _ROWS if row["bucket_group"] != "other")
# What charts draw by the day: what a reservation left unused of its whole month stands on the day of its fee.
DRAWN_BY_DAY = tuple(bucket for bucket in DRAWN if bucket != "commitment_unused")
