"""The product files, sql/, expectations/ and dashboards/, in a checkout or in a wheel."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE / "_resources" if (PACKAGE / "_resources").is_dir() else PACKAGE.parent

SQL = ROOT / "sql"
REFERENCE = SQL / "reference"
EXPECTATIONS = ROOT / "expectations"
DASHBOARDS = ROOT / "dashboards"


def known_reports() -> list[str]:
    """The kinds of report there are: a folder of dashboards/ each."""
    return sorted(path.parent.name for path in DASHBOARDS.glob("*/report.yml"))
