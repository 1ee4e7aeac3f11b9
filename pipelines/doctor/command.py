"""The `trainledger doctor` command."""

import json
import sys
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated

import typer

from pipelines.base.console import Console
from pipelines.config.options import Config, settings_of

_STATUS_WIDTH, _CHECK_WIDTH = 11, 17


def doctor(
    config: Config = None,
    aws: Annotated[bool, typer.Option("--aws", help="Query AWS for bills in folders and other stores too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check that sources are reachable, complete and permitted."""
    settings = settings_of(config)
    from pipelines.doctor.examine import examine
    from pipelines.doctor.finding import Finding, exit_code

    console = Console()
    findings: list[Finding] = []
    exam = examine(settings, datetime.now(UTC).replace(tzinfo=None), ask_aws=aws)
    if as_json:
        findings = list(exam)
        document = {"findings": [asdict(finding) for finding in findings], "exit_code": exit_code(findings)}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        for subject, found in groupby(exam, key=lambda finding: finding.subject):
            console.say(subject)
            for finding in found:
                findings.append(finding)
                head = f"  {finding.status.ljust(_STATUS_WIDTH)}  {finding.check.ljust(_CHECK_WIDTH)}  "
                console.say(head + finding.message, len(head))
            console.say("")
        counts = Counter(finding.status for finding in findings)
        counted = (f"{counts[status]} {status}" for status in ("ok", "warn", "fail", "not checked"))
        console.say(", ".join(counted) + ".")
    raise typer.Exit(exit_code(findings))
