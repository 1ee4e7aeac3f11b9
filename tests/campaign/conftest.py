from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.campaign import Campaign


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> Iterator[Campaign]:
    """The cases of this test; how they ended is printed at the end of the run."""
    found = Campaign(request.node.name)
    yield found
    request.node.user_properties.append(("campaign", str(found)))
