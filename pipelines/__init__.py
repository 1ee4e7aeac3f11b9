"""trainledger: what a model really cost to train, from the AWS bill."""

import os

# No library may call home: the product runs on closed networks, and who runs what is nobody's business.
os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
