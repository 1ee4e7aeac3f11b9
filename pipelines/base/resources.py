"""The product files, sql/, expectations/ and dashboards/, in a checkout or in a wheel."""

import csv
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE / "_resources" if (PACKAGE / "_resources").is_dir() else PACKAGE.parent

SQL = ROOT / "sql"
REFERENCE = SQL / "reference"
EXPECTATIONS = ROOT / "expectations"
DASHBOARDS = ROOT / "dashboards"
GLOSSARY = ROOT / "docs" / "glossary.md"
# Stands in a query for the month that a monthly report is about.
MONTH = "{month}"


def known_reports() -> list[str]:
    """The kinds of report there are: a folder of dashboards/ each."""
    return sorted(path.parent.name for path in DASHBOARDS.glob("*/report.yml"))


def monthly_reports() -> list[str]:
    """The kinds of report about one month, which their queries name; the others cover all delivered months."""
    return [kind for kind in known_reports() if MONTH in (DASHBOARDS / kind / "report.yml").read_text(encoding="utf-8")]


def accelerator_families() -> dict[str, str]:
    """The accelerator family of each instance type in the reviewed list."""
    return {row["instance_type"]: row["accelerator_family"] for row in instance_types() if row["accelerator_family"]}


def accelerator_peaks() -> dict[tuple[str, str], str]:
    """The dense peak of each accelerator in the reviewed list, by its name and the name of the column."""
    columns = ("peak_bf16_tflops", "peak_fp8_tflops")
    return {(row["accelerator_name"], name): row[name] for row in instance_types() for name in columns if row[name]}


@cache
def instance_types() -> list[dict[str, str]]:
    """The rows of the reviewed list of instance types."""
    return listed_rows(REFERENCE / "ref_instance_type.csv")


def listed_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a list that people maintain, each by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
