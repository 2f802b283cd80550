"""A sweep on an open run file: opens the models, plays what is open, scores what is unscored."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

import anyio
from anyio import to_thread

from tauasync.assembly.cell_player import CellPlayer
from tauasync.assembly.domains import Stage
from tauasync.assembly.models import open_models
from tauasync.assembly.operator import Operator
from tauasync.config.schema import RunConfig
from tauasync.endpoint.cache import AnswerCache, NoCache, ResponseCache
from tauasync.endpoint.ledger import Unlimited
from tauasync.episode.step import Limits
from tauasync.scheduler.collector import rare_collections
from tauasync.scheduler.control import RunControl, StopReason
from tauasync.scheduler.handover import quick_handover
from tauasync.scheduler.lag import LoopLag
from tauasync.scheduler.ledger import CappedLedger
from tauasync.scheduler.pace import Pace
from tauasync.scheduler.pool import play_all
from tauasync.scheduler.progress import Progress
from tauasync.scheduler.snapshot import Snapshot
from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus
from tauasync.store.run_store import RunStore
from tauasync.store.views import Ended

SCORING_AT_ONCE = 32
"""Conversations scored at the same time when a run goes on."""

Show = Callable[[Callable[[], Snapshot]], Coroutine[None, None, None]]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEnd:
    """How a sweep ended.

    Attributes:
        reason: why it stopped early; None where it came to its end.
        error: what stopped it, where something did.
        open_cells: planned cells that are not played.
        unscored: played cells without a final reward.
    """

    reason: StopReason | None
    error: BaseException | None
    open_cells: int
    unscored: int
    snapshot: Snapshot


async def sweep(
    config: RunConfig,
    stage: Stage,
    store: RunStore,
    *,
    show: Show,
    say: Say,
    rescore: bool = False,
) -> SweepEnd:
    """Play and score until nothing is open, or something stops the run.

    Args:
        rescore: play nothing, and score every finished conversation again.
        show: displays progress until cancelled.
        say: tells the person at the terminal something at once.

    Raises:
        ConfigError: a key is missing, or a parameter cannot be sent.
        StorageError: the run file cannot be written, or is no longer in its place.
    """
    cells = [] if rescore else await store.open_cells()
    unscored = await store.finished() if rescore else await store.unscored()
    planned, already, spent, run_id = await to_thread.run_sync(_standing, store)
    control, lag = RunControl(), LoopLag()
    ledger = _ledger(config, spent)
    progress = Progress(planned=planned, already=already)
    async with (
        _cache(config) as cache,
        open_models(
            config,
            config.role_models,
            tasks=stage.task,
            cache=cache,
            ledger=ledger,
            sleep=control.sleep,
            payer=run_id,
        ) as models,
    ):
        for endpoint in models.endpoints.values():
            control.when_stopping(endpoint.shut)
        operator = Operator(
            store,
            Pace(models.endpoints, now_s=anyio.current_time()),
            control=control,
            snapshot=progress.snapshot,
            money=lambda: (config.budget.micro_usd, ledger.spent),
        )
        player = CellPlayer(
            stage=stage,
            store=store,
            clients=models.clients,
            endpoint_of=models.endpoint_of,
            judge=config.roles.judge,
            payer=run_id,
            limits=_limits(config),
            seed=config.run.seed,
            control=control,
            progress=progress,
        )
        with rare_collections(), quick_handover():
            async with anyio.create_task_group() as group:
                await group.start(_heed_signals, group.cancel_scope, control, say)
                group.start_soon(show, operator.snapshot)
                group.start_soon(operator.attend)
                group.start_soon(lag.watch)
                if config.limits.run_deadline_s is not None:
                    group.start_soon(_deadline, config.limits.run_deadline_s, control)
                await _score_again(unscored, store, player, control)
                await play_all(
                    cells, player.play, open_episodes=config.limits.open_episodes, control=control
                )
                group.cancel_scope.cancel()
        await operator.leave()
        await store.event(
            "sweep_ended",
            {
                "reason": control.reason.value if control.reason else None,
                "error": str(control.error) if control.error else None,
                "charged_at_bound_microusd": ledger.charged_at_bound,
                "cache": asdict(cache.statistics()),
                "endpoints": {
                    name: asdict(endpoint.statistics())
                    for name, endpoint in models.endpoints.items()
                },
                "loop_lag_p50_s": lag.quantile(0.5),
                "loop_lag_p99_s": lag.quantile(0.99),
            },
        )
    store.check_place()
    still_open, still_unscored = await to_thread.run_sync(_left, store)
    return SweepEnd(
        reason=control.reason,
        error=control.error,
        open_cells=still_open,
        unscored=still_unscored,
        snapshot=progress.snapshot(),
    )


def _limits(config: RunConfig) -> Limits:
    return Limits(
        max_steps=config.limits.max_steps,
        max_errors=config.limits.max_errors,
        deadline_s=config.limits.episode_deadline_s,
        enforce_protocol=config.limits.enforce_protocol,
    )


async def _score_again(
    unscored: list[Ended], store: RunStore, player: CellPlayer, control: RunControl
) -> None:
    async def score(ended: Ended) -> None:
        await player.score(
            ended.episode_id,
            ended.cell_id,
            ended.cell,
            await store.transcript(ended.episode_id),
            ended.termination,
            recorded=await store.judge_keys(ended.episode_id),
        )

    await play_all(unscored, score, open_episodes=SCORING_AT_ONCE, control=control)


async def _heed_signals(
    scope: anyio.CancelScope,
    control: RunControl,
    say: Say,
    *,
    task_status: anyio.abc.TaskStatus[None],
) -> None:
    """First signal: leave at the next turn boundary. Second: leave now."""
    with anyio.open_signal_receiver(*_heeded()) as signals:
        task_status.started()
        async for number in signals:
            if control.stopping:
                say("leaving now; what was committed stays")
                scope.cancel()
                return
            control.stop(
                StopReason.INTERRUPTED if number == signal.SIGINT else StopReason.TERMINATED
            )
            say("stopping: taking the answers in flight, sending nothing new (again: leave now)")


def _heeded() -> tuple[signal.Signals, ...]:
    """The signals that stop a run; a closed terminal does, unless `nohup` says otherwise."""
    hangup: signal.Signals | None = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return (signal.SIGINT, signal.SIGTERM)
    return (signal.SIGINT, signal.SIGTERM, hangup)


async def _deadline(seconds: float, control: RunControl) -> None:
    await anyio.sleep(seconds)
    control.stop(StopReason.DEADLINE)


@asynccontextmanager
async def _cache(config: RunConfig) -> AsyncIterator[AnswerCache]:
    if not config.cache.enabled:
        yield NoCache()
        return
    async with ResponseCache(config.cache.dir) as cache:
        yield cache


def _ledger(config: RunConfig, spent: int) -> Unlimited | CappedLedger:
    cap = config.budget.micro_usd
    return Unlimited() if cap is None else CappedLedger(cap, spent=spent)


def _standing(store: RunStore) -> tuple[int, int, int, str]:
    with RunReader(store.path) as reader:
        counts = reader.counts()
        paid, _ = reader.paid()
        spent = paid + reader.charged_at_bound()
        run_id = reader.run().run_id
    return sum(counts.values()), counts[CellStatus.PLAYED], spent, run_id


def _left(store: RunStore) -> tuple[int, int]:
    with RunReader(store.path) as reader:
        counts = reader.counts()
        return sum(counts.values()) - counts[CellStatus.PLAYED], reader.unscored_count()
