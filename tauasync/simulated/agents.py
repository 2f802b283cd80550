"""The embedded agents: `oracle` plays the reference solution, `noisy:p` sometimes, `silent` never.

Of `noisy:p` the expected result is known in closed form: with independent episodes that
succeed with probability p, pass^k = C(c,k)/C(n,k) has the expectation p^k (arXiv 2406.12045),
except on tasks that an idle agent already passes, where it is 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from tauasync.endpoint.completion import Origin
from tauasync.simulated.phrases import give_up, small_talk
from tauasync.simulated.script import Script, done, is_alone, next_answer, script_of
from tauasync.simulated.wire import Answer, Ask, Refusal
from tauasync.task import Task

KEPT_SCRIPTS = 10_000
"""Scripts kept at most; a task's script is made once, not once a turn."""


class ScriptShelf:
    """Scripts by task, made on first use."""

    def __init__(self) -> None:
        self._scripts: dict[tuple[str, str, bool], tuple[Task, Script]] = {}

    def __len__(self) -> int:
        return len(self._scripts)

    def get(self, origin: Origin, task: Task) -> Script:
        """The script of a task in an origin's mode."""
        key = (origin.domain, origin.task_id, is_alone(origin.mode))
        found = self._scripts.get(key)
        if found is not None and found[0] is task:
            return found[1]
        if key not in self._scripts and len(self._scripts) >= KEPT_SCRIPTS:
            self._scripts.pop(next(iter(self._scripts)))
        script = script_of(task, alone=key[2])
        self._scripts[key] = (task, script)
        return script


def oracle(shelf: ScriptShelf) -> Callable[[Ask], Answer]:
    """The agent that plays the reference solution."""
    return lambda ask: next_answer(shelf.get(ask.origin, ask.task), ask.messages)


def noisy(probability: float, shelf: ScriptShelf) -> Callable[[Ask], Answer]:
    """The agent that plays an episode like the oracle with a probability, else gives up."""

    def play(ask: Ask) -> Answer:
        if plays(probability, ask.model, ask.origin):
            return next_answer(shelf.get(ask.origin, ask.task), ask.messages)
        return done() if is_alone(ask.origin.mode) else Answer(content=give_up())

    return play


def silent(ask: Ask) -> Answer:
    """The do-nothing baseline: polite, and never acts."""
    return done() if is_alone(ask.origin.mode) else Answer(content=small_talk())


def probability_in(model: str) -> float:
    """The p of `noisy:p`.

    Raises:
        Refusal: it is no number in [0, 1].
    """
    text = model.partition(":")[2]
    try:
        probability = float(text)
    except ValueError:
        probability = -1.0
    if not 0.0 <= probability <= 1.0:
        raise Refusal(
            f"the model '{model}' needs a probability from 0 to 1, as in 'noisy:0.7'",
            status=404,
            code="model_not_found",
            param="model",
        )
    return probability


def plays(probability: float, model: str, origin: Origin) -> bool:
    """Whether an episode is one of those that succeed: a hash, so no order of play changes it."""
    facts = (
        str(origin.seed),
        origin.domain,
        origin.task_id,
        str(origin.trial),
        model,
        origin.mode,
        origin.policy,
    )
    drawn = hashlib.sha256("\x1f".join(facts).encode("utf-8", "replace")).digest()
    return int.from_bytes(drawn[:8], "big") < probability * 2.0**64
