"""A sweep on an open run file: opens the models, plays what is open, scores what is unscored."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from tauasync.assembly.cell_player import CellPlayer
from tauasync.assembly.domains import Stage
from tauasync.assembly.expected import expected_amounts
from tauasync.assembly.lane_events import LaneEvents
from tauasync.assembly.lane_view import LaneView
from tauasync.assembly.models import OpenModels, open_models
from tauasync.assembly.money import budget_record, open_ledger, prepare_models, spent_before
from tauasync.assembly.operator import Operator
from tauasync.assembly.playing import Needs, needs_of, play_open, score_again
from tauasync.assembly.signals import Signals
from tauasync.assembly.standing import length_on, outlook, standing
from tauasync.assembly.stopping import Stopping
from tauasync.config.schema import RunConfig
from tauasync.endpoint.cache import AnswerCache, NoCache, ResponseCache
from tauasync.episode.step import Limits
from tauasync.errors import EndpointUnusable
from tauasync.scheduler.breaker import Breakers, Broken, Unheard
from tauasync.scheduler.ceiling import Ceiling
from tauasync.scheduler.collector import rare_collections
from tauasync.scheduler.control import RunControl, StopReason
from tauasync.scheduler.handover import quick_handover
from tauasync.scheduler.lag import LoopLag
from tauasync.scheduler.ledger import RunLedger
from tauasync.scheduler.means import Means
from tauasync.scheduler.progress import Progress
from tauasync.scheduler.regulator import Regulator
from tauasync.scheduler.snapshot import Snapshot
from tauasync.scheduler.spent import SpentCaps
from tauasync.store.reader import RunReader
from tauasync.store.recent_file import RecentFile
from tauasync.store.records import CellStatus
from tauasync.store.run_store import RunStore

Show = Callable[[Callable[[], Snapshot]], Coroutine[None, None, None]]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A model that was given up.

    Attributes:
        open_cells: open cells that need it.
    """

    broken: Broken
    open_cells: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEnd:
    """How a sweep ended.

    Attributes:
        reason: why it stopped early; None where it came to its end.
        error: what stopped it, where something did.
        given_up: models that were not asked any more, while the rest went on.
        unheard: models that were asked and have never answered.
        open_cells: planned cells that are not played.
        unscored: played cells without a final reward.
        is_readable: whether the run file is in its place and can be read; else `open_cells` is
            what this process knows of, and `unscored` 0.
    """

    reason: StopReason | None
    error: BaseException | None
    given_up: tuple[GivenUp, ...] = ()
    unheard: tuple[Unheard, ...] = ()
    open_cells: int
    unscored: int
    snapshot: Snapshot
    is_readable: bool = True


async def sweep(
    config: RunConfig,
    stage: Stage,
    store: RunStore,
    *,
    show: Show,
    say: Say,
    rescore: bool = False,
    signals: Signals | None = None,
) -> SweepEnd:
    """Play and score until nothing is open, or something stops the run.

    Args:
        rescore: play nothing, and score every finished conversation again.
        show: displays progress until cancelled.
        say: tells the person at the terminal something at once.
        signals: what stops it from outside; None for nothing.

    Raises:
        ConfigError: a key is missing, or a parameter cannot be sent.
        StorageError: the run file or the cache cannot be used from the start; what fails later
            is the end's reason.
    """
    unscored = await store.finished() if rescore else await store.unscored()
    found = await to_thread.run_sync(partial(standing, store, stage, rescore=rescore))
    control, lag, needs = RunControl(), LoopLag(), needs_of(config, stage)
    spent_caps = await spent_before(config, store)
    progress = Progress(found.before, length=length_on(stage))
    lane_events, ceiling = LaneEvents(), Ceiling(config.limits.open_episodes)
    async with (
        _cache(config) as cache,
        _recent(config, store) as recent,
        open_models(
            config,
            config.role_models,
            tasks=stage.task,
            cache=cache,
            ledger=(ledger := await open_ledger(config, store, cache, run_id=found.run_id)),
            sleep=control.sleep,
            payer=found.run_id,
            on_event=lane_events.note,
            recent=recent.of,
        ) as models,
    ):
        await prepare_models(models, ledger, store)
        for endpoint in models.endpoints.values():
            control.when_stopping(endpoint.shut)
        operator = Operator(
            store,
            Regulator(models.endpoints, models.lanes, ceiling=ceiling, now_s=anyio.current_time()),
            control=control,
            snapshot=progress.snapshot,
            money=lambda: (config.budget.micro_usd, ledger.run.spent),
        )
        lanes = LaneView(models)
        with rare_collections(), quick_handover():
            async with anyio.create_task_group() as group:

                def give_up(broken: Broken) -> None:
                    _give_up(broken, models, say)
                    progress.give_up(broken.model)
                    group.start_soon(_record, broken, store, control)

                breakers = Breakers(models.endpoint_of.__getitem__, give_up)
                player = CellPlayer(
                    stage=stage,
                    store=store,
                    clients=models.clients,
                    endpoint_of=models.endpoint_of,
                    judge=config.roles.judge,
                    payer=found.run_id,
                    limits=_limits(config),
                    seed=config.run.seed,
                    control=control,
                    breakers=breakers,
                    progress=progress,
                    spent_caps=spent_caps,
                )
                stopping = Stopping(
                    group.cancel_scope,
                    control,
                    in_flight=lanes.in_flight,
                    say=say,
                    drain_deadline_s=config.limits.drain_deadline_s,
                )
                group.start_soon(show, operator.snapshot)
                group.start_soon(operator.attend)
                group.start_soon(lag.watch)
                group.start_soon(_write, lane_events, store, control)
                group.start_soon(stopping.watch, config.limits.run_deadline_s)
                with signals.tell(stopping.heed) if signals is not None else nullcontext():
                    await score_again(unscored, store, player, control)
                    if not rescore:
                        await play_open(
                            store,
                            player,
                            needs=needs,
                            lanes=lanes,
                            breakers=breakers,
                            spent_caps=spent_caps,
                            control=control,
                            ceiling=ceiling,
                            outlook=outlook(config, stage, found, progress, ledger),
                            means=await _means(config, stage, store, ledger),
                        )
                group.cancel_scope.cancel()
        with control.storing():
            await operator.leave()
            await lane_events.flush(store)
            reason, error = _why(control, spent_caps)
            await store.event(
                "sweep_ended",
                {
                    "reason": reason.value if reason else None,
                    "error": str(error) if error else None,
                    "given_up": {name: str(found.error) for name, found in breakers.broken.items()},
                    "budget": budget_record(config),
                    # Cut short by something else, not every conversation had its turn to be
                    # refused.
                    "spent_caps": list(spent_caps.closed if control.reason else spent_caps.refused),
                    "cache": asdict(cache.statistics()),
                    "endpoints": {
                        name: asdict(endpoint.statistics())
                        for name, endpoint in models.endpoints.items()
                    },
                    "sent_last_min": recent.record(),
                    "loop_lag_p50_s": lag.quantile(0.5),
                    "loop_lag_p99_s": lag.quantile(0.99),
                },
            )
            recent.remove()
    now, broken = progress.snapshot(), tuple(breakers.broken.values())
    still_open, still_unscored = now.planned - now.already - now.played, 0
    given_up = tuple(GivenUp(broken=it, open_cells=still_open) for it in broken)
    is_readable = False
    with control.storing():
        store.check_place()
        still_open, still_unscored = await to_thread.run_sync(_left, store)
        given_up = await to_thread.run_sync(_count, broken, store, needs)
        is_readable = True
    reason, error = _why(control, spent_caps)
    return SweepEnd(
        reason=reason,
        error=error,
        given_up=given_up,
        unheard=breakers.unheard,
        open_cells=still_open,
        unscored=still_unscored,
        snapshot=now,
        is_readable=is_readable,
    )


