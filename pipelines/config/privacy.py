"""The `[privacy]` section: what is published as pseudonyms."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

VARIABLE = "TRAINLEDGER_PRIVACY__KEY"


class Privacy(BaseModel):
    """The `[privacy]` section; its key is $TRAINLEDGER_PRIVACY__KEY."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pseudonyms: tuple[Literal["accounts", "users"], ...] = ()
    key: SecretStr | None = Field(default=None, min_length=32)
