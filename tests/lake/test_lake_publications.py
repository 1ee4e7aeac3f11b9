"""Publications: numbered, kept, known at a time, and named where they are damaged."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.lake_builds import WHOLE
from support.lake_places import RECORD, Place

from pipelines.base.errors import CheckError, SourceError


def test_publications_are_numbered_and_stay(place: Place) -> None:
    lake = place.lake()
    assert lake.publications.newest() is None
    assert lake.publications.all() == []
    first = lake.publish(RECORD | {"tables": {WHOLE: {"version": 3, "files": ["a.parquet"]}}})
    second = lake.publish(RECORD | {"code_revision": "2"})
    assert (first.number, second.number) == (1, 2)
    assert first.published_at < second.published_at
    assert place.lake().publications.newest() == second
    assert place.lake().publications.all() == [first, second]
    assert place.lake().publications.all()[0].tables[WHOLE] == {"version": 3, "files": ["a.parquet"]}


def test_the_publication_known_at_a_time(folder: Place) -> None:
    lake = folder.lake()
    assert lake.publications.as_of(datetime.now(UTC)) is None
    known = [lake.publish(RECORD) for _ in range(5)]
    instant = timedelta(microseconds=1)
    assert lake.publications.as_of(known[0].published_at - instant) is None
    for publication in known:
        assert lake.publications.as_of(publication.published_at) == publication
    assert lake.publications.as_of(known[3].published_at - instant) == known[2]
    assert lake.publications.as_of(datetime.now(UTC)) == known[4]


def test_a_publication_of_another_build_is_not_overwritten(folder: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, other = folder.lake(), folder.lake()
    first = lake.publish(RECORD)
    from pipelines.warehouse.storage_local import LocalStore

    plain = LocalStore.list
    monkeypatch.setattr(LocalStore, "list", lambda self, prefix="": [])
    with pytest.raises(CheckError, match="again"):
        other.publish(RECORD | {"code_revision": "rival"})
    monkeypatch.setattr(LocalStore, "list", plain)
    assert folder.lake().publications.all() == [first]


def test_a_damaged_record_is_named(folder: Place) -> None:
    folder.lake().publish(RECORD)
    record = Path(folder.location) / "publications" / "000001.json"
    record.write_text(record.read_text()[:20])
    with pytest.raises(SourceError, match=r"publications/000001\.json"):
        folder.lake().publications.newest()


@pytest.mark.parametrize("damaged", ['{"3": ', "[]", '{"3": null}'])
def test_a_damaged_list_of_what_was_pruned_is_named(folder: Place, damaged: str) -> None:
    publications = folder.lake().publications
    first = folder.lake().publish(RECORD)
    (Path(folder.location) / "pruned.json").write_text(damaged)
    with pytest.raises(SourceError, match=r"pruned\.json is not the list of pruned publications .*; restore it"):
        publications.as_of(first.published_at)
    # Nothing goes whose time would not be known.
    with pytest.raises(SourceError, match=r"pruned\.json"):
        publications.remove([first])
    assert publications.all() == [first]


@pytest.mark.parametrize(("part", "damaged"), [("inputs", {"tags": {}}), ("tables", {"mart": None}), ("checks", [{}])])
def test_a_record_without_a_part_of_it_is_named(folder: Place, part: str, damaged: object) -> None:
    folder.lake().publish(RECORD)
    record = Path(folder.location) / "publications" / "000001.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"code_revision": "0.1.0", part: damaged}))
    with pytest.raises(SourceError, match=r"publications/000001\.json is not a publication record"):
        folder.lake().publications.newest()
