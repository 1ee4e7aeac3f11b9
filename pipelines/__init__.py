"""trainledger: what a model really cost to train, from the AWS bill."""

import os

# No library may call home: the product runs on closed networks, and what runs there is private.
os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
