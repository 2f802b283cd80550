"""The do-nothing baseline: which tasks are solved by an agent that only listens."""

from __future__ import annotations

from tauasync.environment.domain import Domain
from tauasync.environment.history import parse_history
from tauasync.evaluator.reward import score, succeeded
from tauasync.evaluator.verdict import ScoreState
from tauasync.evaluator.world import Worlds
from tauasync.task import Task
from tauasync.types import GREETING, STOP, Message, Termination, Transcript


def solved_by_doing_nothing(domain: Domain, task: Task) -> bool | None:
    """Whether a user who leaves at once leaves a solved task behind; None where a judge decides."""
    history = parse_history(task.message_history)
    opening: Transcript = history or (Message(role="assistant", content=GREETING),)
    verdict = score(
        task=task,
        transcript=(*opening, Message(role="user", content=STOP)),
        termination=Termination.USER_STOP,
        worlds=Worlds(domain.environment),
    )
    return None if verdict.state is ScoreState.JUDGE_PENDING else succeeded(verdict.reward)
