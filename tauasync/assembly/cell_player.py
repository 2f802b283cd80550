"""Plays one cell: builds its world and participants, records it, scores it.

Every failure becomes a recorded outcome here; nothing one cell does can end another.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import anyio
import msgspec

from tauasync.agent.llm import make_agent
from tauasync.assembly.domains import Stage
from tauasync.endpoint.completion import (
    SIMULATED_FINGERPRINT,
    Completion,
    ModelClient,
    Origin,
)
from tauasync.environment.history import parse_history
from tauasync.episode.drive import EpisodeResult, Happening, play
from tauasync.episode.step import Limits
from tauasync.errors import (
    BudgetExhausted,
    Consequence,
    classify,
)
from tauasync.evaluator.reward import GRADING_VERSION, succeeded
from tauasync.evaluator.verdict import ScoreState, Verdict
from tauasync.evaluator.world import Worlds
from tauasync.grid.cell import Cell
from tauasync.scheduler.breaker import Breakers
from tauasync.scheduler.control import RunControl, RunStopping, StopReason
from tauasync.scheduler.progress import Progress
from tauasync.scheduler.scoring import score_conversation
from tauasync.scheduler.spent import SpentCaps
from tauasync.scheduler.ticket import Ticket, TicketClient
from tauasync.scheduler.turnstile import Turnstile
from tauasync.store.records import CompletionRow, EpisodeEnd, Outcome, leaf_errors
from tauasync.store.run_store import RunStore
from tauasync.types import Message, Mode, Termination, Transcript
from tauasync.user.simulator import make_user


class CellPlayer:
    """Plays and scores cells of one run.

    Args:
        clients: models by name.
        endpoint_of: the endpoint's name by model name.
        breakers: what is told of the models' failures.
        judge: the model that judges, None where none is configured.
        payer: this run, as the cache knows who paid.
        seed: the run's base seed.
        spent_caps: the caps that are reached already; learns of more.
    """

    def __init__(
        self,
        *,
        stage: Stage,
        store: RunStore,
        clients: Mapping[str, ModelClient],
        endpoint_of: Mapping[str, str],
        judge: str | None,
        payer: str,
        limits: Limits,
        seed: int,
        control: RunControl,
        breakers: Breakers,
        progress: Progress,
        spent_caps: SpentCaps,
    ) -> None:
        self._spent_caps = spent_caps
        self._stage = stage
        self._store = store
        self._clients = clients
        self._endpoint_of = endpoint_of
        self._judge = judge
        self._payer = payer
        self._limits = limits
        self._seed = seed
        self._control = control
        self._breakers = breakers
        self._progress = progress
        self._worlds: dict[tuple[str, bool], Worlds] = {}
        self._silent: set[int] = set()
        """Episodes without a completion so far."""
        self._turnstile = Turnstile()

    async def play(self, cell_id: int, cell: Cell, ticket: Ticket) -> None:
        """Play one cell to a recorded outcome, then score it."""
        if self._control.stopping:
            return
        episode_id = None
        with self._control.storing():
            episode_id = await self._store.begin_episode(cell_id, cell.seed(self._seed))
        if episode_id is None:
            return
        started = time.monotonic()
        self._progress.begin(episode_id, cell_id, cell, ticket)
        is_played = False
        self._silent.add(episode_id)
        try:
            result = await self._converse(episode_id, cell, ticket)
        except anyio.get_cancelled_exc_class() as error:
            with anyio.CancelScope(shield=True):
                await self._leave(episode_id, started, Outcome.CANCELLED, error)
            raise
        except RunStopping as error:
            await self._leave(episode_id, started, Outcome.INTERRUPTED, error)
        except Exception as error:  # noqa: BLE001 - recorded, and the cell stays open
            await self._fail(episode_id, started, error)
        else:
            with self._control.storing():
                await self._finish(episode_id, started, result)
                await self.score(
                    episode_id, cell_id, cell, result.transcript, result.termination, ticket=ticket
                )
                is_played = ticket.is_played = True
        finally:
            self._silent.discard(episode_id)
            self._progress.end(episode_id, is_played=is_played)

    async def score(
        self,
        episode_id: int,
        cell_id: int,
        cell: Cell,
        transcript: Transcript,
        termination: Termination,
        *,
        ticket: Ticket,
        recorded: frozenset[str] = frozenset(),
    ) -> None:
        """Score a finished conversation; what keeps it from a verdict is recorded.

        A judge that cannot be had leaves a final verdict from before as it is.

        Args:
            recorded: cache keys of judge's answers that are in the ledger already.
        """
        with self._control.storing():
            await self._score(
                episode_id, cell_id, cell, transcript, termination, ticket=ticket, recorded=recorded
            )

    async def _score(
        self,
        episode_id: int,
        cell_id: int,
        cell: Cell,
        transcript: Transcript,
        termination: Termination,
        *,
        ticket: Ticket,
        recorded: frozenset[str],
    ) -> None:

        async def on_completion(completion: Completion) -> None:
            assert self._judge is not None
            if completion.from_cache and completion.key in recorded:
                return
            await self._record_completion(episode_id, None, "judge", self._judge, completion)

        judge = None
        if self._judge is not None:
            judge = self._client(self._judge, ticket, role="judge", first=True)
        try:
            verdict = await score_conversation(
                task=self._stage.task(cell.domain, cell.task_id),
                transcript=transcript,
                termination=termination,
                worlds=self._worlds_of(cell),
                judge=judge,
                origin=self._origin(cell, "judge"),
                on_completion=on_completion,
            )
        except RunStopping:
            return
        except Exception as error:  # noqa: BLE001 - recorded; a resume scores again
            self._stop_run_on(error)
            await self._store.event(
                "score_failed",
                {"errors": [msgspec.to_builtins(leaf) for leaf in leaf_errors(error)]},
                cell_id=cell_id,
            )
            return
        if verdict.state is ScoreState.JUDGE_PENDING:
            await self._store.event("judge_failed", {"reason": verdict.note}, cell_id=cell_id)
            before = await self._store.verdict(episode_id)
            if before is not None and before.state is ScoreState.SCORED:
                return
        await self._keep(episode_id, verdict)

    async def _keep(self, episode_id: int, verdict: Verdict) -> None:
        await self._store.add_verdict(episode_id, verdict, grading_version=GRADING_VERSION)
        if succeeded(verdict.reward):
            self._progress.solved += 1

    def _client(self, model: str, ticket: Ticket, *, role: str, first: bool = False) -> ModelClient:
        return TicketClient(
            self._clients[model],
            lane=self._endpoint_of[model],
            role=role,
            ticket=ticket,
            breakers=self._breakers,
            first=first,
        )

    async def _converse(self, episode_id: int, cell: Cell, ticket: Ticket) -> EpisodeResult:
        task = self._stage.task(cell.domain, cell.task_id)
        domain = self._stage.domains[cell.domain]
        solo = cell.mode is Mode.NO_USER
        environment = domain.environment(solo=solo)
        history = parse_history(task.message_history)
        environment.prepare(task.initial_state, history)
        call_ids = {
            call.id for item in history if isinstance(item, Message) for call in item.tool_calls
        }
        agent = make_agent(
            mode=cell.mode,
            client=self._client(cell.agent, ticket, role="agent"),
            task=task,
            policy=domain.policy(cell.policy, solo=solo),
            environment=environment,
            origin=self._origin(cell, "agent"),
            before=self._control.check,
            call_ids=call_ids,
        )
        user = None
        if not solo:
            user = make_user(
                client=self._client(cell.user, ticket, role="user"),
                task=task,
                environment=environment,
                origin=self._origin(cell, "user"),
                standing_orders=self._stage.standing_orders[cell.domain],
                before=self._control.check,
                call_ids=call_ids,
            )

        async def observe(happening: Happening) -> None:
            if happening.completion is not None and happening.actor is not None:
                role = happening.actor.value
                model = cell.agent if role == "agent" else cell.user
                await self._record_completion(
                    episode_id, happening.index, role, model, happening.completion
                )
            if happening.item is not None:
                await self._store.add_item(episode_id, happening.index, happening.item)
            if happening.completion is not None:
                await self._turnstile.go()

        return await play(
            environment=environment,
            agent=agent,
            user=user,
            limits=self._limits,
            history=history,
            observe=observe,
            clock=time.monotonic,
        )

    def _worlds_of(self, cell: Cell) -> Worlds:
        key = (cell.domain, solo := cell.mode is Mode.NO_USER)
        if key not in self._worlds:
            domain = self._stage.domains[cell.domain]
            self._worlds[key] = Worlds(lambda: domain.environment(solo=solo))
        return self._worlds[key]

    def _origin(self, cell: Cell, role: str) -> Origin:
        return Origin(
            role=role,
            domain=cell.domain,
            task_id=cell.task_id,
            trial=cell.trial,
            seed=self._seed,
            agent=cell.agent,
            user=cell.user,
            mode=cell.mode.value,
            policy=cell.policy,
            retriever=cell.retriever,
        )

    async def _record_completion(
        self, episode_id: int, idx: int | None, role: str, model: str, completion: Completion
    ) -> None:
        self._progress.add_completion(episode_id, self._endpoint_of[model], completion)
        self._silent.discard(episode_id)
        if completion.system_fingerprint == SIMULATED_FINGERPRINT:
            await self._store.mark_simulated()
        await self._store.add_completion(
            CompletionRow(
                episode_id=episode_id,
                idx=idx,
                role=role,
                endpoint=self._endpoint_of[model],
                model=model,
                usage=completion.usage,
                cost=completion.cost,
                model_answered=completion.model,
                provider=completion.provider,
                system_fingerprint=completion.system_fingerprint,
                request_id=completion.request_id,
                key=completion.key,
                from_cache=completion.from_cache,
                paid=completion.payer == self._payer,
                attempts=completion.attempts,
                latency_s=completion.latency_s,
                finish_reason=completion.finish_reason,
            )
        )

    async def _fail(self, episode_id: int, started: float, error: Exception) -> None:
        if isinstance(error, BudgetExhausted):
            self._spent_caps.note(error, first_call=episode_id in self._silent)
            await self._leave(episode_id, started, Outcome.BUDGET_STOPPED, error)
            return
        self._stop_run_on(error)
        self._progress.add_failure()
        await self._leave(episode_id, started, Outcome.INFRA_FAILED, error)

    def _stop_run_on(self, error: Exception) -> None:
        if isinstance(error, BudgetExhausted):
            self._spent_caps.note(error, first_call=False)
            return
        if classify(error) is Consequence.STOP_RUN:
            self._control.stop(stop_reason(error), error)

    async def _finish(self, episode_id: int, started: float, result: EpisodeResult) -> None:
        await self._store.end_episode(
            EpisodeEnd(
                episode_id=episode_id,
                outcome=Outcome.FINISHED,
                termination=result.termination,
                failure=result.failure,
                steps=result.steps,
                num_errors=result.errors,
                duration_s=time.monotonic() - started,
            )
        )

    async def _leave(
        self, episode_id: int, started: float, outcome: Outcome, error: BaseException
    ) -> None:
        with self._control.storing():
            await self._store.end_episode(
                EpisodeEnd(
                    episode_id=episode_id,
                    outcome=outcome,
                    duration_s=time.monotonic() - started,
                    errors=leaf_errors(error),
                )
            )


def stop_reason(error: BaseException) -> StopReason:
    """Why a run stops on an error that stops it."""
    match error:
        case BudgetExhausted():
            return StopReason.BUDGET
        case _:
            return StopReason.STORAGE
