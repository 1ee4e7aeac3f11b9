"""Where the house's own files live: sql/, expectations/ and dashboards/, in a checkout or in a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
HOUSE = _PACKAGE / "_house" if (_PACKAGE / "_house").is_dir() else _PACKAGE.parent

SQL = HOUSE / "sql"
REFERENCE = SQL / "reference"
EXPECTATIONS = HOUSE / "expectations"
DASHBOARDS = HOUSE / "dashboards"


def known_reports() -> list[str]:
    """The kinds of report there are: a folder of dashboards/ each."""
    return sorted(path.parent.name for path in DASHBOARDS.glob("*/report.yml"))
