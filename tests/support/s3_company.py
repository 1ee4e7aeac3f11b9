"""The small company with its bill, its run events and its warehouse on S3."""

from __future__ import annotations

from typing import Any

from pipelines.config.settings import Settings, load_settings
from support.small_company import Company

# The one the manifests of `support.bills` name.
BUCKET = "example-billing"
LOCATION = f"s3://{BUCKET}/ledger"


def deliver(company: Company, s3: Any) -> None:
    """Bring bucket and folder to the same state, as AWS and the training jobs write them."""
    for folder in (company.export, company.events):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                s3.upload_file(str(path), BUCKET, path.relative_to(company.root).as_posix())


def settings(company: Company, endpoint: str) -> Settings:
    """The company's configuration with every location on S3."""
    reach = f'endpoint_url = "{endpoint}"\nregion = "us-east-1"\n'
    company.config.write_text(
        f'[warehouse]\nlocation = "{LOCATION}"\n{reach}'
        f'[[billing]]\nname = "payer"\nlocation = "s3://{BUCKET}/export"\n{reach}'
        f'[[runs]]\nname = "jobs"\nkind = "events"\nlocation = "s3://{BUCKET}/events"\n{reach}'
    )
    return load_settings(company.config)
