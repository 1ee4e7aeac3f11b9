"""What recording costs a training loop, in microseconds an event: `python recorder/overhead.py [events]`."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time

from trainledger_recorder import Recorder


def overhead_us(events: int) -> list[float]:
    """Time of each call of epoch_completed, while the journal's own thread syncs to disk."""
    spent = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder("overhead", folder, imds="http://127.0.0.1:9", environment={}) as run,
    ):
        for number in range(1, events + 1):
            began = time.perf_counter()
            run.epoch_completed(number, step=number, tokens_seen=float(number))
            spent.append((time.perf_counter() - began) * 1e6)
    return sorted(spent)


if __name__ == "__main__":
    found = overhead_us(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
    at_99 = found[len(found) * 99 // 100]
    sys.stdout.write(
        f"{len(found)} events: mean {statistics.mean(found):.0f} us, median {statistics.median(found):.0f} us, "
        f"99 of 100 under {at_99:.0f} us, longest {found[-1] / 1000:.1f} ms\n"
    )
