"""How a sweep ends early: at a signal or its deadline, with the answers in flight taken.

First nothing new is sent, and what was sent is waited for, no longer than the drain deadline;
whoever sits at the terminal is told what is waited for and how long at most. A second signal,
or the end of that time, cancels: open requests are given up and charged at their bound.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import anyio

from tauasync.scheduler.control import RunControl, StopReason

REMIND_EVERY_S = 15.0
"""How often it is told what is still waited for."""

DRAINED = frozenset({StopReason.INTERRUPTED, StopReason.TERMINATED, StopReason.DEADLINE})
"""Reasons for which somebody waits for the end; else each request has its own deadline alone."""


class Stopping:
    """Stops a sweep in two steps.

    Args:
        scope: everything the sweep does, cancelled in the second step.
        in_flight: requests on the wire now.
        say: tells the person at the terminal something at once.
        drain_deadline_s: how long the answers in flight are waited for at most.
    """

    def __init__(
        self,
        scope: anyio.CancelScope,
        control: RunControl,
        *,
        in_flight: Callable[[], int],
        say: Callable[[str], None],
        drain_deadline_s: float,
    ) -> None:
        self._scope = scope
        self._control = control
        self._in_flight = in_flight
        self._say = say
        self._drain_deadline_s = drain_deadline_s
        self._stopped = anyio.Event()
        control.when_stopping(lambda _: self._stopped.set())

    def heed(self, number: signal.Signals) -> None:
        """A signal came. First: leave at the next turn boundary. Second: leave now."""
        if self._control.stopping:
            self._say("leaving now; what was committed stays")
            self._scope.cancel()
            return
        by_hand = number is signal.SIGINT
        self._control.stop(StopReason.INTERRUPTED if by_hand else StopReason.TERMINATED)

    async def watch(self, deadline_s: float | None) -> None:
        """Stop the sweep at its deadline; once it is stopping, see that it ends.

        Args:
            deadline_s: seconds from now; None for none.
        """
        with anyio.move_on_after(deadline_s):
            await self._stopped.wait()
        if not self._control.stopping:
            self._control.stop(StopReason.DEADLINE)
        if self._control.reason in DRAINED:
            await self._drain()
        elif self._control.reason is StopReason.STORAGE:
            self._say(
                "stopping, a disk failed: sending nothing new; "
                f"{_answers(self._in_flight())} in flight (Ctrl-C: leave now)"
            )

    async def _drain(self) -> None:
        left_s = self._drain_deadline_s
        taking = ""
        if waiting := self._in_flight():
            taking = f"; waiting for {_answers(waiting)} in flight, {left_s:g} s at most"
        self._say(f"stopping: sending nothing new{taking} (again: leave now)")
        while left_s > 0:
            step_s = min(REMIND_EVERY_S, left_s)
            await anyio.sleep(step_s)
            left_s -= step_s
            if left_s > 0:
                self._say(
                    f"still waiting for {_answers(self._in_flight())}, {left_s:.0f} s at most"
                )
        self._say(
            f"{_answers(self._in_flight())} did not come within {self._drain_deadline_s:g} s "
            "(limits.drain_deadline_s); leaving without"
        )
        self._scope.cancel()


def _answers(count: int) -> str:
    return "1 answer" if count == 1 else f"{count} answers"
