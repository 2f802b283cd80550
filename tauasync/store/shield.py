"""Work that must finish, whatever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


async def regardless(work: Coroutine[Any, Any, T]) -> T:
    """Run work to its end; a cancellation that arrives meanwhile is raised afterwards.

    Both kinds are held off: anyio's, which is raised again at every await of its scope, and
    asyncio's, which is raised once for each `cancel`.
    """
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()
    raise cancelled
