"""Pre-registrations of comparisons: TOML files with metric, margin, runs and basis, written before the runs are seen.

A registration is never edited: the first build that reads it records a seal of its content, and no other content
counts. A change is a new registration, dated, that supersedes it. Exclusions of runs are entries that cite one.
With both is kept which results were published when a build first read them: a date in a file may be of any day.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import date
from types import MappingProxyType
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import Field, ValidationError

from pipelines.base.errors import MalformedError, listing
from pipelines.base.parse import ParseError, parse_toml
from pipelines.config.fields import Frozen
from pipelines.config.mistakes import first_mistake
from pipelines.config.sources import ProofSource, SourceName
from pipelines.ingest.json_lines import by_suffix, skipped
from pipelines.ingest.schema import schema
from pipelines.warehouse.stores import open_store

REGISTRATION, RUN = "proof_registration", "proof_run"
SCHEMAS = {
    REGISTRATION: schema(
        "registration source_file workload_id registered_on:date target_metric target_direction target_value:number "
        "quality_margin:number planned_run_count:count cost_basis evaluation_split failure_rate_from:date supersedes "
        "seal published_types"
    ),
    RUN: schema(
        "registration run_id pair_no:count accelerator_family is_listed:flag reason excluded_on:date published_types"
    ),
}
# Published runs that had ended, each with the day of its start.
PUBLISHED = {"run_id": pl.String, "workload_id": pl.String, "instance_type": pl.String, "day": pl.Date}
_NOTHING_PUBLISHED = pl.DataFrame(schema=PUBLISHED)
_LARGEST_BYTES = 1 << 20
NOTHING: Mapping[Any, Any] = MappingProxyType({})

_Text = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]
# A time would be two days in two zones.
_Day = Annotated[date, Field(strict=True)]


class _Pair(Frozen):
    gpu: _Text
    trainium: _Text


class Registration(Frozen):
    name: SourceName
    workload_id: _Text
    registered_on: _Day
    target_metric: _Text
    target_direction: Literal["min", "max"]
    target_value: float | None = Field(default=None, allow_inf_nan=False)
    quality_margin: float = Field(ge=0, allow_inf_nan=False)
    planned_runs: int = Field(ge=1, le=10_000)
    cost_basis: Literal["list", "effective", "billed"]
    supersedes: SourceName | None = None
    pairs: tuple[_Pair, ...] = ()
    # The closed list of a side that began before the registration, by family.
    runs: dict[Literal["gpu", "trainium"], tuple[_Text, ...]] = Field(default_factory=dict)
    evaluation_split: _Text | None = None
    failure_rate_from: _Day | None = None

    @property
    def seal(self) -> str:
        """SHA-256 of its content, however the file writes it; keys of later versions count where they are used."""
        later = {name for name in ("runs", "evaluation_split", "failure_rate_from") if not getattr(self, name)}
        content = self.model_dump(mode="json", exclude=later)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Exclusion(Frozen):
    registration: SourceName
    run_id: _Text
    reason: _Text
    excluded_on: _Day


class File(Frozen):
    registration: tuple[Registration, ...] = ()
    exclusion: tuple[Exclusion, ...] = ()


def read_registrations(
    source: ProofSource,
    recorded: Mapping[str, str],
    published: pl.DataFrame = _NOTHING_PUBLISHED,
    before: Mapping[tuple[str, str], str | None] = NOTHING,
    excluded: Mapping[tuple[str, str], date] = NOTHING,
) -> dict[str, pl.DataFrame]:
    """The tables of SCHEMAS. `recorded` are the seals by name as first read.

    `published` are the runs that have published results, as PUBLISHED. `before` has the instance types of those that
    concern a registration, or a run that it excludes, as they were when it was first read: by its name and the run,
    empty for the registration itself. `excluded` has the day of each exclusion that was recorded, by the same.

    Raises MalformedError for a missing or unknown key, for registrations that contradict each other or the recorded
    seals, and for exclusions that cite none, or are no longer as they were recorded.
    """
    registered: dict[str, tuple[str, Registration]] = {}
    exclusions: list[tuple[str, Exclusion]] = []
    for where, file in _files(source):
        for entry in file.registration:
            if entry.name in registered:
                other = registered[entry.name][0]
                raise MalformedError(f"{where}: registration {entry.name} is also in {other}; give it another name.")
            registered[entry.name] = (where, entry)
        exclusions += [(where, entry) for entry in file.exclusion]
    _refuse_edited(source, registered, recorded)
    superseded = _superseded(registered)
    seen: dict[tuple[str, str], date] = {}
    for where, entry in exclusions:
        cited = (entry.registration, entry.run_id)
        mistake = _mistake(entry, registered, superseded) or ("occurs twice; keep one" if cited in seen else None)
        if mistake:
            raise MalformedError(f"{where}: the exclusion of run {entry.run_id} {mistake}.")
        seen[cited] = entry.excluded_on
    for (name, run), day in sorted(excluded.items()):
        if name not in superseded and (now := seen.get((name, run))) != day:
            found = f"of {now} now" if now else "missing"
            raise MalformedError(
                f"The exclusion of run {run} of {day} was recorded for registration {name} and is {found}; put it back "
                f"as it was, or write a registration of a later day that supersedes {name}."
            )
    runs = [
        {"registration": name, "run_id": run, "pair_no": number, "accelerator_family": family}
        for name, (_, entry) in registered.items()
        for number, pair in enumerate(entry.pairs, start=1)
        for family, run in (("gpu", pair.gpu), ("trainium", pair.trainium))
    ]
    runs += [
        {"registration": name, "run_id": run, "accelerator_family": family, "is_listed": True}
        for name, (_, entry) in registered.items()
        for family, named in entry.runs.items()
        for run in named
    ]

    def published_then(name: str, run: str = "") -> str | None:
        key = name, run
        return before[key] if key in before else _types(published, registered[name][1], bool(run))

    runs += [
        entry.model_dump() | {"published_types": published_then(entry.registration, entry.run_id)}
        for _, entry in exclusions
    ]
    registrations = [
        entry.model_dump(exclude={"name", "planned_runs", "pairs", "runs"})
        | {"registration": name, "source_file": where, "planned_run_count": entry.planned_runs, "seal": entry.seal}
        | {"published_types": published_then(name)}
        for name, (where, entry) in registered.items()
    ]
    tables = {REGISTRATION: registrations, RUN: runs}
    return {
        name: pl.DataFrame(rows, schema=SCHEMAS[name]).sort(pl.all(), nulls_last=True) for name, rows in tables.items()
    }


def _types(published: pl.DataFrame, entry: Registration, is_exclusion: bool) -> str | None:
    """The instance types of published runs, each with the day of its newest start: `p5.48xlarge@2026-07-03`.

    Of the workload and of what is listed, whatever its label; of all runs where a side is not listed: its runs start
    after the registration, so none of any workload had been published when that was made.
    """
    listed = [run for runs in entry.runs.values() for run in runs]
    own = published.filter(
        (pl.col("workload_id") == entry.workload_id)
        | pl.col("run_id").is_in(listed)
        | (pl.col("instance_type") == "*")
        | pl.lit(len(entry.runs) < 2 and not is_exclusion)
    )
    newest = own.group_by("instance_type").agg(pl.col("day").max()).sort("instance_type")
    return " ".join(f"{name}@{day}" for name, day in newest.iter_rows()) or None


def registrations_fingerprint(source: ProofSource) -> str:
    """A digest of the location of registrations and of its files: one listing."""
    with listing("[proof]", "registrations"):
        items = [] if source.registrations is None else open_store(source.registrations, **source.reach).list()
    listed = [(item.key, item.size, item.etag) for item in items]
    return hashlib.sha256(repr((source, listed)).encode()).hexdigest()


def misnamed(source: ProofSource) -> list[str]:
    """The warning about files that are not read though their names contain .toml, such as `a.toml.txt`."""
    if source.registrations is None:
        return []
    _, others = by_suffix(open_store(source.registrations, **source.reach).list(), (".toml",))
    named = [key for key in others if ".toml" in key.lower()]
    return skipped(source.registrations, named, "; let its name end in .toml")


def _files(source: ProofSource) -> Iterator[tuple[str, File]]:
    if source.registrations is None:
        return
    store = open_store(source.registrations, **source.reach)
    for item in store.list():
        if not item.key.endswith(".toml"):
            continue
        where = store.uri(item.key)
        if item.size > _LARGEST_BYTES:
            raise MalformedError(f"{where} has {item.size:,} bytes, too many for registrations; check what it is.")
        try:
            content = parse_toml(store.read(item.key))
        except ParseError as error:
            raise MalformedError(f"{where} {error}.") from None
        try:
            yield where, File(**content)
        except ValidationError as error:
            raise MalformedError(first_mistake(error, where, content, ("registration", "exclusion"))) from None


def _refuse_edited(
    source: ProofSource, registered: Mapping[str, tuple[str, Registration]], recorded: Mapping[str, str]
) -> None:
    fix = "put it back as it was, and write a new one of a later day that supersedes it"
    for name, seal in sorted(recorded.items()):
        if name not in registered:
            folder = source.registrations or "the configuration ([proof] registrations)"
            raise MalformedError(f"Registration {name} was recorded and is missing from {folder}; {fix}.")
        where, entry = registered[name]
        if entry.seal != seal:
            seals = f"sha256 {seal[:12]} then, {entry.seal[:12]} now"
            raise MalformedError(f"{where}: registration {name} was changed after it was recorded ({seals}); {fix}.")


def _superseded(registered: Mapping[str, tuple[str, Registration]]) -> dict[str, str]:
    """The newer registration of each that is superseded by one of the same workload, also through others.

    One of another workload takes the place of a registration whose workload id is wrong: no run has it. If a run has
    it after all, the older one stays in force for that run. MalformedError for those that contradict each other.
    """
    newer_of: dict[str, str] = {}
    for name, (where, entry) in registered.items():
        runs = [run for pair in entry.pairs for run in (pair.gpu, pair.trainium)]
        if twice := next((run for run in runs if runs.count(run) > 1), None):
            raise MalformedError(f"{where}: registration {name} names run {twice} in two pairs; keep one.")
        if entry.supersedes is None:
            continue
        if entry.supersedes not in registered:
            raise MalformedError(f"{where}: registration {name} supersedes {entry.supersedes}, which no file holds.")
        older = registered[entry.supersedes][1]
        if older.registered_on >= entry.registered_on:
            of_older = f"{older.name} of {older.registered_on}"
            raise MalformedError(
                f"{where}: registration {name} supersedes {of_older}; it must be of a later registered_on."
            )
        if (other := newer_of.setdefault(older.name, name)) != name:
            raise MalformedError(
                f"{where}: registration {name} and {other} both supersede {older.name}; let the later supersede "
                "the other."
            )
    superseded = {}
    for name, (_, entry) in registered.items():
        newer = newer_of.get(name)
        while newer and registered[newer][1].workload_id != entry.workload_id:
            newer = newer_of.get(newer)
        if newer:
            superseded[name] = newer
    in_force: dict[str, str] = {}
    for name, (where, entry) in registered.items():
        if name not in superseded and (other := in_force.setdefault(entry.workload_id, name)) != name:
            reason = f"{other} and {name} are both of the workload {entry.workload_id} and contradict each other"
            raise MalformedError(f"{where}: registrations {reason}; name the superseded one in the later.")
    return superseded


def _mistake(
    entry: Exclusion, registered: Mapping[str, tuple[str, Registration]], superseded: Mapping[str, str]
) -> str | None:
    """What is wrong with what an exclusion cites, and the fix."""
    if entry.registration not in registered:
        return f"cites registration {entry.registration}, which no file holds; cite the right one"
    if newer := superseded.get(entry.registration):
        return f"cites registration {entry.registration}, which {newer} supersedes; cite {newer}"
    if entry.excluded_on < registered[entry.registration][1].registered_on:
        return f"is dated {entry.excluded_on}, before the registration it cites; correct excluded_on"
    return None
