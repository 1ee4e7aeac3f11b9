"""Finds words that the product does not use (words.csv): an error where one is forbidden, a count elsewhere.

`everywhere` is code, tests, SQL, contracts, pages, docs and paths; `text` is pages and docs; `reported` only counts.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = ("README.md", "CONTRIBUTING.md", "docs", "dashboards", "expectations", "deploy")
CODE = ("pipelines", "recorder", "sql", "tests", "pyproject.toml")
# Dated records keep the words of their day; the table of renamed words and the list of words have both.
SKIPPED = ("docs/decisions/", "docs/renamed.md", "tests/architecture/words.csv")
SUFFIXES = {".md", ".py", ".sql", ".csv", ".yml", ".yaml", ".toml", ".j2", ".typ", ".js", ".css", ".tf", ".txt"}


def texts(places: tuple[str, ...]) -> list[Path]:
    """The text files below these places."""
    found = [path for place in places for path in (ROOT / place, *(ROOT / place).rglob("*")) if path.is_file()]
    return [path for path in found if path.suffix in SUFFIXES and not str(path.relative_to(ROOT)).startswith(SKIPPED)]


def main() -> int:
    """Print each forbidden word with its place, then how often the others are used; 1 if any is forbidden."""
    with Path(__file__).with_name("words.csv").open(encoding="utf-8", newline="") as file:
        words = {row["word"]: row for row in csv.DictReader(file)}
    # A word may be a part of a name, between underscores.
    pattern = re.compile(rf"(?<![a-z])({'|'.join(sorted(words, key=len, reverse=True))})(?![a-z])", re.IGNORECASE)
    forbidden, counts = 0, Counter[str]()
    for places, scopes in ((TEXT, ("everywhere", "text")), (CODE, ("everywhere",))):
        for path in texts(places):
            name = path.relative_to(ROOT).as_posix()
            # The path itself is line 0.
            for number, line in enumerate([name, *path.read_text(encoding="utf-8").splitlines()]):
                for word in map(str.lower, pattern.findall(line)):
                    # Some files read what older versions wrote.
                    is_allowed = name in words[word]["except"].split()
                    if words[word]["forbidden_in"] in scopes and not is_allowed:
                        forbidden += 1
                        sys.stdout.write(f"{name}:{number}: {word}: write {words[word]['instead']}\n")
                    else:
                        counts[word] += 1
    sys.stdout.write(f"{forbidden} forbidden words; to be reworded over time: {dict(counts.most_common())}\n")
    return 1 if forbidden else 0


if __name__ == "__main__":
    raise SystemExit(main())
