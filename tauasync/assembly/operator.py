"""What links a playing process to other terminals: it tells how it is doing, and heeds requests."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from msgspec import structs

from tauasync.errors import ConfigError
from tauasync.scheduler.control import RunControl
from tauasync.scheduler.regulator import Regulator
from tauasync.scheduler.snapshot import LanePulse, Snapshot
from tauasync.store import tuning
from tauasync.store.lock import this_process
from tauasync.store.run_store import RunStore
from tauasync.types import MicroUsd

LOOK_EVERY_S = 1.0
"""How often requests are looked for."""

PULSE_EVERY_S = 2.0
"""How often the state is written."""

TUNED = "tuned"
"""The kind of event that records a change of limits."""
TUNE_REFUSED = "tune_refused"
"""The kind of event that records a request that could not be met."""


class Operator:
    """The operator's side of a run that is being played.

    Args:
        snapshot: the sweep's own counters, beside how the lanes are.
        money: (cap, charged) in micro-dollars.
    """

    def __init__(
        self,
        store: RunStore,
        regulator: Regulator,
        *,
        control: RunControl,
        snapshot: Callable[[tuple[LanePulse, ...]], Snapshot],
        money: Callable[[], tuple[MicroUsd | None, MicroUsd]],
    ) -> None:
        self._store = store
        self._regulator = regulator
        self._control = control
        self._snapshot = snapshot
        self._money = money
        self._me = this_process()

    def snapshot(self) -> Snapshot:
        """The sweep with its lanes and its budget."""
        cap, charged = self._money()
        return structs.replace(
            self._snapshot(self._regulator.pulses(anyio.current_time())),
            max_open_episodes=self._regulator.max_open_episodes,
            cap=cap,
            charged=charged,
        )

    async def attend(self) -> None:
        """Write the state and heed requests until cancelled; a disk that fails stops the run."""
        with self._control.storing():
            while True:
                await self._store.pulse(self.snapshot())
                next_at = anyio.current_time() + PULSE_EVERY_S
                while anyio.current_time() < next_at:
                    await self._heed()
                    await anyio.sleep(LOOK_EVERY_S)

    async def leave(self) -> None:
        """Write the last state."""
        await self._store.pulse(self.snapshot())

    async def _heed(self) -> None:
        try:
            request = tuning.take(self._store.path)
        except ValueError as error:
            await self._store.event(TUNE_REFUSED, {"reason": str(error)})
            return
        # What was left for a process that is gone is for nobody.
        if request is None or request.owner != self._me:
            return
        try:
            changed = self._regulator.tune(
                request.endpoint,
                max_in_flight=request.max_in_flight,
                requests_per_min=request.requests_per_min,
                tokens_per_min=request.tokens_per_min,
                open_episodes=request.open_episodes,
            )
        except ConfigError as error:
            await self._store.event(TUNE_REFUSED, {"id": request.id, "reason": str(error)})
            return
        await self._store.pulse(self.snapshot())
        await self._store.event(
            TUNED, {"id": request.id, "endpoint": request.endpoint, "limits": changed}
        )
