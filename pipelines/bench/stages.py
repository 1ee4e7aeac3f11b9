"""The stages of one build in this process, each with its processor seconds, as one line of JSON.

`python -m pipelines.bench.stages CONFIG [--floor]`: with --floor the least that the same work takes in this engine:
the bare SELECTs of all tables over what the build committed, and their checks alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# What is timed, by the stage it belongs to: an attribute of the builder or of its lake.
TIMED = {
    "rows": ("builder", "_stage"),
    "checks": ("builder", "_checked"),
    "records and fingerprints": ("builder", "_fingerprint"),
    "commits": ("lake", "commit_slices"),
}


def main() -> None:
    """Build the warehouse of a configuration and print what each stage took."""
    started = time.process_time()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--floor", action="store_true")
    arguments = parser.parse_args()
    measured = floors(arguments.config) if arguments.floor else stages(arguments.config, started)
    sys.stdout.write(json.dumps(measured) + "\n")


def stages(config: Path, started: float) -> dict[str, float]:
    """Processor seconds by stage; `other` is what belongs to no stage."""
    seconds: dict[str, float] = defaultdict(float)
    with _into(seconds, "start-up and plan", started):
        builder, planned = _opened(config)
    for stage, (owner, name) in TIMED.items():
        target = builder if owner == "builder" else builder.lake
        setattr(target, name, _timed(getattr(target, name), seconds, stage))
    from pipelines.models import refresh as module

    module.read_bill = _timed(module.read_bill, seconds, "bill")
    module.RECORDS = {what: _timed(read, seconds, "runs and records") for what, read in module.RECORDS.items()}
    module.publish = _timed(module.publish, seconds, "publication")
    with builder.lake.lock(), _into(seconds, "other"):
        module.refresh(builder, planned)
    return seconds


def floors(config: Path) -> dict[str, float]:
    """Processor seconds of the bare SELECTs and of the checks, over what a build has committed."""
    from pipelines.models.contract import load_contract
    from pipelines.models.validate import validate

    seconds: dict[str, float] = defaultdict(float)
    builder, planned = _opened(config)
    for name, month in builder.steps(planned.months):
        model = builder.catalog[name]
        contract = load_contract(model.key)
        with builder.open([*model.inputs, *contract.reads, name], month) as engine:
            if model.kind == "sql":
                with _into(seconds, "rows"):
                    engine.query(f"select count(*) from ({model.text}) as made_rows")
            with _into(seconds, "checks"):
                validate(engine, name, contract)
    return seconds


def _opened(config: Path) -> tuple[Any, Any]:
    from pipelines.config.settings import load_settings
    from pipelines.models.build import Builder
    from pipelines.models.publish import plan
    from pipelines.models.warehouse import Warehouse

    builder = Builder(Warehouse(load_settings(config)))
    return builder, plan(builder.warehouse)


def _timed(call: Callable[..., Any], seconds: dict[str, float], stage: str) -> Callable[..., Any]:
    def measured(*arguments: Any, **named: Any) -> Any:
        with _into(seconds, stage):
            return call(*arguments, **named)

    return measured


@contextmanager
def _into(seconds: dict[str, float], stage: str, since: float | None = None) -> Iterator[None]:
    """Add the processor seconds of a block to a stage, less those of the stages within it."""
    started, within = time.process_time() if since is None else since, sum(seconds.values())
    yield
    seconds[stage] += time.process_time() - started - (sum(seconds.values()) - within)


if __name__ == "__main__":
    main()
