"""What must hold between keys: names that exist, lists without repeats, kinds that fit.

The checks read plain tables and pass over whatever has the wrong type, so that they can
report together with the problems of single keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tauasync.config.problems import KeyPath, Problem, did_you_mean
from tauasync.jsonio import canonical

_EMBEDDED_ONLY = ("latency_s", "latency_spread", "faults")
_NETWORK_ONLY = ("api_key_env", "headers")
_UNIQUE_LISTS = ("tasks", "modes", "policies", "retrievers")


def cross_checks(raw: Mapping[str, Any]) -> list[Problem]:
    """Every disagreement between keys of a configuration read as plain tables."""
    endpoints, models = _table(raw, "endpoints"), _table(raw, "models")
    return [
        *_endpoint_kinds(endpoints),
        *_model_endpoints(models, endpoints),
        *_roles(_table(raw, "roles"), models),
        *_capped_models(_table(_table(raw, "budget"), "models"), models),
        *_domains(raw),
    ]


def _endpoint_kinds(endpoints: Mapping[str, Any]) -> Iterator[Problem]:
    for name, table in endpoints.items():
        if not isinstance(table, dict):
            continue
        path: KeyPath = ("endpoints", name)
        if table.get("kind", "openai") == "embedded":
            for key in _NETWORK_ONLY:
                if table.get(key):
                    yield Problem(
                        path=(*path, key),
                        message="not used by an embedded endpoint; take it out, or set kind to "
                        '"openai"',
                    )
            continue
        if table.get("kind", "openai") != "openai":
            continue
        if table.get("base_url") is None:
            yield Problem(
                path=(*path, "base_url"),
                message='missing; an endpoint of kind "openai" needs its address, such as '
                '"https://api.openai.com/v1"',
            )
        for key in _EMBEDDED_ONLY:
            if table.get(key):
                yield Problem(
                    path=(*path, key), message='only an endpoint of kind "embedded" has this'
                )


def _model_endpoints(models: Mapping[str, Any], endpoints: Mapping[str, Any]) -> Iterator[Problem]:
    for name, table in models.items():
        endpoint = table.get("endpoint") if isinstance(table, dict) else None
        if isinstance(endpoint, str) and endpoint not in endpoints:
            yield Problem(
                path=("models", name, "endpoint"),
                message=f"there is no endpoint '{endpoint}'; {did_you_mean(endpoint, endpoints)}",
            )


def _roles(roles: Mapping[str, Any], models: Mapping[str, Any]) -> Iterator[Problem]:
    agents = roles.get("agents")
    named: list[tuple[KeyPath, Any]] = []
    if isinstance(agents, list | tuple):
        named = [(("roles", "agents", index), name) for index, name in enumerate(agents)]
        yield from _repeats(("roles", "agents"), agents)
    named += [(("roles", role), roles.get(role)) for role in ("user", "judge")]
    for path, name in named:
        if isinstance(name, str) and name not in models:
            yield Problem(
                path=path, message=f"there is no model '{name}'; {did_you_mean(name, models)}"
            )


def _capped_models(caps: Mapping[str, Any], models: Mapping[str, Any]) -> Iterator[Problem]:
    for name in caps:
        if name not in models:
            yield Problem(
                path=("budget", "models", name),
                message=f"there is no model '{name}'; {did_you_mean(name, models)}",
            )


def _domains(raw: Mapping[str, Any]) -> Iterator[Problem]:
    domains = raw.get("domains")
    if not isinstance(domains, list | tuple):
        return
    seen: dict[bytes, int] = {}
    sources: dict[str, tuple[int, str]] = {}
    for index, table in enumerate(domains):
        if not isinstance(table, dict):
            continue
        for key in _UNIQUE_LISTS:
            values = table.get(key)
            if isinstance(values, list | tuple):
                yield from _repeats(("domains", index, key), values)
        yield from _domain_source(raw, index, table, sources)
        first = seen.setdefault(_identity(table), index)
        if first != index:
            yield Problem(
                path=("domains", index), message=f"the same as domains.{first}; take one out"
            )


def _domain_source(
    raw: Mapping[str, Any],
    index: int,
    table: Mapping[str, Any],
    sources: dict[str, tuple[int, str]],
) -> Iterator[Problem]:
    name, source = table.get("name"), table.get("source", "project")
    path: KeyPath = ("domains", index, "source")
    if source == "upstream" and not _table(raw, "run").get("data_dir"):
        yield Problem(
            path=path,
            message="upstream data needs its folder: give --data-dir, the variable "
            "TAUASYNC_TAU2_DATA, or run.data_dir",
        )
    if not isinstance(name, str) or not isinstance(source, str):
        return
    first, other = sources.setdefault(name, (index, source))
    if other != source:
        yield Problem(
            path=path,
            message=f"'{name}' is taken from '{other}' in domains.{first} and from '{source}' "
            "here; their results would be pooled: make two runs",
        )


def _repeats(path: KeyPath, values: list[Any] | tuple[Any, ...]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if not isinstance(value, str):
            continue
        if value in seen:
            yield Problem(path=(*path, index), message=f"'{value}' is listed twice; take one out")
        seen.add(value)


def _identity(table: Mapping[str, Any]) -> bytes:
    try:
        return canonical({key: value for key, value in table.items() if value is not None})
    except TypeError:
        return repr(table).encode()


def _table(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = raw.get(key)
    return value if isinstance(value, dict) else {}
