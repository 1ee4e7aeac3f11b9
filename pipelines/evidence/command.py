"""The `trainledger verify` command."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.config.options import settings_of


def verify(
    pack: Annotated[Path, typer.Argument(help="The zip file that `trainledger report --pack` wrote.")],
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="trainledger.toml with the current locations of the inputs. Default: the recorded ones."
        ),
    ] = None,
    signer: Annotated[
        Path | None, typer.Option("--signer", help="First check PACK.sig by this file of allowed signers (OpenSSH).")
    ] = None,
) -> None:
    """Rebuild the figures of a pack and compare every one."""
    from pipelines.evidence.archive import refuse_no_file

    refuse_no_file(pack)
    settings, console = settings_of(config) if config else None, Console()
    if signer:
        from pipelines.evidence.signature import signer_of

        console.say(f"Signed by {signer_of(pack, signer)}.")
    from pipelines.evidence.verify import verify as verify_pack

    verify_pack(pack, settings, console)
