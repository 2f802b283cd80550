"""The environment of one episode: agent side ⊗ user side, kept in step after every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from tauasync.environment.history import paired_calls
from tauasync.environment.render import render
from tauasync.environment.tool import Tool
from tauasync.environment.toolkit import Toolkit
from tauasync.errors import DataError, TauasyncError
from tauasync.jsonio import loads
from tauasync.task import EnvAssertion, HelperCall, InitialState
from tauasync.types import (
    Requestor,
    ToolCall,
    ToolMessage,
    ToolSpec,
    Transcript,
    TranscriptItem,
)

MALFORMED = "Error: the arguments are not a JSON object"
"""How the answer to a call begins whose arguments could not be read."""

PREVIEW_CHARS = 200
"""How much of malformed arguments is shown back to the model."""

A = TypeVar("A", bound=Toolkit[Any])
U = TypeVar("U", bound=Toolkit[Any])


class Environment(Generic[A, U]):
    """Two toolkits and the rule that keeps their databases in step.

    Args:
        agent: the agent's toolkit.
        user: the user's toolkit, None in domains where the user has no tools.
        sync: run after every successful call and every helper.
        solo: whether the agent holds the user's tools too (mode no-user).
        patch_joins_sides: whether a task's data patch leaves both sides on the patched
            database; the benchmark does so everywhere, which only suits sides that share
            one anyway (see docs/parity.md, M1).
    """

    def __init__(
        self,
        *,
        agent: A,
        user: U | None,
        sync: Callable[[A, U], None] | None = None,
        solo: bool = False,
        patch_joins_sides: bool = False,
    ) -> None:
        self.agent = agent
        self.user = user
        self.solo = solo
        self._sync = sync
        self._joins = patch_joins_sides or (user is not None and user.database is agent.database)
        if solo and user is not None and (shared := agent.tools.keys() & user.tools.keys()):
            raise DataError(f"solo play needs distinct tool names; both sides have {shared}")
        self.sync()

    # ---- what the models see

    @property
    def agent_tools(self) -> tuple[ToolSpec, ...]:
        """The tools shown to the agent."""
        if self.solo and self.user is not None:
            return self.agent.shown + self.user.shown
        return self.agent.shown

    def user_tools(self, only: Sequence[str] | None = None) -> tuple[ToolSpec, ...]:
        """The tools shown to the user, in the order of `only` where a task restricts them."""
        if self.user is None or self.solo:
            return ()
        if only is None:
            return self.user.shown
        return tuple(self.user.tools[name].spec for name in only if name in self.user.tools)

    # ---- playing

    def call(self, call: ToolCall) -> ToolMessage:
        """Run one tool call; every failure becomes an error result, never an exception.

        State changed before a failure stays changed, as in the benchmark.
        """
        if call.malformed is not None:
            preview = call.malformed[:PREVIEW_CHARS]
            return _answer(call, f"{MALFORMED}: {preview}", error=True)
        try:
            result = self._dispatch(call.requestor, call.name, call.arguments)
            self.sync()
            return _answer(call, render(result), error=False)
        except Exception as error:  # noqa: BLE001 - a failed tool is an answer to the model
            return _answer(call, f"Error: {error}", error=True)

    def sync(self) -> None:
        """Bring both databases in step."""
        if self._sync is not None and self.user is not None:
            self._sync(self.agent, self.user)

    def _dispatch(self, requestor: Requestor, name: str, arguments: dict[str, Any]) -> Any:
        if requestor == "user":
            if self.solo:
                raise LookupError("user calls are not possible when the agent plays alone")
            if self.user is None:
                raise LookupError("User tools not available")
            return self.user.use(name, arguments)
        if self.solo and self.user is not None and name in self.user.tools:
            return self.user.use(name, arguments)
        return self.agent.use(name, arguments)

    # ---- setting the scene, checking the end

    def prepare(self, state: InitialState | None, history: Iterable[TranscriptItem] = ()) -> None:
        """Bring the world into a task's initial state, then replay a recorded conversation.

        Raises:
            DataError: the task's data, helper calls or history do not fit the environment.
        """
        if state is not None:
            self._patch(state)
            for helper in state.initialization_actions or ():
                self._set_scene(helper)
        self.replay(tuple(history), strict=True)
        self._settle("initial state")

    def _patch(self, state: InitialState) -> None:
        data = state.initialization_data
        if data is None:
            return
        if data.agent_data is not None:
            patched = self.agent.database.merged(data.agent_data, source="initialization_data")
            self.agent.attach(patched)
            if self.user is not None and self._joins:
                self.user.attach(patched)
        if data.user_data is not None:
            if self.user is None:
                raise DataError("initialization_data.user_data: this domain has no user side")
            patched = self.user.database.merged(data.user_data, source="initialization_data")
            self.user.attach(patched)
            if self._joins:
                self.agent.attach(patched)
        self._settle("initialization_data")

    def _set_scene(self, helper: HelperCall) -> None:
        try:
            self.run_helper(helper)
        except TauasyncError:
            raise
        except Exception as error:
            raise DataError(f"initialization action '{helper.func_name}': {error}") from error

    def _settle(self, what: str) -> None:
        """Sync, where a failure is the fault of the part of the task that `what` names."""
        try:
            self.sync()
        except Exception as error:
            raise DataError(f"{what}: {error}") from error

    def run_helper(self, call: HelperCall | EnvAssertion) -> Any:
        """Run a task's function on its side, then sync; returns what the function returned.

        Raises:
            DataError: the side does not exist.
            Exception: whatever the function raises.
        """
        side = self.agent if call.env_type == "assistant" else self.user
        if side is None:
            raise DataError(f"'{call.func_name}' is for the user's side, which this domain lacks")
        result = side.run(call.func_name, call.arguments)
        self.sync()
        return result

    def holds(self, assertion: EnvAssertion) -> bool:
        """Whether an assertion about the present state is true.

        Raises:
            DataError: the function did not answer with a boolean.
        """
        result = self.run_helper(assertion)
        if not isinstance(result, bool):
            raise DataError(f"assertion '{assertion.func_name}' returned {result!r}, no boolean")
        return result == assertion.assert_value

    def replay(self, transcript: Transcript, *, strict: bool) -> list[str]:
        """Run the mutating calls of a recorded conversation again.

        Args:
            strict: raise on an answer that differs from the recorded one. Scoring passes
                False: state decides there, not the wording of an answer.

        Returns:
            What differed, one line each.

        Raises:
            DataError: a call without its answer (a dangling last turn is tolerated), or in
                strict mode a differing answer.
        """
        notes: list[str] = []
        for call, recorded in paired_calls(transcript):
            known = self._lookup(call)
            if known is None or not known.mutates or call.malformed is not None:
                continue
            answer = self.call(call)
            if not _same_content(answer.content, recorded.content):
                note = f"{call.name}: recorded {recorded.content!r}, now {answer.content!r}"
                if strict:
                    raise DataError(f"recorded conversation: {note}")
                notes.append(note)
        return notes

    def _lookup(self, call: ToolCall) -> Tool | None:
        found = self.agent.tools.get(call.name)
        if found is None and self.user is not None:
            found = self.user.tools.get(call.name)
        return found

    def reference_call(self, name: str, requestor: Requestor, arguments: dict[str, Any]) -> Any:
        """Run a reference action bare: no sync, no error envelope (how gold states are made).

        An agent that plays alone makes the user's calls too.
        """
        return self._dispatch("assistant" if self.solo else requestor, name, arguments)

    # ---- comparing

    @property
    def digests(self) -> tuple[str, str | None]:
        """Hashes of (agent database, user database)."""
        user = None if self.user is None else self.user.database.digest()
        return self.agent.database.digest(), user

    def same_state(self, other: Environment[A, U]) -> bool:
        """Whether both worlds are in equal state."""
        if not self.agent.database.same_state(other.agent.database):
            return False
        if self.user is None or other.user is None:
            return self.user is other.user
        return self.user.database.same_state(other.user.database)


def _answer(call: ToolCall, content: str, *, error: bool) -> ToolMessage:
    return ToolMessage(
        id=call.id, name=call.name, requestor=call.requestor, content=content, error=error
    )


def _same_content(left: str, right: str) -> bool:
    if left == right:
        return True
    try:
        return bool(loads(left) == loads(right))
    except ValueError:
        return False
