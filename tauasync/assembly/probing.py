"""Probing every model that plays a part, quickly: an endpoint that is not there is not asked."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from tauasync.assembly.models import endpoint_spec, is_in_process, open_models
from tauasync.assembly.preflight import check_reachable, check_settings
from tauasync.config.schema import RunConfig
from tauasync.endpoint.preflight import ProbeResult, probe, unreachable
from tauasync.errors import DataError, EndpointUnusable
from tauasync.task import Task

ATTEMPTS = 2
"""How often a probe is sent at most: somebody waits for it, and can ask again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What one probe found.

    Attributes:
        names: the models it stands for, by their names in the configuration.
    """

    names: tuple[str, ...]
    result: ProbeResult


@asynccontextmanager
async def probing(
    config: RunConfig, *, environ: Mapping[str, str] | None = None
) -> AsyncIterator[ObjectReceiveStream[Probed]]:
    """Probe all models at once; yields what is found, in the order in which it is.

    Raises:
        ConfigError: a key is missing, or a parameter cannot be sent.
    """
    check_settings(config, environ=os.environ if environ is None else environ)
    patient = {
        name: entry.model_copy(update={"attempts": min(ATTEMPTS, entry.attempts)})
        for name, entry in config.endpoints.items()
    }
    quick = config.model_copy(update={"endpoints": patient})
    found, results = anyio.create_memory_object_stream[Probed](len(config.alike))
    async with results, anyio.create_task_group() as group:
        group.start_soon(_probe_all, quick, found)
        yield results
        group.cancel_scope.cancel()


async def _probe_all(config: RunConfig, found: ObjectSendStream[Probed]) -> None:
    names = tuple(group[0] for group in config.alike)
    async with found, open_models(config, names, tasks=_no_task) as models:

        async def ask(names: tuple[str, ...]) -> None:
            client = models.clients[names[0]]
            missing = gone.get(models.endpoint_of[names[0]])
            result = unreachable(client, missing) if missing is not None else await probe(client)
            await found.send(Probed(names=names, result=result))

        gone = await _gone(config, tuple(models.endpoints))
        async with anyio.create_task_group() as group:
            for alike in config.alike:
                group.start_soon(ask, alike)


async def _gone(config: RunConfig, names: tuple[str, ...]) -> dict[str, EndpointUnusable]:
    """The endpoints at whose address nothing listens, and what was met there."""
    gone: dict[str, EndpointUnusable] = {}

    async def connect(name: str) -> None:
        try:
            await check_reachable(endpoint_spec(name, config.endpoints[name], config))
        except EndpointUnusable as error:
            gone[name] = error

    async with anyio.create_task_group() as group:
        for name in names:
            if not is_in_process(config.endpoints[name]):
                group.start_soon(connect, name)
    return gone


def _no_task(domain: str, task_id: str) -> Task:
    raise DataError(f"a probe asks for no task, yet for '{task_id}' of '{domain}'")
