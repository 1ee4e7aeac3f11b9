"""Cases of a campaign: each has a seed of its own, which repeats it alone, and is counted by how it ended.

`TRAINLEDGER_SEED=123 pytest -m slow tests/campaign/test_x.py` runs the cases of a printed seed again;
`TRAINLEDGER_SEED=123/17` runs case 17 alone.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

SEED = "TRAINLEDGER_SEED"


class Case:
    """One case: its source of chance, and how it ended."""

    def __init__(self, campaign: Campaign, number: int):
        self._campaign, self.number = campaign, number
        self.chance = random.Random(f"{campaign.name} {campaign.seed} {number}")

    def ended(self, how: str) -> None:
        self._campaign.counts[how] += 1

    def __enter__(self) -> Case:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        if not isinstance(error, Exception):
            return False
        error.add_note(f"repeat it with {SEED}={self._campaign.seed}/{self.number}")
        self._campaign.failures.append(error)
        self.ended("FAILED")
        return True


class Campaign:
    """The cases of one test, from one seed."""

    def __init__(self, name: str):
        self.name = name
        seed, _, only = os.environ.get(SEED, "").partition("/")
        self.seed = int(seed) if seed else random.SystemRandom().randrange(1_000_000)
        self._only = int(only) if only else None
        self.counts: Counter[str] = Counter()
        self.failures: list[Exception] = []

    def cases(self, count: int) -> Iterator[Case]:
        """As many cases, or the one that the environment names; the failures of all are raised after the last."""
        for number in range(count) if self._only is None else (self._only,):
            yield Case(self, number)
        if self.failures:
            raise ExceptionGroup(f"{self.name}, seed {self.seed}", self.failures)

    def __str__(self) -> str:
        ends = ", ".join(f"{count} {how}" for how, count in sorted(self.counts.items()))
        return f"{self.name}: {self.counts.total()} cases of seed {self.seed} ({ends})"
