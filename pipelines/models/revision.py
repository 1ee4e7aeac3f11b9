"""The code that made a publication, as one short text: the version, the models and what makes their inputs."""

from __future__ import annotations

import hashlib
from functools import cache

from pipelines.base.code import code_digest
from pipelines.base.version import __version__
from pipelines.ingest.billing.columns import REVIEWED
from pipelines.ingest.billing.exports import CONVERTER
from pipelines.ingest.runs.tracker import READERS
from pipelines.models.catalog import load_catalog
from pipelines.models.contract import load_contract
from pipelines.models.records import RECORDS, run_code

# The modules that write and check every table, whatever its model.
BUILD_CODE = (
    "pipelines.engine.duckdb",
    "pipelines.models.validate",
    "pipelines.models.written",
)
# The modules whose code makes what the models read, the bill, the raw tables and the arguments, and what builds them.
INPUT_CODE = (
    *BUILD_CODE,
    CONVERTER,
    "pipelines.ingest.billing.select",
    *run_code(READERS),
    *(records.module for records in RECORDS.values()),
    "pipelines.models.session",
    "pipelines.warehouse.pseudonyms",
)


@cache
def code_revision() -> str:
    """`version+models.inputs`: a digest of models, contracts and bill columns, and one of what makes their inputs."""
    seal = hashlib.sha256(REVIEWED.read_bytes())
    for model in load_catalog().ordered:
        seal.update(f"{model.key}\n{model.text}{model.code}\n{load_contract(model.key).digest}\n".encode())
    return f"{__version__}+{seal.hexdigest()[:8]}.{code_digest(*INPUT_CODE)[:8]}"


def has_our_models(revision: str) -> bool:
    """Whether a code revision has the models and contracts of this one; what makes their inputs may differ."""
    return revision.rpartition(".")[0] == code_revision().rpartition(".")[0]
