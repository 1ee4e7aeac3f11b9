"""How often in a row a run has to pass its target: the range that events, the policy and the tables share."""

from __future__ import annotations

# Up to how many passes of a target in a row are priced; the policy's `target_passes` is shown next to the first.
MOST_PASSES = 5
