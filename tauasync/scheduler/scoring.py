"""Scoring: the checks at once, the judge in calls of its own; never a second conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from tauasync.endpoint.completion import Completion, ModelClient, Origin
from tauasync.errors import EndpointError, JudgeError
from tauasync.evaluator.judge import judge_request, read_verdicts
from tauasync.evaluator.reward import score, with_judgement
from tauasync.evaluator.verdict import ScoreState, Verdict
from tauasync.evaluator.world import Worlds
from tauasync.task import Task
from tauasync.types import Termination, Transcript

JUDGE_TRIES = 3
"""How often a judge that answers without usable verdicts is asked anew before it is given up."""
MAX_JUDGE_SAMPLES = 1000
"""Answers of a judge looked at, those an earlier session had paid for in vain included."""

OnCompletion = Callable[[Completion], Awaitable[None]]


async def score_conversation(
    *,
    task: Task,
    transcript: Transcript,
    termination: Termination,
    worlds: Worlds,
    judge: ModelClient | None,
    origin: Origin,
    on_completion: OnCompletion,
) -> Verdict:
    """The verdict on a finished conversation.

    Where the judge cannot be had, the verdict comes back `judge_pending` with the reason in
    its note; a later resume asks again.

    Args:
        origin: the cell, with the role "judge".
        on_completion: told of each of the judge's answers.

    Raises:
        BudgetExhausted, RunStopping: nothing may be sent now; the verdict is still to be made.
        DataError: the task does not fit the domain.
    """
    verdict = score(task=task, transcript=transcript, termination=termination, worlds=worlds)
    criteria = task.evaluation_criteria
    if verdict.state is not ScoreState.JUDGE_PENDING or criteria is None:
        return verdict
    if judge is None:
        return msgspec.structs.replace(verdict, note="no model is configured to judge")
    try:
        return await _judged(
            verdict,
            assertions=criteria.nl_assertions or (),
            transcript=transcript,
            judge=judge,
            origin=origin,
            on_completion=on_completion,
        )
    except JudgeError as error:
        return msgspec.structs.replace(verdict, note=str(error), judge_raw=error.raw)
    except EndpointError as error:
        return msgspec.structs.replace(verdict, note=f"the judge could not be had: {error}")


async def _judged(
    verdict: Verdict,
    *,
    assertions: tuple[str, ...],
    transcript: Transcript,
    judge: ModelClient,
    origin: Origin,
    on_completion: OnCompletion,
) -> Verdict:
    request = judge_request(assertions, transcript)
    last: JudgeError | None = None
    asked = 0
    for resample in range(MAX_JUDGE_SAMPLES):
        completion = await judge.complete(
            request, msgspec.structs.replace(origin, resample=resample)
        )
        await on_completion(completion)
        try:
            judged = read_verdicts(completion.content, assertions)
        except JudgeError as error:
            last = error
            # Unusable answers are in the cache like any: they count for the session that paid
            # for them only, or a resume would never ask again.
            asked += not completion.from_cache
            if asked == JUDGE_TRIES:
                break
            continue
        return with_judgement(verdict, judged, raw=completion.content)
    assert last is not None
    raise last
