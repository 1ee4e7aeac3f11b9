"""Whose a cost is: `[teams]`, by the role that called, the account, or its unit of AWS Organizations on a day."""

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field, PrivateAttr

from pipelines.base.errors import UsageError
from pipelines.base.parse import ParseError, parse_json
from pipelines.config.fields import AccountId, Frozen, Text

_FOLDER_FIX = "save the answers of AWS Organizations there, a file a day such as 2026-07-01.json"


class Assigned(NamedTuple):
    """The team of an account or a role, its `holder`, from the first to the last date, both included."""

    holder: str
    first_date: date
    last_date: date
    team: str


class Teams(Frozen):
    """The `[teams]` section.

    `roles`: the team of an IAM role that calls Amazon Bedrock, by its name. `accounts`: the team of an account.
    `units`: the team of a unit, by its id or by the names from below the root down to it (`Research/Models`), and of
    the units below that have none of their own. `organization`: the folder of the saved answers, one file a day, each
    in force until the next; the first one also for the days before it.
    """

    roles: dict[Text, Text] = Field(default={})
    accounts: dict[AccountId, Text] = Field(default={})
    units: dict[Text, Text] = Field(default={})
    organization: Text | None = None
    _assigned: tuple[Assigned, ...] = PrivateAttr(())

    @property
    def assigned(self) -> tuple[Assigned, ...]:
        """The team of each account and role by days, which do not overlap; one without a team is left out."""
        return self._assigned

    def record(self) -> list[list[str]]:
        """`assigned` as a publication records it."""
        return [[one.holder, str(one.first_date), str(one.last_date), one.team] for one in self._assigned]

    @classmethod
    def recorded(cls, record: list[list[str]]) -> Self:
        teams = cls()
        teams._assigned = tuple(
            Assigned(holder, date.fromisoformat(first), date.fromisoformat(last), team)
            for holder, first, last, team in record
        )
        return teams

    def read(self, path: Path) -> Self:
        """The section with its answers, whose folder is relative to that of the configuration `path`.

        UsageError where they cannot be read, and for a unit that none of them names.
        """
        if (self.organization is None) != (not self.units):
            raise UsageError(
                f"{path}: [teams] needs both units and organization, the folder of the answers that name them; "
                "add the other one."
            )
        whole = self.model_copy()
        named = sorted((self.accounts | self.roles).items())
        always = [Assigned(holder, date.min, date.max, team) for holder, team in named]
        by_unit = [one for one in self._by_unit(path) if one.holder not in self.accounts]
        whole._assigned = (*always, *by_unit)
        return whole

    def _by_unit(self, path: Path) -> Iterator[Assigned]:
        """A row for the days in a row on which an account has one team."""
        if self.organization is None:
            return
        folder = path.parent / self.organization
        # 20260701 is a day too, and as a name it comes after 2026-07-15.
        answers = {day: _answer(file) for day, file in sorted((_day_of(file), file) for file in folder.glob("*.json"))}
        if not answers:
            raise UsageError(f"{folder} has no answer of AWS Organizations; {_FOLDER_FIX}.")
        known = {name for names, _ in answers.values() for name in names}
        if unknown := sorted({*self.units} - known):
            raise UsageError(
                f"{path}: [teams] units: no answer in {folder} has the unit {unknown[0]}; write its id or its names, "
                f"such as {next(iter(sorted(known)), 'Research/Models')}."
            )
        found: dict[str, list[Assigned]] = {}
        starts = [date.min, *list(answers)[1:], date.max]
        for (_, accounts), (first, following) in zip(answers.values(), pairwise(starts), strict=True):
            last = following if following == date.max else following - timedelta(days=1)
            for account, names in sorted(accounts.items()):
                # The nearest unit that has a team.
                if team := next((self.units[name] for name in names if name in self.units), None):
                    spans = found.setdefault(account, [])
                    if spans and spans[-1].team == team and spans[-1].last_date == first - timedelta(days=1):
                        spans[-1] = spans[-1]._replace(last_date=last)
                    else:
                        spans.append(Assigned(account, first, last, team))
        yield from chain.from_iterable(found.values())


def _day_of(file: Path) -> date:
    try:
        return date.fromisoformat(file.stem)
    except ValueError:
        raise UsageError(f"{file} is not named after a day; {_FOLDER_FIX}.") from None


def _answer(file: Path) -> tuple[list[str], dict[str, list[str]]]:
    """What a file holds, OrganizationalUnits and Accounts as AWS answers them, each with its ParentId: the names of all
    units, by id and by path, and those of the units above each account, the nearest first."""
    try:
        content = parse_json(file.read_bytes())
        units: dict[str, dict[str, Any]] = {unit["Id"]: unit for unit in content["OrganizationalUnits"]}
        accounts = {account["Id"]: account["ParentId"] for account in content["Accounts"]}
        parents = [unit["ParentId"] for unit in units.values()]
        if not all(isinstance(one, str) for one in (*parents, *accounts, *accounts.values())):
            raise TypeError("an Id or ParentId is not text")
        above = {account: _names(units, parent) for account, parent in accounts.items()}
        return [name for key in units for name in _names(units, key)], above
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}; check its permissions.") from None
    except ParseError as error:
        raise UsageError(f"{file} {error}; {_FOLDER_FIX}.") from None
    except (KeyError, TypeError):
        raise UsageError(
            f"{file} lacks OrganizationalUnits and Accounts, each with Id, Name and ParentId; {_FOLDER_FIX}."
        ) from None


def _names(units: Mapping[str, dict[str, Any]], key: str) -> list[str]:
    """The id and the path of a unit, then of each one above it."""
    line: list[str] = []
    # A ring of parents ends too.
    while key in units and key not in line:
        line.append(key)
        key = units[key]["ParentId"]
    paths = ("/".join(units[one]["Name"] for one in reversed(line[at:])) for at in range(len(line)))
    return [name for pair in zip(line, paths, strict=True) for name in pair]
