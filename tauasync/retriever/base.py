"""What a retriever is: built once a run over one corpus, opened once an episode."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from tauasync.task import Task
from tauasync.types import ToolCall, ToolSpec


class Hit(msgspec.Struct, frozen=True):
    """A document that a search found.

    Attributes:
        document_id: of the corpus.
        score: the larger the better; what it measures is the search's own affair.
    """

    document_id: str
    score: float


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """One search of the knowledge base, as it is recorded.

    Attributes:
        kind: "bm25", "dense", "grep" or "terminal".
        query: as the agent wrote it; a terminal's command line.
        hits: best first; empty for a terminal, which shows documents in part.
        from_cache: whether the ranking had been computed before.
    """

    kind: str
    query: str
    hits: tuple[Hit, ...] = ()
    from_cache: bool = False


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a search tool answers.

    Attributes:
        text: for the agent.
        error: whether the call itself was wrong (unknown argument, wrong type).
        search: what to record; None where nothing was searched.
    """

    text: str
    error: bool = False
    search: Search | None = None


class Desk(Protocol):
    """The search tools of one episode."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Shown to the agent after the domain's own; the same tuple for every episode."""
        ...

    async def call(self, call: ToolCall) -> Finding:
        """Run one of the tools; whatever the agent wrote wrongly becomes an error text.

        Raises:
            EndpointError, BudgetExhausted: an embedding or a rating could not be had.
        """
        ...


class Retriever(Protocol):
    """One way to the documents, shared by all episodes of a run."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides its answers, as JSON: kind, corpus hash, parameters, embedder, backend."""
        ...

    def policy(self, task: Task) -> str:
        """The agent's policy text: guidelines, how to search, or the documents themselves."""
        ...

    def open(self) -> AbstractAsyncContextManager[Desk]:
        """The desk of one episode."""
        ...
