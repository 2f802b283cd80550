"""What some hundred small sweeps would each pay for again is paid once.

Neither reading a domain's files nor tuning the collector is what these tests are about.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import lru_cache

import pytest

from tauasync.assembly import domains, sweep


@pytest.fixture(scope="session", autouse=True)
def cheap_sweeps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(domains, "open_domain", lru_cache(domains.open_domain))
        patch.setattr(sweep, "rare_collections", nullcontext)
        yield
