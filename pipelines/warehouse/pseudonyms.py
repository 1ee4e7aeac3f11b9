"""Pseudonyms in place of account ids and user names, in everything that is published (docs/decisions/0012).

HMAC-SHA256 under a key from the environment, cut to 64 bits and written as 16 letters: the same id is the same
pseudonym in every table and month, and without the key no one can recover the id.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.base.errors import UsageError
from pipelines.base.parse import parse_json
from pipelines.config.policy import PRIVACY_KEY, Privacy

# Every command reads the `[privacy]` section; few have rows.
if TYPE_CHECKING:
    import polars as pl

    from pipelines.models.validate import CheckResult

# Columns that name a person, of our tables and of FOCUS; also the tags below.
_USERS = frozenset({"owner", "tag_owner", "tagged_owner", "likely_owner"})
# A user is a person, a role is not.
_CALLER, _CALLING_USER = "iam_principal", re.compile(r"^(arn:.*:user/)?(?!arn:)(?P<name>.+)$")
_ACCOUNT_NAMES = frozenset({"BillingAccountName", "SubAccountName"})
_TAGS = "Tags"
# Who made a resource, as AWS writes it.
_CREATED_BY = "aws:createdBy"
# Account ids also occur in ARNs, bucket names and sentences. A digest may hold twelve digits by chance.
_ACCOUNT = re.compile(r"[0-9a-f]{32,}|(?<!\d)\d{12}(?!\d)")
_DONE = re.compile(r"(acct|user)-[a-p]{16}")
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


class Pseudonyms:
    """Puts pseudonyms in place of what `[privacy]` names; where it names nothing, everything stays as it is.

    `code` is the digest of the code that makes them.
    """

    def __init__(self, privacy: Privacy, owner_tags: tuple[str, ...] = (), code: str = ""):
        self._of = frozenset(privacy.pseudonyms)
        self._code = code
        self._tags = frozenset({*owner_tags, _CREATED_BY})
        if self._of and privacy.key is None:
            raise UsageError(
                f"[privacy] asks for pseudonyms and {PRIVACY_KEY} is not set; set it to a secret of 32 characters or "
                "more. Keep it: another key makes other pseudonyms."
            )
        self._key = privacy.key.get_secret_value().encode() if self._of and privacy.key else b""

    def __bool__(self) -> bool:
        return bool(self._of)

    @property
    def seal(self) -> str:
        """Differs wherever other pseudonyms are made; empty where none are."""
        return f"{self.record()!r} {self._code}" if self else ""

    def record(self) -> dict[str, Any]:
        """The record of a publication: what has pseudonyms, and a check value of the key."""
        return {"pseudonyms": sorted(self._of), "key_check": self._letters("key", "trainledger")[:8]}

    def text(self, text: str) -> str:
        """A text with a pseudonym for every account id in it."""
        return _ACCOUNT.sub(self._account, text) if "accounts" in self._of else text

    def user(self, name: str) -> str:
        """The pseudonym of a user."""
        is_done = "users" not in self._of or not name or _DONE.fullmatch(name)
        return name if is_done else f"user-{self._letters('user', name)}"

    def value(self, column: str, value: Any) -> Any:
        """A value of a column, also one with parts."""
        if isinstance(value, str):
            return self._of_column(column)(value)
        if isinstance(value, dict):
            return {name: self.value(name, one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.value("", one) for one in value]
        return value

    def frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Rows with their text as `value` has it."""
        import polars as pl

        texts = [name for name, kind in frame.schema.items() if kind == pl.String]
        return frame.with_columns(self._column(frame[name]) for name in texts)

    def file(self, path: Path, key: Sequence[str] = ()) -> None:
        """A Parquet file, rewritten in the order of `key`: the order of the ids would reveal them."""
        if self:
            import polars as pl

            rows = self.frame(pl.read_parquet(path))
            (rows.sort(key, nulls_last=True) if key else rows).write_parquet(path)

    def check(self, result: CheckResult) -> CheckResult:
        """The result of a check with the rows it shows."""
        if not self:
            return result
        rows = {name: [self.value("", row) for row in getattr(result, name)] for name in ("sample", "figures")}
        return replace(result, observed=self.text(result.observed), **rows)

    def _column(self, column: pl.Series) -> pl.Series:
        import polars as pl

        of = self._of_column(column.name)
        known = column.drop_nulls().unique()
        new = [of(text) for text in known]
        return column.replace_strict(known, pl.Series(new, dtype=pl.String), default=None, return_dtype=pl.String)

    def _of_column(self, name: str) -> Callable[[str], str]:
        if name in _USERS:
            return self.user
        if name == _CALLER:
            return self._caller
        if name in _ACCOUNT_NAMES and "accounts" in self._of:
            return lambda text: text if _DONE.fullmatch(text) else f"acct-{self._letters('account', text)}"
        return self._in_tags if name == _TAGS else self.text

    def _caller(self, principal: str) -> str:
        found = _CALLING_USER.match(principal)
        return self.text((found[1] or "") + self.user(found["name"]) if found else principal)

    def _in_tags(self, text: str) -> str:
        tags = parse_json(text)
        # A caller's or an account's tag has its origin before its key.
        owners = {key for key in tags if key.rpartition("/")[2] in self._tags}
        return json.dumps({key: self.user(v) if key in owners else self.text(v) for key, v in tags.items()})

    def _account(self, found: re.Match[str]) -> str:
        return found[0] if len(found[0]) > 12 else f"acct-{self._letters('account', found[0])}"

    def _letters(self, kind: str, text: str) -> str:
        return hmac.digest(self._key, f"{kind}:{text}".encode(), "sha256").hex()[:16].translate(_LETTERS)


def has_another_key(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the inputs of two publications have pseudonyms under two keys."""
    keys = {inputs["privacy"]["key_check"] for inputs in (before, now) if "privacy" in inputs}
    return len(keys) == 2
