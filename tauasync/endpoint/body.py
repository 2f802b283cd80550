"""The body of an answer, unpacked, within a bound for one and a bound for all together.

A server may send without end, or a small body that unpacks to a thousand times its size. What
is beyond the bound is never held, and few bodies may be large at the same time, so that the
memory of a process does not depend on what its endpoints send.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import anyio
import httpx

LARGE_BYTES = 2**20
"""From here on a body is large; completions are a few kilobytes."""

LARGE_AT_ONCE = 2
"""Large bodies an endpoint's connections read at the same time; the others wait their turn."""

_STEP_BYTES = 2**18
_ANY_HEADER = 47
"""Window bits of zlib for what begins as gzip, or as deflate does."""


class UnreadableBody(Exception):
    """The body is too large, damaged, or packed in a way nobody asked for."""


class BodyReader:
    """Reads the bodies of one endpoint's answers.

    Args:
        limit_bytes: the largest body, unpacked.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._large = anyio.Semaphore(LARGE_AT_ONCE)

    async def read(self, response: httpx.Response) -> bytes:
        """The whole body.

        Raises:
            UnreadableBody: it cannot be had.
            httpx.HTTPError: the connection failed.
        """
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._check(_length(response))
        unpack = _unpacker(response.headers.get("content-encoding", ""))
        body = bytearray()
        waited = False
        try:
            async for chunk in response.stream:
                for part in unpack(chunk):
                    self._check(len(body) + len(part))
                    if not waited and len(body) + len(part) > LARGE_BYTES:
                        await self._large.acquire()
                        waited = True
                    body += part
            if not unpack.is_whole:
                raise UnreadableBody("the packed answer is cut short")
            return bytes(body)
        finally:
            if waited:
                self._large.release()

    def _check(self, size_bytes: int) -> None:
        if size_bytes > self._limit:
            raise UnreadableBody(f"the answer is larger than {self._limit} bytes")


class _Identity:
    is_whole = True

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk


class _Zipped:
    """Unpacks gzip and deflate in steps of a bounded size."""

    def __init__(self) -> None:
        self._unzip = zlib.decompressobj(_ANY_HEADER)
        self._begun = False

    @property
    def is_whole(self) -> bool:
        return self._unzip.eof or not self._begun

    def __call__(self, chunk: bytes) -> Iterator[bytes]:
        self._begun = True
        try:
            while chunk and not self._unzip.eof:
                yield self._unzip.decompress(chunk, _STEP_BYTES)
                chunk = self._unzip.unconsumed_tail
        except zlib.error as error:
            raise UnreadableBody(f"the packed answer is damaged: {error}") from error


def _unpacker(encoding: str) -> _Identity | _Zipped:
    match encoding.strip().lower():
        case "" | "identity":
            return _Identity()
        case "gzip" | "x-gzip" | "deflate":
            return _Zipped()
        case _:
            raise UnreadableBody(
                f"the answer is packed as '{encoding[:40]}', which is not asked for"
            )


def _length(response: httpx.Response) -> int:
    told = response.headers.get("content-length", "")
    return int(told) if told.isdecimal() and len(told) < 16 else 0
