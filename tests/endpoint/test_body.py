"""Laws of reading a body: what was sent comes out, and nothing sent takes more than its bound."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.body import LARGE_AT_ONCE, LARGE_BYTES, BodyReader, UnreadableBody

MIB = 2**20


class Parts(httpx.AsyncByteStream):
    """A body in parts, as they come off the wire; `between` runs before each."""

    def __init__(self, parts: Sequence[bytes], between: Callable[[int], None] | None = None):
        self._parts = parts
        self._between = between

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for index, part in enumerate(self._parts):
            await anyio.lowlevel.checkpoint()
            if self._between is not None:
                self._between(index)
            yield part


def sent(*parts: bytes, encoding: str = "", **headers: str) -> httpx.Response:
    if encoding:
        headers["content-encoding"] = encoding
    return httpx.Response(200, headers=headers, stream=Parts(parts))


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "plain": ("", bytes),
    "identity": ("identity", bytes),
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
}


@pytest.mark.parametrize("how", PACKED)
@given(data=st.binary(max_size=3000), cuts=st.lists(st.integers(0, 3000), max_size=5))
async def test_what_was_sent_comes_out_however_it_is_packed_and_cut(
    how: str, data: bytes, cuts: list[int]
) -> None:
    encoding, pack = PACKED[how]
    packed = pack(data)
    edges = [0, *sorted(min(cut, len(packed)) for cut in cuts), len(packed)]
    parts = [packed[a:b] for a, b in pairwise(edges)]
    assert await BodyReader(MIB).read(sent(*parts, encoding=encoding)) == data


async def test_an_answer_beyond_the_bound_is_refused_before_it_is_held() -> None:
    bomb = gzip.compress(b" " * (256 * MIB))
    endless = [b"x" * 4096] * 1000
    bounded = BodyReader(2 * MIB)
    tracemalloc.start()
    try:
        for response in (
            sent(bomb, encoding="gzip"),
            sent(*endless),
            sent(b"never read", **{"content-length": str(10**12)}),
        ):
            with pytest.raises(UnreadableBody, match="larger than 2097152 bytes"):
                await bounded.read(response)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MIB


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (sent(gzip.compress(b"x" * 5000)[:-12], encoding="gzip"), "cut short"),
        (sent(gzip.compress(bytes(range(256)))[:60], b"junk" * 99, encoding="gzip"), "damaged"),
        (sent(b"{}", encoding="br"), "not asked for"),
    ],
)
async def test_a_damaged_or_unknown_packing_is_told(response: httpx.Response, words: str) -> None:
    with pytest.raises(UnreadableBody, match=words):
        await BodyReader(MIB).read(response)


async def test_few_bodies_are_large_at_the_same_time_and_all_are_read() -> None:
    reader = BodyReader(8 * MIB)
    held = [0] * 12
    most = 0

    async def read(which: int) -> None:
        def between(index: int) -> None:
            nonlocal most
            held[which] = index * MIB // 4
            most = max(most, sum(size > LARGE_BYTES for size in held))

        parts = Parts([b"y" * (MIB // 4)] * 12, between)
        assert len(await reader.read(httpx.Response(200, stream=parts))) == 3 * MIB
        held[which] = 0

    async with anyio.create_task_group() as group:
        for which in range(len(held)):
            group.start_soon(read, which)
    assert most == LARGE_AT_ONCE


async def test_a_cancelled_large_body_gives_its_turn_back() -> None:
    reader = BodyReader(8 * MIB)
    for _ in range(3 * LARGE_AT_ONCE):
        with anyio.move_on_after(0.01):
            stuck = Stuck([b"z" * (2 * MIB)])
            await reader.read(httpx.Response(200, stream=stuck))
    with anyio.fail_after(5):
        assert len(await reader.read(sent(b"z" * (2 * MIB)))) == 2 * MIB


class Stuck(Parts):
    """Sends its parts and then nothing, for ever."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in super().__aiter__():
            yield part
        await anyio.sleep_forever()
