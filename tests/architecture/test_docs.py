"""The documents describe what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pipelines.config.settings import Settings
from pipelines.config.sources import RunSource
from pipelines.exports.dictionary import pages
from pipelines.ingest.inventory.reservations import SCHEMA
from pipelines.ingest.runs.event import FIELDS
from pipelines.ingest.runs.tracker import READERS
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract

ROOT = Path(__file__).resolve().parents[2]


def test_every_event_and_field_is_documented() -> None:
    text = (ROOT / "docs" / "run-events.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", text))
    fields = {field for forms in FIELDS.values() for field in forms}
    assert set(FIELDS) | fields <= named


def test_every_source_of_runs_is_documented_and_nothing_else() -> None:
    """A row of the table and an entry that loads for each kind; the order of nearness is the one that counts."""
    text = (ROOT / "docs" / "run-sources.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \| (.+) \|$", text, re.MULTILINE)
    assert sorted(kind for kind, *_ in rows) == sorted(READERS)
    examples = tomllib.loads("\n".join(re.findall(r"```toml\n(.*?)```", text, re.DOTALL)))["runs"]
    assert sorted(RunSource.model_validate(entry).kind for entry in examples) == sorted(READERS)


def test_every_column_of_a_reservation_is_documented() -> None:
    text = (ROOT / "docs" / "reservations.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) == set(SCHEMA) - {"source_name"}


def test_links_of_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
    assert len(text.split()) <= 700


def test_every_focus_column_has_its_origin_documented() -> None:
    text = (ROOT / "docs" / "focus-export.md").read_text(encoding="utf-8")
    documented = {name for cell in re.findall(r"^\| (\w[\w, ]+) \|", text, re.MULTILINE) for name in cell.split(", ")}
    assert {column.name for column in load_contract("staging/stg_aws__focus_charge").columns} <= documented


def test_the_dictionary_and_the_lineage_are_of_today() -> None:
    """`trainledger export dictionary` writes both again."""
    assert {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in pages()} == pages()


def test_the_dictionary_lists_every_column_of_every_mart() -> None:
    """Read apart from the contracts that the page is written from: by the headings and rows of the page itself."""
    text = (ROOT / "docs" / "dictionary.md").read_text(encoding="utf-8")
    for part in text.split("\n## ")[1:]:
        mart = part.partition("\n")[0]
        columns = re.findall(r"^\| `(\w+)` \| [A-Z]", part, re.MULTILINE)
        assert columns == [column.name for column in load_contract(load_catalog()[mart].key).columns]
    assert text.count("\n## ") == len(load_catalog().public)


def test_the_configuration_of_the_docs_is_one() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    (whole, policy, privacy) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    settings = Settings(**{**tomllib.loads(whole), **tomllib.loads(policy), **tomllib.loads(privacy)})
    # Every part is there but those that docs/notifications.md and the schedule's own text document.
    assert set(Settings.model_fields) - set(settings.model_fields_set) <= {"notify", "schedule"}


def test_commented_settings_are_toml_when_uncommented() -> None:
    """Each on its own line: TOML has one key a line."""
    lines = [
        line
        for page in (ROOT / "docs").glob("*.md")
        for block in re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in re.findall(r"^# ?(\w+ *= .*)$", block, re.MULTILINE)
    ]
    assert len(lines) > 20
    for line in lines:
        assert tomllib.loads(line), line
