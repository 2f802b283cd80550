"""How long to believe an endpoint that asks for a pause; pure.

Most pauses are what they say. Some are a day, an epoch read as seconds, or a gateway's default:
a night that believes them is lost. What exceeds the cap is looked into, a little later each time.
"""

from __future__ import annotations

FIRST_LOOK_S = 60.0
"""The first pause in place of one that is not believed; each further one is twice as long."""


class ToldPauses:
    """The pauses one endpoint asks for, model by model.

    Args:
        cap_s: the longest pause that is believed.
    """

    def __init__(self, cap_s: float) -> None:
        self._cap_s = cap_s
        self._looks: dict[str, int] = {}

    def believed(self, model: str, told_s: float) -> float:
        """Seconds to pause a model that asked for so many."""
        if told_s <= self._cap_s:
            return told_s
        looks = self._looks.get(model, 0)
        self._looks[model] = looks + 1
        return float(min(self._cap_s, FIRST_LOOK_S * 2 ** min(looks, 16)))

    def answered(self, model: str) -> None:
        """The model answers; the next pause that is not believed begins anew."""
        self._looks.pop(model, None)
