"""`python -m pipelines`: the same as the `trainledger` command."""

from pipelines.cli import main

main()