async def _means(
    config: RunConfig, stage: Stage, store: RunStore, ledger: RunLedger
) -> Means | None:
    """What is left to pay episodes with, where anything is capped."""
    if not ledger.is_capped:
        return None
    expected = await to_thread.run_sync(expected_amounts, config, stage, store.path)
    return Means(lambda: ledger.accounts, expected, clock=time.monotonic)


@asynccontextmanager
async def _recent(config: RunConfig, store: RunStore) -> AsyncIterator[RecentFile]:
    """What was sent in the last minute to the endpoints that declare a limit a minute."""
    ended = await to_thread.run_sync(_sent_before_the_end, store)
    names = dict.fromkeys(config.models[name].endpoint for name in config.role_models)
    limited = [
        name
        for name in names
        if config.endpoints[name].requests_per_min or config.endpoints[name].tokens_per_min
    ]
    now = time.time()
    wall = now - anyio.current_time()
    with RecentFile(store.path, limited, ended=ended, wall=wall, now=now) as recent:
        yield recent


def _sent_before_the_end(store: RunStore) -> Any:
    with RunReader(store.path) as reader:
        last = reader.last_event("sweep_ended")
        return None if last is None else last.data.get("sent_last_min")


def _limits(config: RunConfig) -> Limits:
    return Limits(
        max_steps=config.limits.max_steps,
        max_errors=config.limits.max_errors,
        deadline_s=config.limits.episode_deadline_s,
        enforce_protocol=config.limits.enforce_protocol,
    )


def _give_up(broken: Broken, models: OpenModels, say: Say) -> None:
    if isinstance(broken.error, EndpointUnusable):
        models.endpoints[broken.endpoint].give_up(broken.model, broken.error)
    say(
        f"{broken.model} on {broken.endpoint} is given up; what does not need it goes on: "
        f"{broken.error}"
    )


async def _record(broken: Broken, store: RunStore, control: RunControl) -> None:
    with control.storing():
        await store.event(
            "model_given_up",
            {"model": broken.model, "endpoint": broken.endpoint, "error": str(broken.error)},
        )


async def _write(lane_events: LaneEvents, store: RunStore, control: RunControl) -> None:
    with control.storing():
        await lane_events.write(store)


def _count(given_up: tuple[Broken, ...], store: RunStore, needs: Needs) -> tuple[GivenUp, ...]:
    """How many open cells need each of the models that were given up."""
    if not given_up:
        return ()
    waiting = dict.fromkeys((broken.model for broken in given_up), 0)
    with RunReader(store.path) as reader:
        for _, cell in reader.each_open_cell():
            for model in needs(cell):
                if model in waiting:
                    waiting[model] += 1
    return tuple(GivenUp(broken=it, open_cells=waiting[it.model]) for it in given_up)


@asynccontextmanager
async def _cache(config: RunConfig) -> AsyncIterator[AnswerCache]:
    if not config.cache.enabled:
        yield NoCache()
        return
    async with ResponseCache(config.cache.dir) as cache:
        yield cache


def _why(
    control: RunControl, spent_caps: SpentCaps
) -> tuple[StopReason | None, BaseException | None]:
    """Why a sweep ended with something left, and what told it so."""
    if control.reason is None and spent_caps.error is not None:
        return StopReason.BUDGET, spent_caps.error
    return control.reason, control.error


def _left(store: RunStore) -> tuple[int, int]:
    with RunReader(store.path) as reader:
        counts = reader.counts()
        return sum(counts.values()) - counts[CellStatus.PLAYED], reader.unscored_count()
