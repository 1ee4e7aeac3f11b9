"""A reader that knows the warehouse from the outside only: the newest record names the files, DuckDB reads them.

`python reader.py WAREHOUSE` reads over and over until its standard input closes, then prints what it saw as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import duckdb

# What the runs cost, read from two marts that must agree.
QUERY = (
    "select cast((select sum(effective_cost_usd) from {runs}) as varchar), "
    "cast((select sum(effective_cost_usd) from {ledger} where bucket = 'run') as varchar)"
)


def newest(warehouse: Path) -> dict:
    return json.loads(max((warehouse / "publications").glob("*.json")).read_text())


def published(warehouse: Path, record: dict) -> tuple[str, str]:
    """Both marts' answer in the files a publication names."""
    folder, tables = warehouse / "tables", record["tables"]
    source = {
        name: f"read_parquet({[str(folder / key / file) for file in tables[key]['files']]})"
        for name, key in (("runs", "marts/mart_run_cost"), ("ledger", "marts/mart_cost_ledger_daily"))
    }
    return duckdb.sql(QUERY.format(**source)).fetchone()


def copied(warehouse: Path) -> tuple[str, str]:
    """Both marts' answer in the copy for BI tools."""
    with duckdb.connect(warehouse / "marts.duckdb", read_only=True) as copy:
        return copy.sql(QUERY.format(runs="mart.mart_run_cost", ledger="mart.mart_cost_ledger_daily")).fetchone()


def write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(warehouse: Path) -> None:
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    first, seen, copies, reads = newest(warehouse), [], [], 0
    kept = published(warehouse, first)
    while not stop.is_set():
        record = newest(warehouse)
        what = (record["number"], *published(warehouse, record))
        seen += [what] if what not in seen[-1:] else []
        copy = copied(warehouse)
        copies += [copy] if copy not in copies[-1:] else []
        # Who opened the first publication keeps reading it.
        assert published(warehouse, first) == kept
        if reads == 0:
            write("reading")
        reads += 1
    write(json.dumps({"reads": reads, "seen": seen, "copies": copies}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
