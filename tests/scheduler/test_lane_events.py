"""What happens to a lane reaches the record, whole and in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel

from tauasync.assembly.lane_events import KEPT_EVENTS, LaneEvents


class Record:
    def __init__(self) -> None:
        self.kinds: list[str] = []

    async def event(self, kind: str, data: Mapping[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        self.kinds.append(kind)


async def test_events_are_written_while_the_run_goes_on_and_the_rest_at_its_end() -> None:
    events, record = LaneEvents(), Record()
    async with anyio.create_task_group() as group:
        group.start_soon(events.write, record)
        for index in range(3):
            events.note(str(index), {})
            await anyio.wait_all_tasks_blocked()
        assert record.kinds == ["0", "1", "2"]
        group.cancel_scope.cancel()
    events.note("last", {})
    await events.flush(record)
    assert record.kinds[-1] == "last"


async def test_a_store_that_is_slow_holds_nobody_up() -> None:
    events, record = LaneEvents(), Record()
    for index in range(2 * KEPT_EVENTS):
        events.note(str(index), {})
    await events.flush(record)
    assert len(record.kinds) == KEPT_EVENTS
    assert record.kinds[-1] == str(2 * KEPT_EVENTS - 1)
