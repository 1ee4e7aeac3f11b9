"""Pseudonyms in place of account ids and user names, in everything that is published (docs/decisions/0012).

HMAC-SHA256 under a key from the environment, cut to 64 bits and written as 16 letters: the same id is the same
pseudonym in every table and month, and without the key no one can recover the id.
"""

from __future__ import annotations

import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from copy import copy
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
_CALLER = "iam_principal"
_ACCOUNT_NAMES = frozenset({"BillingAccountName", "SubAccountName"})
_TAGS = "Tags"
# Who made a resource, as AWS writes it.
_CREATED_BY = "aws:createdBy"
# Account ids also occur in ARNs, bucket names and sentences, in groups of four too. A digest or a UUID may hold
# twelve digits by chance.
_ACCOUNT = re.compile(
    r"(?P<digest>[0-9a-f]{32,}|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?<!\d)(?:\d{12}|\d{4}(?:-\d{4}){2,}|\d{4}(?: \d{4}){2,})(?!\d)"
)
# People in principals and resources of AWS: users, sessions of roles (named after people), user profiles of SageMaker
# Studio and what runs in them, and creators as `aws:createdBy` writes them. A role is no person.
_PRINCIPAL = re.compile(
    r"(?P<before>arn:[\w-]*:(?:"
    r"(?:iam|identitystore)::[^:]*:user/(?:[^/\s\"',]+/)*"
    r"|sts::[^:]*:(?:assumed-role/[^/\s\"',]+|federated-user)/"
    r"|sagemaker:[^:]*:[^:]*:(?:user-profile|app)/[^/\s\"',]+/)"
    r"|\b(?:IAMUser|AssumedRole|FederatedUser|SAMLUser|WebIdentityUser):[^:\s]+:)"
    r"(?P<name>[\w+=,.@-]*[\w@-])"
)
_MAIL = re.compile(r"(?<![\w.%+-])[\w.%+-]++@(?:[\w-]+\.)+[^\W\d_]{2,}")
_DONE = re.compile(r"(acct|user)-[a-p]{16}(?![a-p])")
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
        self._has_published = True

    def __bool__(self) -> bool:
        return bool(self._of)

    @property
    def seal(self) -> str:
        """Differs wherever other pseudonyms are made; empty where none are."""
        return f"{self.record()!r} {self._code}" if self else ""

    def record(self) -> dict[str, Any]:
        """The record of a publication: what has pseudonyms, and a check value of the key."""
        return {"pseudonyms": sorted(self._of), "key_check": self._letters("key", "trainledger")[:8]}

    def of_sources(self) -> Pseudonyms:
        """The same for text that nothing published is part of: what looks like a pseudonym there gets its own.

        Else a tag could pass for another user or account.
        """
        other = copy(self)
        other._has_published = False
        return other

    def text(self, text: str) -> str:
        """A text with a pseudonym for every account id, mail address and principal in it."""
        if not self:
            return text
        if not self._has_published:
            text = _DONE.sub(lambda found: f"{found[1]}-{self._letters('source', found[0])}", text)
        if "users" in self._of:
            text = _PRINCIPAL.sub(lambda found: found["before"] + self.user(found["name"]), text)
            text = _MAIL.sub(lambda found: self.user(found[0]), text) if "@" in text else text
        return _ACCOUNT.sub(self._account, text) if "accounts" in self._of else text

    def user(self, name: str) -> str:
        """The pseudonym of a user: one for all spellings that differ in case, outer spaces and the principal around."""
        if "users" not in self._of or not name or self._is_done(name):
            return name
        found = _PRINCIPAL.fullmatch(name.strip())
        person = unicodedata.normalize("NFKC", found["name"] if found else name).strip().casefold()
        return f"user-{self._letters('user', person)}"

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
            # What is no ARN is the id of a user of IAM Identity Center.
            return lambda principal: (self.text if principal.startswith("arn:") else self.user)(principal)
        if name in _ACCOUNT_NAMES and "accounts" in self._of:
            return lambda text: text if self._is_done(text) else f"acct-{self._letters('account', text)}"
        return self._in_tags if name == _TAGS else self.text

    def _in_tags(self, text: str) -> str:
        tags = parse_json(text)
        # A caller's or an account's tag has its origin before its key.
        owners = {key for key in tags if key.rpartition("/")[2] in self._tags}
        return json.dumps({key: self.user(v) if key in owners else self.text(v) for key, v in tags.items()})

    def _account(self, found: re.Match[str]) -> str:
        digits = re.sub(r"[ -]", "", found[0])
        return found[0] if found["digest"] else f"acct-{self._letters('account', digits)}"

    def _is_done(self, text: str) -> bool:
        return self._has_published and _DONE.fullmatch(text) is not None

    def _letters(self, kind: str, text: str) -> str:
        return hmac.digest(self._key, f"{kind}:{text}".encode(), "sha256").hex()[:16].translate(_LETTERS)


def has_another_key(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the inputs of two publications have pseudonyms under two keys."""
    keys = {inputs["privacy"]["key_check"] for inputs in (before, now) if "privacy" in inputs}
    return len(keys) == 2
