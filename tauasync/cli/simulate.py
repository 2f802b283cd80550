"""`tauasync simulate-endpoint`: the simulated models over HTTP, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio

from tauasync.assembly.domains import Stage, open_domain
from tauasync.assembly.models import make_embedded
from tauasync.cli.exit_codes import ExitCode
from tauasync.config.load import blamed_on, load_config
from tauasync.config.schema import EndpointConfig
from tauasync.errors import ConfigError
from tauasync.simulated.server import serve


def serve_endpoint(
    config_path: Path | None,
    *,
    overrides: Sequence[str],
    data_dir: Path | None,
    host: str,
    port: int,
) -> int:
    """Serve until SIGTERM or Ctrl-C; prints the base URL when it accepts connections."""
    if config_path is None:
        if overrides:
            raise ConfigError("--set changes a configuration; name one with --config")
        name, entry, seed = "simulated", EndpointConfig(kind="embedded"), 0
        sources = {"telecom": ("project", ""), "mock": ("project", "")}
    else:
        config = load_config(config_path, overrides, data_dir=data_dir)
        data_dir, seed = config.run.data_dir, config.run.seed
        embedded = [item for item in config.endpoints.items() if item[1].kind == "embedded"]
        if not embedded:
            raise ConfigError('no endpoint has kind = "embedded"', source=config_path)
        name, entry = embedded[0]
        sources = {
            domain.name: (domain.source, f"domains.{index}.name")
            for index, domain in enumerate(config.domains)
        }
    with blamed_on(config_path or "", overrides):
        domains = {
            name: open_domain(name, source=source, data_dir=data_dir, key=key)
            for name, (source, key) in sources.items()
        }
    app = make_embedded(name, entry, Stage(domains=domains).task, seed=seed)

    def announce(url: str) -> None:
        print(f"listening on {url}", flush=True)

    anyio.run(lambda: serve(app, on_ready=announce, host=host, port=port))
    return ExitCode.COMPLETE
