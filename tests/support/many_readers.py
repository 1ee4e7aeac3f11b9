"""Many readers at once: `python -m support.many_readers CONFIG COUNT`, each a process that reads as `query` does.

Prints a line when all have read once; each stops when the file `CONFIG.stop` is there. Then prints, as JSON, of each
how often it read, which publications, every different (publication is odd, run cost, cost in the ledger), and the
costs of `marts.duckdb`. Readers give way to the one who publishes: 24 of them never rest.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from pipelines.config.settings import load_settings
from pipelines.models.marts import open_marts
from pipelines.models.warehouse import Warehouse, published_of
from support.reader import QUERY, copied, write


def _read(config: Path, first: int) -> dict[str, Any]:
    """What one reader saw until it was stopped; writes to the pipe `first` when it has read once."""
    settings, stop = load_settings(config), config.with_suffix(".stop")
    seen: set[tuple] = set()
    copies: set[tuple] = set()
    reads, numbers = 0, [0]
    while not stop.exists():
        warehouse = Warehouse(settings)
        published = published_of(warehouse)
        assert published.number >= numbers[-1], "publications went back"
        numbers += [published.number] if published.number > numbers[-1] else []
        with open_marts(warehouse, published) as engine:
            (row,) = engine.query(QUERY.format(runs="mart_run_cost", ledger="mart_cost_ledger_daily")).rows()
        seen.add((published.number % 2, *row))
        copies.add(copied(warehouse.work))
        if not reads:
            os.write(first, b"x")
        reads += 1
    return {"reads": reads, "seen": sorted(seen), "copies": sorted(copies), "numbers": numbers[1:]}


def main(config: str, count: str) -> None:
    """Run the readers."""
    began, begins = os.pipe()
    children = []
    for _ in range(int(count)):
        answers, answer = os.pipe()
        if not (child := os.fork()):
            code = 1
            try:
                os.nice(19)
                os.write(answer, json.dumps(_read(Path(config), begins)).encode())
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(answer)
        children.append((child, answers))
    for _ in children:
        os.read(began, 1)
    write("reading")
    for child, answers in children:
        with os.fdopen(answers) as answered:
            write(answered.read())
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
