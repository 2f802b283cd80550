"""The key and the headers of an endpoint, read from the environment when it is opened."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tauasync.endpoint.spec import EndpointSpec
from tauasync.errors import ConfigError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Credentials:
    """Headers that open the endpoint; shows no value in any text form.

    Attributes:
        headers: to be sent with every request.
        secrets: the values to keep out of stored and shown texts.
    """

    __slots__ = ("headers", "secrets")

    def __init__(self, headers: Mapping[str, str], secrets: tuple[str, ...]) -> None:
        self.headers = headers
        self.secrets = secrets

    def __repr__(self) -> str:
        return f"Credentials({', '.join(self.headers)})"


def read_credentials(spec: EndpointSpec, environ: Mapping[str, str]) -> Credentials:
    """Read the key and fill in the headers.

    Raises:
        ConfigError: a variable is not set, is empty, or holds what no header can carry.
    """
    headers: dict[str, str] = {}
    secrets: list[str] = []
    if spec.api_key_env is not None:
        key = _variable(spec.api_key_env, f"endpoints.{spec.name}.api_key_env", environ)
        headers["authorization"] = f"Bearer {key}"
        secrets.append(key)
    for name, value in spec.headers.items():
        where = f"endpoints.{spec.name}.headers.{name}"

        def fill(match: re.Match[str], where: str = where) -> str:
            secrets.append(_variable(match[1], where, environ))
            return secrets[-1]

        headers[name.lower()] = _REFERENCE.sub(fill, value)
    return Credentials(headers, tuple(dict.fromkeys(secrets)))


def _variable(name: str, key: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name, "").strip()
    if not value:
        state = "is empty" if name in environ else "is not set"
        raise ConfigError(
            f"the environment variable {name} {state}",
            key=key,
            hint=f"export {name}=... before the run, or name another variable",
        )
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(
            f"the environment variable {name} holds characters no HTTP header can carry",
            key=key,
            hint="look for a line break or a typographic quote in it",
        )
    return value
