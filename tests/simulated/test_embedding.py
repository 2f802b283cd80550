"""Hashed word vectors."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.simulated.app import EmbeddedEndpoint
from tauasync.simulated.embedding import embed
from tests.simulated.lamp import find
from tests.simulated.player import client_of
from tests.simulated.requests import check_error


async def post(**body: Any) -> httpx.Response:
    async with client_of(EmbeddedEndpoint(find)) as client:
        return await client.post("/embeddings", json={"model": "hashed-words", **body})


@given(st.text(min_size=1), st.integers(1, 128))
def test_every_text_has_a_unit_vector(text: str, dimensions: int) -> None:
    vector = embed(text, dimensions)
    assert len(vector) == dimensions
    assert math.isclose(math.hypot(*vector), 1.0)
    assert vector == embed(text, dimensions)


def test_shared_words_bring_texts_near() -> None:
    def near(left: str, right: str) -> float:
        return sum(a * b for a, b in zip(embed(left, 512), embed(right, 512), strict=True))

    query = "how to reset the lamp"
    assert near(query, "Reset the lamp with its button") > near(query, "Our opening hours")


async def test_vectors_come_in_order_and_in_both_encodings() -> None:
    texts = ["one", "two", "three"]
    plain = (await post(input=texts, dimensions=16)).json()
    packed = (await post(input=texts, dimensions=16, encoding_format="base64")).json()
    assert [item["index"] for item in plain["data"]] == [0, 1, 2]
    for left, right in zip(plain["data"], packed["data"], strict=True):
        unpacked = struct.unpack("<16f", base64.b64decode(right["embedding"]))
        assert unpacked == pytest.approx(left["embedding"])
    assert plain["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
    assert (await post(input="one", dimensions=16)).json()["data"][0] == plain["data"][0]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "`input`"),
        ({"input": []}, "`input`"),
        ({"input": ["a", ""]}, "`input`"),
        ({"input": [1, 2]}, "`input`"),
        ({"input": "a", "dimensions": 0}, "`dimensions`"),
        ({"input": "a", "encoding_format": "int8"}, "`encoding_format`"),
        ({"input": "a", "model": None}, "`model`"),
    ],
)
async def test_what_cannot_be_embedded_is_refused(body: dict[str, Any], word: str) -> None:
    check_error(await post(**body), 400, word)
