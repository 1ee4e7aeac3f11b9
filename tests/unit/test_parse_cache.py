"""What is parsed of our files is kept between processes, and whatever happens to the cache no command fails for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from pipelines.base import parse_cache, resources
from pipelines.base.parse_cache import cache_folder
from pipelines.models import catalog as catalogs
from pipelines.models import contract as contracts
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract

TABLE = "marts/mart_run_cost"


def forget() -> None:
    """As in a new process."""
    for known in (load_catalog, load_contract, contracts._parsed, parse_cache._parts):
        known.cache_clear()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget()
    yield tmp_path
    monkeypatch.undo()
    forget()


@pytest.fixture
def parsed(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what was parsed since."""
    names: list[str] = []

    def noted(module: object, name: str, label: Callable[..., str]) -> None:
        plain = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *words: (names.append(label(*words)), plain(*words))[1])

    noted(catalogs, "_parsed", lambda path: path.stem)
    noted(contracts, "_contract", lambda table, folder: table)
    return names


def models() -> list[tuple]:
    return [(m.key, m.text, m.inputs, m.grain, m.stored, m.code) for m in load_catalog().ordered]


def the_file(home: Path) -> Path:
    (path,) = (home / "trainledger").iterdir()
    return path


def test_a_second_process_parses_nothing(home: Path, parsed: list[str]) -> None:
    first = models(), load_contract(TABLE)
    assert {"mart_run_cost", TABLE} <= set(parsed)
    forget()
    parsed.clear()
    assert (models(), load_contract(TABLE)) == first
    assert parsed == []
    # What changed is parsed again, and only that.
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contracts, "digest_of", lambda folder, pattern: "other files")
        assert (models(), load_contract(TABLE)) == first
    assert TABLE in parsed and "mart_run_cost" not in parsed


SPOILS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda content: content[: len(content) // 2],
    "altered": lambda content: content.replace(b"select", b"sElect", 1),
    "empty": lambda content: b"",
    "not text": lambda content: b"\xff\x00" * 100,
    "other JSON": lambda content: parse_cache._seal(b"[]") + b"\n[]",
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_damaged_cache_is_parsed_again_and_replaced(home: Path, parsed: list[str], spoil: str) -> None:
    first, path = load_contract(TABLE), the_file(home)
    spoiled = SPOILS[spoil](path.read_bytes())
    assert spoiled != path.read_bytes()
    path.write_bytes(spoiled)
    forget()
    parsed.clear()
    assert load_contract(TABLE) == first
    assert TABLE in parsed
    forget()
    parsed.clear()
    assert (load_contract(TABLE), parsed) == (first, [])


@pytest.mark.parametrize("place", ["a file", "nowhere"])
def test_a_cache_that_cannot_be_written_is_no_error(
    home: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "a file":
        (home / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file"))
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert load_contract(TABLE).table == TABLE
    assert TABLE in parsed


def test_the_cache_lies_where_the_user_has_caches(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == home / "trainledger"
    monkeypatch.setenv("HOME", "/home/ada")
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_folder() == Path("/home/ada/.cache/trainledger")


def test_a_contract_is_kept_whole(home: Path) -> None:
    for table in contracts.contract_paths():
        parsed = contracts._contract(table, resources.EXPECTATIONS)
        assert contracts._recorder().validate_python(json.loads(json.dumps(asdict(parsed)))) == parsed


def test_bounds_that_are_days_are_kept(tmp_path: Path) -> None:
    (tmp_path / "marts").mkdir()
    (tmp_path / "columns").mkdir()
    (tmp_path / "columns" / "run.yml").write_text("day_date: {type: DATE, meaning: A day.}\n")
    text = "grain: one row per day\nkey: [day_date]\ncolumns: [day_date]\n"
    (tmp_path / "marts/days.yml").write_text(text + "error: {between: {day_date: [2020-01-01, null]}}\n")
    parsed = load_contract("marts/days", tmp_path)
    (check,) = (check for check in parsed.checks if check.kind == "between")
    assert check.values == ("2020-01-01", None)
