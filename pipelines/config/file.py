"""The configuration file and its content: the first step of every command.

It imports no library, so that a wrong path or a broken file is reported at once. With `settings`, the only module that
reads the environment; everything else takes arguments.
"""

import os
from pathlib import Path
from typing import Any

from pipelines.base.errors import UsageError
from pipelines.base.parse import TOML_BYTES, ParseError, parse_toml

CONFIG_NAME = "trainledger.toml"
DEMO_FOLDER = "trainledger-demo"


def find_config(config: Path | None = None) -> Path:
    """The configuration file to use: `config`, $TRAINLEDGER_CONFIG, the one here, the demo's."""
    named = config or (Path(env) if (env := os.environ.get("TRAINLEDGER_CONFIG")) else None)
    if named is not None:
        if not named.is_file() and config is None:
            raise UsageError(f"{named}, named by TRAINLEDGER_CONFIG, does not exist; correct or unset the variable.")
        if not named.is_file():
            raise UsageError(f"{named} does not exist; give --config the path of a {CONFIG_NAME}.")
        return named
    for candidate in (Path(CONFIG_NAME), Path(DEMO_FOLDER) / CONFIG_NAME):
        if candidate.is_file():
            return candidate
    raise UsageError(
        f"No {CONFIG_NAME} here; run `trainledger init` on the folder or bucket of your bill, or `trainledger demo`."
    )


def has_variable(*names: str) -> bool:
    """Whether the environment has a variable of one of these names."""
    return not os.environ.keys().isdisjoint(names)


def read_config(config: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """The configuration file (see `find_config`) and its content; UsageError where it is not TOML."""
    path = find_config(config).resolve()
    try:
        with path.open("rb") as file:
            return path, parse_toml(file.read(TOML_BYTES + 1))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; check its permissions.") from None
    except ParseError as error:
        raise UsageError(f"{path} {error}.") from None
