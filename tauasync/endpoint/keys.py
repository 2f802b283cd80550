"""Cache keys: everything that can change an answer, as one hash.

Two functions, named for what they are used for. What is hashed is what is sent; the order
of the keys of an object does not matter, any other difference does. The canonical form,
with C(x) for JSON with sorted keys and without spaces, H for SHA-256 as 32 bytes, and
concatenation written as a blank:

    frame    C([SCHEMA, kind, address, model, salt]) "\\n" C(rest) "\\n" T "\\n"
    rest     the body without `messages` and `tools`
    T        H(C(tools)), empty where the body has none
    chain 0  H("")
    chain i  H(chain i-1  C(message i))
    key      H(frame  chain n) in hexadecimal

A conversation only grows, so each turn hashes what is new: the frame's hash and the chain's
end are kept, and neither the policy nor the tools nor earlier turns are hashed again.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from tauasync.jsonio import Json, canonical

if TYPE_CHECKING:
    from hashlib import _Hash

SCHEMA = 2
"""Part of every key. Raise it when the canonical form or the meaning of a cached value changes:
old rows then miss."""

SAMPLED = "sampled"
DETERMINISTIC = "deterministic"

CHAIN_START = hashlib.sha256().digest()
"""The chain of no messages."""

_APART = frozenset({"messages", "tools"})
"""What a body holds beside its settings."""

_DEFAULT_PORTS = {"http": 80, "https": 443}


class KeyParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a key is made of, small enough to be kept with each answer.

    Attributes:
        kind: `SAMPLED` or `DETERMINISTIC`.
        address: of the endpoint, in one notation.
        settings: the body without its messages and tools.
        tools: H(C(tools)) in hexadecimal; None without any.
        opening: the chain of the first message, the system prompt, in hexadecimal.
        messages: how many there are.
        chain: that of all messages, in hexadecimal.
    """

    schema: int = SCHEMA
    kind: str
    address: str
    model: str
    salt: str
    settings: dict[str, Any]
    tools: str | None
    opening: str = ""
    messages: int = 0
    chain: str = ""

    @property
    def key(self) -> str:
        """The key, made anew.

        Raises:
            ValueError: a digest is none.
        """
        return framed_key(key_frame(self), bytes.fromhex(self.chain))


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
    return _key(SAMPLED, base_url, model, body, salt)


def deterministic_key(*, base_url: str, model: str, body: Json) -> str:
    """Key of an answer that only its request decides (embeddings, reranker); no salt."""
    return _key(DETERMINISTIC, base_url, model, body, "")


def key_frame(parts: KeyParts) -> _Hash:
    """The hash of all that stays as it is over a conversation: of the parts but the messages."""
    head = [parts.schema, parts.kind, parts.address, parts.model, parts.salt]
    frame = hashlib.sha256(canonical(head))
    tools = b"" if parts.tools is None else bytes.fromhex(parts.tools)
    frame.update(b"\n%b\n%b\n" % (canonical(parts.settings), tools))
    return frame


def chained(chain: bytes, message: bytes) -> bytes:
    """The chain that one more message, as canonical JSON, makes of a chain."""
    return hashlib.sha256(chain + message).digest()


def framed_key(frame: _Hash, chain: bytes) -> str:
    """The key of the request that a frame and a chain of messages make."""
    whole = frame.copy()
    whole.update(chain)
    return whole.hexdigest()


def digest(data: bytes) -> bytes:
    """The hash of canonical JSON, where the key holds that in its place."""
    return hashlib.sha256(data).digest()


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


def key_parts(*, kind: str = SAMPLED, base_url: str, model: str, body: Json, salt: str) -> KeyParts:
    """What the key of a request is made of."""
    chain = opening = CHAIN_START
    messages = body.get("messages", ())
    for number, message in enumerate(messages):
        chain = chained(chain, canonical(message))
        opening = opening if number else chain
    return KeyParts(
        kind=kind,
        address=normal_url(base_url),
        model=model,
        salt=salt,
        settings={name: value for name, value in body.items() if name not in _APART},
        tools=digest(canonical(body["tools"])).hex() if "tools" in body else None,
        opening=opening.hex(),
        messages=len(messages),
        chain=chain.hex(),
    )


def _key(kind: str, base_url: str, model: str, body: Json, salt: str) -> str:
    return key_parts(kind=kind, base_url=base_url, model=model, body=body, salt=salt).key
