"""How long an answer takes: a lognormal draw by the request's digest."""

from __future__ import annotations

import math
from statistics import NormalDist

import msgspec

_STANDARD = NormalDist()


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution of answer times.

    Attributes:
        mean_s: mean in seconds; 0 answers at once.
        spread: sigma of the underlying normal; 0 makes every answer take `mean_s`.
    """

    mean_s: float = 0.0
    spread: float = 0.0

    def of(self, digest: bytes) -> float:
        """Seconds for the request with this digest; the same for every repetition of it."""
        if self.mean_s <= 0.0:
            return 0.0
        share = (int.from_bytes(digest[:8], "big") + 0.5) / 2.0**64
        z = _STANDARD.inv_cdf(min(max(share, 1e-12), 1.0 - 1e-12))
        return self.mean_s * math.exp(self.spread * z - self.spread**2 / 2.0)
