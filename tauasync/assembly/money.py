"""The budget of a sweep: caps from the configuration, spending from the run file."""

from __future__ import annotations

from typing import Any

from anyio import to_thread

from tauasync.assembly.models import OpenModels
from tauasync.assembly.prices import price_of
from tauasync.config.schema import RunConfig
from tauasync.endpoint.cache import AnswerCache
from tauasync.endpoint.ledger import Amount
from tauasync.endpoint.model import BOUNDS_RAISED
from tauasync.errors import BudgetExhausted
from tauasync.scheduler.budget import Cap
from tauasync.scheduler.ledger import RunLedger
from tauasync.scheduler.spent import SpentCaps
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tauasync.store.views import OpenReservation, Spending

LENGTHS_LOOKED_AT = 20_000
"""Latest completions from which the lengths of answers are learned when a run goes on."""


async def open_ledger(
    config: RunConfig, store: RunStore, cache: AnswerCache, *, run_id: str
) -> RunLedger:
    """The ledger of a session, with all that earlier ones have spent.

    What a dead session left open is decided first, and written down.

    Args:
        run_id: as the cache knows who paid.
    """
    await _decide_open(config, store, cache, run_id)
    models = {
        name: Cap(micro_usd=own.micro_usd, tokens=own.tokens)
        for name, own in config.budget.models.items()
    }
    ledger = RunLedger(
        Cap(micro_usd=config.budget.micro_usd, tokens=config.budget.tokens),
        models,
        journal=store.journal,
        first_number=store.journal.first_number,
    )
    for row in await to_thread.run_sync(_spending, store):
        ledger.add_spent(row.model, Amount(micro_usd=row.total, tokens=row.total_tokens))
    return ledger


async def prepare_models(models: OpenModels, ledger: RunLedger, store: RunStore) -> None:
    """Tell a capped session what the run file knows: unpriced answers, lengths of answers."""
    if not ledger.is_capped:
        return
    unpriced, lengths, raised = await to_thread.run_sync(_answers, store)
    for facts in raised:
        if (client := models.clients.get(str(facts.get("model")))) is not None:
            client.bounds.restore(facts)
    for name, usage in unpriced:
        client = models.clients.get(name)
        if client is not None and client.price is not None:
            # Paid before its price was known; its tokens are counted already.
            ledger.add_spent(name, Amount(micro_usd=client.price.cost(usage), tokens=0))
    for (name, role), tokens in lengths.items():
        if name in models.clients:
            models.clients[name].remember_lengths(role, tokens)


async def spent_before(config: RunConfig, store: RunStore) -> SpentCaps:
    """The caps that had been reached when the last session ended, if they are still the same."""
    caps = SpentCaps()
    last = await to_thread.run_sync(_last_end, store)
    if last is None or last.get("budget") != budget_record(config):
        return caps
    for name in last.get("spent_caps", ()):
        whose = "the budget" if name is None else f"the budget of model {name}"
        flag = "--budget-usd" if name is None else f"--set budget.models.{name}.usd"
        caps.note(
            BudgetExhausted(
                f"{whose} was reached by an earlier session and is the same: nothing is sent\n"
                f"  to go on, raise it: tauasync resume RUN {flag}=MORE",
                model=name,
            ),
            first_call=True,
        )
    return caps


def budget_record(config: RunConfig) -> dict[str, Any]:
    """What decides whether a call fits, for the record of a session's end; empty without a cap."""
    caps = config.budget.model_dump(mode="json", exclude_none=True)
    if not any(caps.values()):
        return {}
    return {
        "caps": caps,
        "prices": {name: price_of(config, name) for name in config.role_models},
    }


async def _decide_open(config: RunConfig, store: RunStore, cache: AnswerCache, run_id: str) -> None:
    """Find out what became of the requests a dead session had sent.

    An answer that this run paid for lies in the cache: its cost is known, and the row waits for
    the completion to be recorded. All else may have been billed and is charged as it stands.
    """
    found = charged = 0
    for row in await to_thread.run_sync(_open_reservations, store):
        cost = await _cost_in_cache(config, cache, row, run_id)
        if cost is None:
            charged += 1
            bound = Amount(micro_usd=row.micro_usd, tokens=row.tokens)
            store.journal.charge(row.number, row.key, row.model, bound)
        elif row.recorded:
            # The run has a completion of that key already, and none will come for this bill.
            found += 1
            store.journal.charge(row.number, row.key, row.model, cost)
        else:
            found += 1
            store.journal.amend(row.number, cost)
    if found or charged:
        # Returns when it is committed, and what was noted before it with it.
        await store.event("requests_decided", {"answered": found, "charged": charged})


async def _cost_in_cache(
    config: RunConfig, cache: AnswerCache, row: OpenReservation, run_id: str
) -> Amount | None:
    model = config.models.get(row.model)
    if model is None:
        return None
    answer = await cache.get(row.key, model.model)
    if answer is None or answer.payer != run_id or answer.usage.estimated:
        return None
    usage = answer.usage
    return Amount(micro_usd=answer.cost, tokens=max(0, usage.prompt) + max(0, usage.completion))


def _open_reservations(store: RunStore) -> list[OpenReservation]:
    with RunReader(store.path) as reader:
        return reader.open_reservations()


def _spending(store: RunStore) -> list[Spending]:
    with RunReader(store.path) as reader:
        return reader.spending()


def _answers(
    store: RunStore,
) -> tuple[list[Any], dict[tuple[str, str], list[int]], list[dict[str, Any]]]:
    with RunReader(store.path) as reader:
        raised = [event.data for event in reader.events_of(BOUNDS_RAISED)]
        return list(reader.unpriced()), reader.answer_lengths(LENGTHS_LOOKED_AT), raised


def _last_end(store: RunStore) -> dict[str, Any] | None:
    with RunReader(store.path) as reader:
        event = reader.last_event("sweep_ended")
        return None if event is None else event.data
