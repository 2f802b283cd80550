"""The most that a request to one model may be billed, learned from what requests were; pure.

What is counted here and what is billed differ: another tokenizer, a prompt of the gateway's own, a
limit that leaves thought out or is ignored. A bill above its bound raises the bounds that follow.
A bill that cannot be is no bill: taken at its word it would end a night's budget at a stroke.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from tauasync.types import Usage

LONG_TOKENS = 1000
"""From so many counted tokens on a bill in excess raises the factor; that of a shorter prompt
says more about what is added to each, and raises that."""
MARGIN = 1.05
"""A raised bound lies so far above the bill that raised it."""
EXCESS_MARGIN = 1.5
"""The same for answers above their limit, which vary more than prompts."""
PLAUSIBLE = 10.0
PLAUSIBLE_MORE = 10_000
"""A prompt is billed at so many times what was counted, and so much more, at most."""
PLAUSIBLE_ANSWER = 1_000_000
"""The longest answer where nobody knows the model's context window."""
WINDOW_SLACK = 1.25
"""How far a bill may exceed the context window: windows are given in round numbers."""
SETTLED = 16
_REMEMBERED = 64


class Bounds:
    """What is known of one model's bills.

    Args:
        factor: from counted to billed prompt tokens at most, as long as no bill says otherwise.
        window: tokens that a request and its answer may have together; None where unknown.
    """

    def __init__(self, *, factor: float, window: int | None) -> None:
        self._factor = factor
        self._window = window
        self._more = 0
        self._excess = 0
        self._ratios: deque[float] = deque(maxlen=_REMEMBERED)

    def prompt(self, counted: int) -> int:
        """The most tokens that a prompt is billed at."""
        return math.ceil(counted * self._factor) + self._more

    def answer(self, limit: int) -> int:
        """The most tokens that an answer is billed at, where so many were allowed."""
        return limit + self._excess

    def likely_prompt(self, counted: int) -> int:
        """What a prompt will be billed at as a rule, in tokens: the worst of the last bills."""
        if len(self._ratios) < SETTLED:
            return self.prompt(counted)
        return math.ceil(counted * max(self._ratios))

    def is_plausible(self, counted: int, usage: Usage) -> tuple[bool, bool]:
        """Whether the two halves of a bill can be, the prompt's and the answer's."""
        most_prompt = PLAUSIBLE * counted + PLAUSIBLE_MORE
        most_answer: float = PLAUSIBLE_ANSWER
        if self._window is not None:
            most_prompt = min(most_prompt, max(WINDOW_SLACK * self._window, 2.0 * counted))
            most_answer = WINDOW_SLACK * self._window
        return usage.prompt <= most_prompt, usage.completion <= most_answer

    def billed(self, counted: int, usage: Usage, limit: int | None) -> bool:
        """Learn from a bill.

        Args:
            counted: prompt tokens as counted here.
            limit: tokens the answer was allowed; None where no limit is known.

        Returns:
            Whether it exceeded its bound, and raised those that follow.
        """
        if counted:
            self._ratios.append(usage.prompt / counted)
        raised = False
        if usage.prompt > self.prompt(counted):
            raised = True
            if counted >= LONG_TOKENS:
                self._factor = max(self._factor, MARGIN * (usage.prompt - self._more) / counted)
            else:
                beyond = usage.prompt - counted * self._factor
                self._more = max(self._more, math.ceil(MARGIN * beyond))
        if limit is not None and usage.completion > self.answer(limit):
            raised = True
            self._excess = math.ceil(EXCESS_MARGIN * (usage.completion - limit))
        return raised

    def facts(self) -> dict[str, Any]:
        """What was learned, for `restore` in a later session of the run."""
        return {"factor": round(self._factor, 4), "more": self._more, "excess": self._excess}

    def restore(self, facts: Mapping[str, Any]) -> None:
        """Go on from what an earlier session learned."""
        self._factor = max(self._factor, float(facts.get("factor", 0)))
        self._more = max(self._more, int(facts.get("more", 0)))
        self._excess = max(self._excess, int(facts.get("excess", 0)))
