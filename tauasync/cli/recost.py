"""`tauasync recost`: the costs of a run made anew from its recorded usage."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from tauasync.assembly.recost import Recosted, recost, with_prices_of
from tauasync.assembly.run_file import config_for_resume
from tauasync.cli.exit_codes import ExitCode
from tauasync.cli.read import print_report
from tauasync.config.manifest import from_json
from tauasync.report.usage import cost
from tauasync.report.words import plain, usd
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore


def recost_run(
    path: Path,
    *,
    config: Path | None,
    overrides: Sequence[str],
    data_dir: Path | None,
    quiet: bool,
) -> int:
    """Price every completion of a run again; of a configuration only the prices are taken."""
    with RunReader(path) as reader:
        manifest = reader.manifest()
    new = config_for_resume(
        manifest, config=config, overrides=overrides, data_dir=data_dir, environ=os.environ
    )
    settings = with_prices_of(from_json(manifest.config), new)

    async def main() -> Recosted:
        async with RunStore.open(path) as store:
            return await recost(settings, store)

    done = anyio.run(main)
    if not quiet:
        print_report(path)
    print(
        f"priced {done.completions} completions again, {done.changed} changed; "
        f"paid: {usd(cost(*done.before))} -> {usd(cost(*done.after))}",
        file=sys.stderr,
    )
    if done.unknown:
        names = ", ".join(done.unknown)
        print(
            plain(
                f"no price is known for {names}; give one, as in "
                f"--set models.{done.unknown[0]}.price.input=USD "
                f"--set models.{done.unknown[0]}.price.output=USD (per million tokens)"
            ),
            file=sys.stderr,
        )
    return ExitCode.COMPLETE
