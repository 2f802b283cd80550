"""Cache keys: everything that can change an answer, as one hash.

Two functions, named for what they are used for. The body that is hashed is the body that
is sent; the order of its keys does not matter, any other difference does.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from urllib.parse import urlsplit

from tauasync.jsonio import Json, canonical

SCHEMA = 1
"""Part of every key. Raise it when the meaning of a cached value changes: old rows then miss."""

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


def _digest(kind: str, base_url: str, model: str, body: Json, salt: str) -> str:
    head = canonical([SCHEMA, kind, normal_url(base_url), model, salt])
    digest = hashlib.sha256(head)
    digest.update(b"\n")
    digest.update(canonical(body))
    return digest.hexdigest()
