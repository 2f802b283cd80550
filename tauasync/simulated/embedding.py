"""Hashed word vectors: equal texts get equal vectors, texts that share words near ones.

They know nothing of meaning; results with them compare with no published ones.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from typing import Any

from tauasync.simulated.reading import model_of
from tauasync.simulated.wire import CHARS_PER_TOKEN, Refusal

DIMENSIONS = 64
MAX_DIMENSIONS = 3072
MAX_INPUTS = 2048

_WORD = re.compile(r"\w+")


def embedding_body(body: dict[str, Any]) -> dict[str, Any]:
    """The answer to an embeddings request.

    Raises:
        Refusal: input, dimensions or format that cannot be served.
    """
    texts = _inputs(body.get("input"))
    dimensions = body.get("dimensions", DIMENSIONS)
    if not isinstance(dimensions, int) or not 1 <= dimensions <= MAX_DIMENSIONS:
        raise Refusal(f"`dimensions` must be from 1 to {MAX_DIMENSIONS}", param="dimensions")
    encoding = body.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise Refusal("`encoding_format` must be float or base64", param="encoding_format")
    tokens = sum(math.ceil(len(text) / CHARS_PER_TOKEN) for text in texts)
    return {
        "object": "list",
        "model": model_of(body),
        "data": [
            {"object": "embedding", "index": index, "embedding": _encoded(vector, encoding)}
            for index, vector in enumerate(embed(text, dimensions) for text in texts)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A unit vector of `dimensions` numbers."""
    vector = [0.0] * dimensions
    for word in _WORD.findall(text.lower()) or [text]:
        hashed = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
        number = int.from_bytes(hashed, "big")
        vector[(number >> 1) % dimensions] += 1.0 if number & 1 else -1.0
    norm = math.sqrt(math.fsum(value * value for value in vector))
    if norm == 0.0:  # words that cancelled out
        vector[0] = norm = 1.0
    return [value / norm for value in vector]


def _inputs(given: object) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or len(texts) > MAX_INPUTS:
        raise Refusal(f"`input` must be a text or 1 to {MAX_INPUTS} texts", param="input")
    if not all(isinstance(text, str) and text for text in texts):
        raise Refusal("every `input` must be a non-empty text", param="input")
    return texts


def _encoded(vector: list[float], encoding: str) -> list[float] | str:
    if encoding == "float":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
