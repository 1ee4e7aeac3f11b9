"""trainledger: what a model really cost to train, from the AWS bill."""

import os

# No library may call home: the product runs on closed networks, and what runs there is private.
os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
# Products of matrices are small: a second thread waits for the first longer than it works. One thread also gives the
# same last digit on every machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
