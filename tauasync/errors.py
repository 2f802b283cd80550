"""The tree of failures, and the one function that says what each means for the run.

    TauasyncError
    ├── ConfigError            the user's configuration or command line
    ├── DataError              domain data: a policy, database or task file
    ├── RunFileError           the run database
    │   ├── MissingRunError        there is none of that name
    │   ├── ForeignRunError        not a run, or damaged
    │   ├── NewerSchemaError       written by a newer tauasync
    │   ├── RunLockedError         another process owns it
    │   └── ResumeRefusedError     the configuration differs in what decides results
    ├── StorageError           disk full, read-only folder, unreadable cache
    ├── BudgetExhausted        the next call could exceed a cap, so it was not sent
    ├── JudgeError             the judge answered, but not with usable verdicts
    └── EndpointError          one call to a model
        ├── TransientError         may succeed if repeated
        │   ├── RateLimited
        │   ├── ServerError
        │   ├── TransportError         no or half an answer: DNS, reset, timeout
        │   ├── InvalidAnswer          an answer that breaks the protocol
        │   └── Doubted                a refusal for good, by a model that had answered
        ├── ContextOverflow        the request does not fit the context window
        ├── ContentFiltered        the provider refused the content
        ├── RequestRejected        a 4xx that no repetition mends
        └── EndpointUnusable       nothing sent to this endpoint can succeed
            ├── QuotaExhausted
            ├── AuthenticationFailed
            └── ModelNotFound

Errors carry facts, not prose: what was asked, what came back, what to do.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tauasync.types import Usage

E = TypeVar("E", bound=Exception)


class TauasyncError(Exception):
    """Base of every failure this package raises on purpose."""


class ConfigError(TauasyncError):
    """The configuration cannot be used.

    Attributes:
        message: what is wrong.
        source: the file (or flag) it came from, where known.
        key: the dotted key at fault, where there is one.
        hint: how to mend it.
    """

    def __init__(
        self, message: str, *, source: Path | str | None = None, key: str = "", hint: str = ""
    ) -> None:
        self.message = message
        self.source = source
        self.key = key
        self.hint = hint
        where = ": ".join(str(part) for part in (source, key) if part)
        text = f"{where}: {message}" if where else message
        super().__init__(f"{text}\n  {hint}" if hint else text)


class DataError(TauasyncError):
    """Domain data is missing, unreadable or inconsistent; the message names the file."""


class RunFileError(TauasyncError):
    """The run database cannot be used as asked; the message names it."""


class MissingRunError(RunFileError):
    """There is no run database of that name; the message lists those beside it."""


class ForeignRunError(RunFileError):
    """The file is not a run database, or is damaged."""


class NewerSchemaError(RunFileError):
    """The run database was written by a newer version."""


class RunLockedError(RunFileError):
    """Another live process owns the run database."""


class ResumeRefusedError(RunFileError):
    """The configuration differs from the run's in keys that decide results."""


class StorageError(TauasyncError):
    """Writing to disk failed; nothing acknowledged is lost."""


class BudgetExhausted(TauasyncError):
    """The reservation of the next call does not fit what is left of a cap.

    Attributes:
        model: whose cap it is; None for the run's.
        left_share: the part of that cap which is not spent, in [0, 1].
    """

    def __init__(self, message: str, *, model: str | None = None, left_share: float = 0.0) -> None:
        self.model = model
        self.left_share = left_share
        super().__init__(message)


class JudgeError(TauasyncError):
    """The judge's answer holds no usable verdicts.

    Attributes:
        raw: the judge's text, kept so that it can be read later.
    """

    def __init__(self, message: str, *, raw: str | None) -> None:
        self.raw = raw
        super().__init__(message)


