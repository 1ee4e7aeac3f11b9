"""The `[access]` section and the policy file it names: who may see which teams."""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, IPvAnyNetwork, ValidationError

from pipelines.base.errors import UsageError
from pipelines.base.parse import TOML_BYTES, ParseError, parse_toml
from pipelines.config.fields import Frozen, Text
from pipelines.config.mistakes import first_mistake
from pipelines.config.notify import Host

# The teams of a reader; None: all of them, and what belongs to no team.
Teams = tuple[str, ...] | None
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def _is_one_network(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    if not network.prefixlen:
        raise ValueError("this network makes every address a proxy; write the address of your proxy, such as 10.0.0.5")
    return network


class Grants(Frozen):
    """The policy file: the teams of each reader, and the reader of each token by the token's sha256."""

    readers: dict[Text, Literal["all"] | tuple[Text, ...]]
    tokens: dict[Sha256, Text] = Field(default={})

    def mistakes(self) -> Iterator[str]:
        if unknown := sorted({*self.tokens.values()} - {*self.readers}):
            yield f"a token belongs to {unknown[0]!r}, which is not in [readers]; add it there"

    def teams_of(self, reader: str) -> Teams:
        """The teams of a reader; KeyError for one that is not in [readers]."""
        teams = self.readers[reader]
        return None if teams == "all" else tuple(teams)


class Access(Frozen):
    """The `[access]` section.

    `policy`: the file of readers, relative to trainledger.toml; it is read for every request, so a change counts at
    once. `proxies`: addresses of the reverse proxy that names the reader in `header`, from which alone that header is
    accepted. `hosts`: names the dashboard is reached by, in addition to those of loopback.
    """

    policy: Text
    proxies: tuple[Annotated[IPvAnyNetwork, AfterValidator(_is_one_network)], ...] = ()
    header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = "X-Forwarded-Email"
    hosts: tuple[Host, ...] = ()

    def grants(self) -> Grants:
        """The content of the policy file; UsageError names it and what is wrong."""
        try:
            with Path(self.policy).open("rb") as file:
                return Grants.model_validate(parse_toml(file.read(TOML_BYTES + 1)))
        except OSError as error:
            raise UsageError(
                f"{self.policy} cannot be read ({error.strerror}); [access] policy names the file of [readers]."
            ) from None
        except ParseError as error:
            raise UsageError(f"{self.policy} {error}.") from None
        except ValidationError as error:
            raise UsageError(first_mistake(error, self.policy, model=Grants)) from None

    def teams_of(self, reader: str) -> Teams:
        """The teams of a reader; UsageError for one that the policy does not name."""
        grants = self.grants()
        if reader not in grants.readers:
            raise UsageError(f"{self.policy} has no reader {reader!r}; add it to [readers] with its teams.")
        return grants.teams_of(reader)
