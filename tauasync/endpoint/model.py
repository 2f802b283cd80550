"""A model that can be asked.

One completion: request → bytes → key → cache? → reservation → lane → HTTP → validation →
cache commit → answer. From the bytes of an answer to its place in the cache there is no
point at which a cancellation could lose it.

Near a cap the answer's limit may be lowered. The key stays that of the request as configured:
an answer that ended by itself below the lower limit is a sample of the same distribution, since
the limit only cuts off; one that was cut off is never used, nor kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import anyio
import anyio.to_thread
import msgspec

from tauasync.endpoint.answer import Answer, parse_answer
from tauasync.endpoint.bounds import Bounds
from tauasync.endpoint.cache import AnswerCache
from tauasync.endpoint.call import Caller
from tauasync.endpoint.completion import (
    IDEMPOTENCY_HEADER,
    ORIGIN_HEADER,
    ChatRequest,
    Completion,
    Origin,
    salt_of,
)
from tauasync.endpoint.errand import Errand, ShorterRequest
from tauasync.endpoint.failure import Facts
from tauasync.endpoint.frame import Frame, Heads
from tauasync.endpoint.history import EncodedHistory, Openings
from tauasync.endpoint.http import Reply
from tauasync.endpoint.keys import SAMPLED, KeyParts, framed_key, key_frame, normal_url
from tauasync.endpoint.ledger import Amount
from tauasync.endpoint.lengths import AnswerLengths
from tauasync.endpoint.price import Price
from tauasync.endpoint.retry import CallClock
from tauasync.endpoint.spec import EndpointSpec, ModelSpec
from tauasync.endpoint.tokens import PER_REQUEST, TokenCounter
from tauasync.endpoint.wire import Body, body_head, max_answer_tokens, settings_of, whole_body
from tauasync.jsonio import encode_struct
from tauasync.types import MicroUsd, Usage

_PLAIN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
"""What a header carries as it is."""

LARGE_CHARS = 500_000
"""A turn that adds so much is encoded in a worker thread."""
FIRST_GUESS_TOKENS = 512
"""Length of an answer assumed for the lane before any has come; then the longest recent one."""
_REMEMBERED_ANSWERS = 64
OWN_LIMIT_SHARE = 0.9
"""An answer cut off with less than this share of the limit sent may have met one of the provider's
own."""

KNOWN_TOKENIZER_SAFETY = 1.1
OTHER_TOKENIZER_SAFETY = 1.5
ESTIMATE_SAFETY = 2.0
"""Factors from counted to billed prompt tokens in a bound: for models whose tokenizer is at
hand, for other models, for counts estimated by size. Bills that exceed them raise them."""
BOUNDS_RAISED = "bounds_raised"
"""The event that tells of such a bill."""

OnEvent = Callable[[str, Mapping[str, Any]], None]
_KNOWN_TOKENIZERS = ("gpt-", "chatgpt-", "o1", "o3", "o4", "ft:gpt-")


class _Prepared(NamedTuple):
    """A request in its encoded form."""

    frame: Frame
    history: EncodedHistory
    key: str

    def parts(self) -> KeyParts:
        """What the key is made of."""
        history = self.history
        return msgspec.structs.replace(
            self.frame.parts,
            opening=history.opening.hex(),
            messages=len(history.fragments),
            chain=history.chain.hex(),
        )

    def content(self, changes: Body | None = None) -> bytes:
        """The body to send.

        Args:
            changes: settings that differ from what was asked for.
        """
        head = self.frame.head
        if changes:
            tools = self.frame.tools
            head = body_head({**self.frame.settings, **changes}, tools and tools.sent)
        return whole_body(head, self.history.fragments)


class EndpointModel:
    """One model of an open endpoint; satisfies `ModelClient`.

    Args:
        price: None where nobody knows it.
        counter: of prompt tokens.
        payer: the run that pays, kept with each answer in the cache.
        on_event: told when bills turn out higher than was thought possible.
    """

    def __init__(
        self,
        endpoint: EndpointSpec,
        spec: ModelSpec,
        *,
        caller: Caller,
        cache: AnswerCache,
        price: Price | None,
        counter: TokenCounter,
        payer: str,
        on_event: OnEvent | None = None,
    ) -> None:
        self.spec = spec
        self.endpoint = endpoint
        self.price = price
        self._caller = caller
        self._cache = cache
        self._counter = counter
        self._payer = payer
        self._url = f"{endpoint.base_url.rstrip('/')}/chat/completions"
        self._on_event = on_event
        self.bounds = Bounds(factor=_safety_of(spec.model, counter), window=self._window)
        self._heads = Heads()
        self._openings: Openings = {}
        self._answers: deque[int] = deque(maxlen=_REMEMBERED_ANSWERS)
        self._lengths = AnswerLengths()

    @property
    def name(self) -> str:
        """The model's name in the configuration."""
        return self.spec.name

    @property
    def context_window(self) -> int | None:
        """Tokens that fit a request and its answer; None where unknown."""
        return self.spec.context_window

    @property
    def sends_back_extra(self) -> bool:
        """Whether opaque fields of tool calls are to be returned in the history."""
        return self.spec.profile.send_back_extra

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Sampling parameters sent with every request."""
        return self.spec.parameters

    def count_tokens(self, request: ChatRequest) -> int:
        """Prompt tokens of a request as far as they can be counted here."""
        history = self._history(request)
        if history.uncounted:
            history.count(self._counter.messages(history.uncounted))
        return PER_REQUEST + history.tokens + self._counter.tools(request.tools)

    def remember_lengths(self, role: str, tokens: Iterable[int]) -> None:
        """Take note of the answers of earlier sessions, the oldest first."""
        self._lengths.extend(role, tokens)

    async def complete(self, request: ChatRequest, origin: Origin, *, order: int = 0) -> Completion:
        """Ask, or find the answer that was paid for before.

        Args:
            order: when the conversation was opened; the oldest is served first.

        Raises:
            EndpointError: the call failed; see `tauasync.errors`.
            BudgetExhausted: the next request could exceed the cap, so it was not sent.
            StorageError: the cache failed.
            ConfigError: the request holds a parameter this model cannot be sent.
        """
        began = anyio.current_time()
        prepared = await self._prepare(request, origin)
        found = await self._cache.get(prepared.key, self.spec.model)
        if found is not None:
            return msgspec.structs.replace(
                found,
                from_cache=True,
                attempts=0,
                latency_s=0.0,
                waited_s=anyio.current_time() - began,
                cost=self._cost(found.usage),
            )
        return await self._fetch(request, prepared, cache=self._cache, order=order, began=began)

    async def complete_uncached(self, request: ChatRequest, origin: Origin) -> Completion:
        """Ask in any case, and keep nothing; for probing. Raises as `complete` does."""
        began = anyio.current_time()
        prepared = await self._prepare(request, origin)
        return await self._fetch(request, prepared, cache=None, order=0, began=began)

    async def _prepare(self, request: ChatRequest, origin: Origin) -> _Prepared:
        history = self._history(request)
        if _chars(history.new) > LARGE_CHARS:
            return await anyio.to_thread.run_sync(self._encode, request, origin, history)
        return self._encode(request, origin, history)

    def _history(self, request: ChatRequest) -> EncodedHistory:
        history = EncodedHistory() if request.history is None else request.history
        history.follow(request.messages, self)
        return history

    def _encode(self, request: ChatRequest, origin: Origin, history: EncodedHistory) -> _Prepared:
        frame = history.frame
        if frame is None or not frame.fits(request, origin):
            frame = history.frame = self._frame(request, origin)
        history.encode(self.spec.profile, self._openings)
        return _Prepared(frame, history, framed_key(frame.hash, history.chain))

    def _frame(self, request: ChatRequest, origin: Origin) -> Frame:
        settings = settings_of(request, self.spec, origin)
        tools = self._heads.tools(request.tools)
        parts = KeyParts(
            kind=SAMPLED,
            address=normal_url(self.endpoint.base_url),
            model=self.spec.model,
            salt=self._salt(origin),
            settings=settings,
            tools=tools and tools.digest.hex(),
        )
        return Frame(
            offered=request.tools,
            tool_choice=request.tool_choice,
            parameters=request.parameters,
            origin=origin,
            settings=settings,
            tools=tools,
            head=self._heads.head(settings, tools),
            parts=parts,
            hash=key_frame(parts),
            headers=self._headers(origin),
        )

    def _salt(self, origin: Origin) -> str:
        return salt_of(origin, kind=self.endpoint.kind)

    async def _fetch(
        self,
        request: ChatRequest,
        prepared: _Prepared,
        *,
        cache: AnswerCache | None,
        order: int,
        began: float,
    ) -> Completion:
        frame, history, key = prepared
        if uncounted := history.uncounted:
            history.count(await self._counter.messages_unblocking(uncounted))
        prompt = PER_REQUEST + history.tokens + self._counter.tools(request.tools)
        longest = max_answer_tokens(frame.settings)
        parts = prepared.parts()

        def read(reply: Reply, facts: Facts, limit: int | None) -> Completion:
            allowed = longest if limit is None else limit
            return self._read(reply, facts, prompt, allowed, frame.origin.role)

        cuts: list[int] = []

        def is_cut(completion: Completion, limit: int) -> bool:
            tokens = completion.usage.completion
            if completion.finish_reason != "length":
                # One that just fills the limit is in doubt, so it is not used either. A longer one
                # shows that the limit is not heeded, and ended by itself.
                cut = tokens == limit or (tokens > limit and completion.finish_reason is None)
            else:
                # As long as the one before, with a higher limit: it is the provider who cuts.
                own = tokens < OWN_LIMIT_SHARE * limit
                cut = not (own and cuts and tokens <= 1.1 * cuts[-1])
            if cut:
                cuts.append(tokens)
                self._lengths.add_cut(frame.origin.role, limit)
            return cut

        async def commit(completion: Completion, clock: CallClock) -> Completion:
            mine = msgspec.structs.replace(
                completion,
                cost=self._cost(completion.usage),
                attempts=clock.attempts,
                latency_s=anyio.current_time() - clock.first_sent_at,
                key=key,
                payer=self._payer,
            )
            stands = mine
            if cache is not None:
                stands = await cache.put(
                    key, self.spec.model, mine, received_at=clock.answered_at, parts=parts
                )
            waited_s = anyio.current_time() - began - clock.answer_s
            if stands is mine:
                return msgspec.structs.replace(mine, waited_s=waited_s)
            # Another call with the same key was first: its answer counts, this bill does too.
            return msgspec.structs.replace(
                stands,
                usage=mine.usage,
                cost=mine.cost,
                attempts=mine.attempts,
                latency_s=mine.latency_s,
                waited_s=waited_s,
                payer=mine.payer,
            )

        return await self._caller.run(
            Errand(
                model=self.spec.name,
                url=self._url,
                content=prepared.content(),
                headers=self._headers_of(frame, key),
                key=key,
                tokens=self.bounds.likely_prompt(prompt)
                + (longest or max(self._answers, default=FIRST_GUESS_TOKENS)),
                order=order,
                bound=self._bound(prompt, self._longest(prompt, longest)),
                read=read,
                cost_of=lambda completion: self._used(completion.usage),
                cost_of_usage=lambda usage: self._billed(usage, prompt),
                commit=commit,
                shorter=self._shortening(prepared, prompt, longest),
                is_sure=lambda completion: not completion.usage.estimated,
                is_cut=is_cut,
            )
        )

    def _shortening(
        self, prepared: _Prepared, prompt: int, longest: int | None
    ) -> Callable[[int], Sequence[ShorterRequest]]:
        """How a request would be sent with shorter answers; worked out only where it is asked."""
        field = self.spec.profile.max_tokens_field

        def request(limit: int) -> ShorterRequest:
            return ShorterRequest(
                limit=limit,
                bound=self._bound(prompt, limit),
                content=lambda: prepared.content({field: limit}),
                # Not the same request to the endpoint, so not the same key to it either.
                headers=self._headers_of(prepared.frame, f"{prepared.key}-{limit}"),
            )

        def shorter(too_short: int) -> Sequence[ShorterRequest]:
            whole = self._longest(prompt, longest)
            if whole is None or field in self.spec.profile.refused:
                return ()
            limits = self._lengths.limits(prepared.frame.origin.role, whole, too_short=too_short)
            return [request(limit) for limit in limits]

        return shorter

    def _read(
        self, reply: Reply, facts: Facts, counted: int, limit: int | None, role: str
    ) -> Completion:
        answer = parse_answer(
            headers=reply.headers,
            body=reply.body,
            facts=facts,
            strip_think=self.spec.profile.strip_think,
        )
        usage = self._usage(answer, counted)
        if not usage.estimated:
            self._answers.append(usage.completion)
            self._lengths.add(role, usage.completion)
            if self.bounds.billed(counted, usage, limit):
                self._tell_bounds(counted, usage, limit)
        return msgspec.structs.replace(answer.completion, usage=usage)

    def _usage(self, answer: Answer, counted: int) -> Usage:
        """What the endpoint reported; estimated where it left a half out, or it cannot be."""
        reported = answer.reported
        usage = reported.whole() or Usage()
        prompt_can_be, answer_can_be = self.bounds.is_plausible(counted, usage)
        knows_prompt = prompt_can_be and reported.prompt is not None
        knows_answer = answer_can_be and reported.completion is not None
        if knows_prompt and knows_answer and usage.completion:
            return usage
        seen = self._count_answer(answer.completion)
        if knows_prompt and knows_answer and not seen:
            return usage
        return Usage(
            prompt=usage.prompt if knows_prompt else counted,
            cached=usage.cached if knows_prompt else 0,
            cache_write=usage.cache_write if knows_prompt else 0,
            completion=max(usage.completion, seen) if knows_answer else seen,
            reasoning=usage.reasoning if knows_answer else 0,
            estimated=True,
        )

    def _tell_bounds(self, counted: int, usage: Usage, limit: int | None) -> None:
        if self._on_event is None:
            return
        self._on_event(
            BOUNDS_RAISED,
            {
                "endpoint": self.endpoint.name,
                "model": self.name,
                "counted": counted,
                "prompt": usage.prompt,
                "limit": limit,
                "completion": usage.completion,
                **self.bounds.facts(),
            },
        )

    def _count_answer(self, completion: Completion) -> int:
        texts = [completion.content or "", completion.reasoning or ""]
        for call in completion.tool_calls:
            texts += [call.name, call.arguments]
        return sum(self._counter.text(text) for text in texts)

    def _headers(self, origin: Origin) -> dict[str, str]:
        if self.endpoint.kind != "embedded":
            return {}
        return {ORIGIN_HEADER: quote(encode_struct(origin), safe=_PLAIN)}

    def _headers_of(self, frame: Frame, key: str) -> Mapping[str, str]:
        if not self.endpoint.sends_idempotency_key:
            return frame.headers
        return {**frame.headers, IDEMPOTENCY_HEADER: key}

    def _cost(self, usage: Usage) -> MicroUsd | None:
        return self.price.cost(usage) if self.price is not None else None

    def _used(self, usage: Usage) -> Amount:
        return Amount(micro_usd=self._cost(usage), tokens=usage.prompt + usage.completion)

    def _billed(self, usage: Usage, counted: int) -> Amount | None:
        """What a failed request used, by the endpoint's account; None where that cannot be."""
        return self._used(usage) if all(self.bounds.is_plausible(counted, usage)) else None

    @property
    def _window(self) -> int | None:
        """Tokens that fit a request and its answer, as far as anybody knows."""
        window = self.spec.context_window
        return self.price.context_window if window is None and self.price is not None else window

    def _longest(self, prompt: int, longest: int | None) -> int | None:
        """The longest answer: by the parameters, else what the context window leaves."""
        if longest is not None:
            return longest
        window = self._window
        return None if window is None else max(1, window - prompt)

    def _bound(self, prompt: int, longest: int | None) -> Amount:
        """The most one request can use; without any bound on its answer that is not known."""
        prompt_bound = self.bounds.prompt(prompt)
        if longest is None:
            return Amount(micro_usd=None, tokens=prompt_bound)
        longest = self.bounds.answer(longest)
        micro_usd = None
        if self.price is not None:
            micro_usd = self.price.bound(prompt_tokens=prompt_bound, completion_tokens=longest)
        return Amount(micro_usd=micro_usd, tokens=prompt_bound + longest)


def _safety_of(model: str, counter: TokenCounter) -> float:
    if counter.estimated:
        return ESTIMATE_SAFETY
    known = model.lower().rsplit("/", 1)[-1].startswith(_KNOWN_TOKENIZERS)
    return KNOWN_TOKENIZER_SAFETY if known else OTHER_TOKENIZER_SAFETY


def _chars(messages: Sequence[Mapping[str, Any]]) -> int:
    return sum(
        len(content) for message in messages if isinstance(content := message.get("content"), str)
    )