class EndpointError(TauasyncError):
    """A call to a model failed.

    Attributes:
        endpoint: the endpoint's name in the configuration.
        model: the model asked for; "" where the failure is the endpoint's as such.
        status: the HTTP status, or the code found in the body of a 200; None without answer.
        retry_after_s: how long the endpoint asked to wait, in seconds.
        request_id: the provider's id of the request.
        body: the start of the answer, keys redacted.
        attempts: how many times the call had been sent.
        sent_at, failed_at: when it was sent the last time, and when that failed, in seconds of
            the event loop's clock; None where nothing was sent.
        hint: how to mend it; the message ends with it.
        usage: the tokens that the endpoint says the failed request used; None where it is silent.
        is_answer: whether it came in place of an answer that had begun, so that it may be billed.
        is_json: whether what came back is JSON, as the API itself would say it.
        is_clear: whether it names the key or the model as what is wrong.
    """

    usage: Usage | None = None
    is_answer = False

    def __init__(
        self,
        message: str,
        *,
        endpoint: str,
        model: str,
        status: int | None = None,
        retry_after_s: float | None = None,
        request_id: str | None = None,
        body: str = "",
    ) -> None:
        self.message = message
        self.endpoint = endpoint
        self.model = model
        self.status = status
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.body = body
        self.attempts = 1
        self.sent_at: float | None = None
        self.failed_at: float | None = None
        self.hint = ""
        self.is_json = True
        self.is_clear = False
        super().__init__(message)

    def __str__(self) -> str:
        facts = [f"endpoint {self.endpoint}"]
        if self.model:
            facts.append(f"model {self.model}")
        if self.status is not None:
            facts.append(f"status {self.status}")
        if self.request_id:
            facts.append(f"request {self.request_id}")
        if self.attempts > 1:
            facts.append(f"{self.attempts} attempts")
        return f"{self.message} ({', '.join(facts)})"


def fresh(error: E) -> E:
    """The same failure, as an exception of its own.

    One exception raised in many tasks would gather all their tracebacks. What belongs to a single
    call (its attempts, the pause it was asked for) is not carried over.
    """
    if not isinstance(error, EndpointError):
        return type(error)(*error.args)
    made = type(error)(
        error.message,
        endpoint=error.endpoint,
        model=error.model,
        status=error.status,
        request_id=error.request_id,
        body=error.body,
    )
    made.hint = error.hint
    return made


class TransientError(EndpointError):
    """May succeed if repeated."""


class RateLimited(TransientError):
    """The endpoint asks for fewer requests or tokens.

    Attributes:
        is_rate: whether it says that a limit a minute was exceeded, and not how many at once.
    """

    is_rate: bool = False


class ServerError(TransientError):
    """The endpoint failed on its own side."""


class TransportError(TransientError):
    """No answer, or half of one."""


class InvalidAnswer(TransientError):
    """An answer that breaks the protocol: no JSON, no choices, nothing usable."""


class Doubted(TransientError):
    """A refusal that should be final, from a model that had answered: it may be a gateway's whim.

    Attributes:
        of_model: whether it says that nothing sent to the model can succeed.
    """

    of_model: bool = False


class ContextOverflow(EndpointError):
    """The request does not fit the model's context window."""


class ContentFiltered(EndpointError):
    """The provider refused to answer because of the content."""


class RequestRejected(EndpointError):
    """The endpoint rejects the request as such."""


class EndpointUnusable(EndpointError):
    """Nothing sent to this endpoint and model can succeed until someone acts."""


class QuotaExhausted(EndpointUnusable):
    """The account has no money or quota left."""


class AuthenticationFailed(EndpointUnusable):
    """The key is missing, wrong or not allowed."""


class ModelNotFound(EndpointUnusable):
    """The endpoint does not serve this model."""


class Consequence(Enum):
    """What a failure means for the work at hand."""

    RETRY = "retry"
    """Send the same request again, after a pause."""
    SHRINK = "shrink"
    """Make the request smaller, or end the episode as a context overflow."""
    END_EPISODE = "end episode"
    """The model failed: the episode is over and counts."""
    LEAVE_OPEN = "leave open"
    """The infrastructure failed: the cell stays open for a resume."""
    STOP_MODEL = "stop model"
    """Nothing more can be had from this model: what needs it stays open, the rest goes on."""
    STOP_RUN = "stop run"
    """Nothing further can succeed: stop cleanly with the cells open."""


def classify(error: BaseException) -> Consequence:
    """Say what a failure means; the only place where this is decided."""
    match error:
        case ContextOverflow():
            return Consequence.SHRINK
        case ContentFiltered():
            return Consequence.END_EPISODE
        case TransientError():
            return Consequence.RETRY
        case EndpointUnusable():
            return Consequence.STOP_MODEL
        case BudgetExhausted(model=None) | StorageError() | RunFileError():
            return Consequence.STOP_RUN
        case _:
            return Consequence.LEAVE_OPEN
