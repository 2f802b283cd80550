"""Cache keys: everything that can change an answer, as one hash.

Two functions, named for what they are used for. The body that is hashed is the body that
is sent; the order of its keys does not matter, any other difference does.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tauasync.jsonio import Json, canonical

SCHEMA = 1
"""Part of every key. Raise it when the meaning of a cached value changes: old rows then miss."""

_APART = frozenset({"model", "messages", "tools"})
"""What a body holds beside its settings."""

_DEFAULT_PORTS = {"http": 80, "https": 443}


def sampled_key(*, base_url: str, model: str, body: Json, salt: str) -> str:
    """Key of a sampled answer: equal requests of different trials stay independent.

    Args:
        base_url: the endpoint's address; notation (case, trailing slash) does not matter.
        model: the identifier on the wire.
        body: the JSON body sent.
        salt: what tells repetitions apart (seed, trial, resample index).

    Returns:
        64 hexadecimal digits.
    """
    return _digest("sampled", base_url, model, body, salt)


def deterministic_key(*, base_url: str, model: str, body: Json) -> str:
    """Key of an answer that only its request decides (embeddings, reranker); no salt."""
    return _digest("deterministic", base_url, model, body, "")


@lru_cache(maxsize=256)
def normal_url(url: str) -> str:
    """One notation for one address: lower-case host, no default port, no trailing slash."""
    parts = urlsplit(url.strip())
    host = (parts.hostname or "").lower()
    if ":" in host:
        host = f"[{host}]"
    scheme = parts.scheme.lower()
    if parts.port is not None and parts.port != _DEFAULT_PORTS.get(scheme):
        host = f"{host}:{parts.port}"
    query = f"?{parts.query}" if parts.query else ""
    return f"{scheme}://{host}{parts.path.rstrip('/')}{query}"


class KeyParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a key is made of, small enough to be kept with each answer.

    Attributes:
        schema: of the key.
        kind: "sampled" or "deterministic".
        address: of the endpoint, in one notation.
        settings: the body without its model, messages and tools.
        tools: sha256 hex of the tools; None without any.
        opening: sha256 hex chain of the first message, the system prompt.
        messages: how many there are.
        chain: sha256 hex chain of all messages.
    """

    schema: int
    kind: str
    address: str
    model: str
    salt: str
    settings: dict[str, Any]
    tools: str | None
    opening: str
    messages: int
    chain: str


def key_parts(*, base_url: str, model: str, body: Json, salt: str) -> KeyParts:
    """What the `sampled_key` of the same arguments is made of."""
    messages = body.get("messages", ())
    chain = opening = hashlib.sha256().digest()
    for number, message in enumerate(messages):
        chain = hashlib.sha256(chain + canonical(message)).digest()
        opening = opening if number else chain
    return KeyParts(
        schema=SCHEMA,
        kind="sampled",
        address=normal_url(base_url),
        model=model,
        salt=salt,
        settings={name: body[name] for name in body if name not in _APART},
        tools=hashlib.sha256(canonical(body["tools"])).hexdigest() if "tools" in body else None,
        opening=opening.hex(),
        messages=len(messages),
        chain=chain.hex(),
    )


def _digest(kind: str, base_url: str, model: str, body: Json, salt: str) -> str:
    head = canonical([SCHEMA, kind, normal_url(base_url), model, salt])
    digest = hashlib.sha256(head)
    digest.update(b"\n")
    digest.update(canonical(body))
    return digest.hexdigest()
