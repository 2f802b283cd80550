"""The commands under `cache` and their flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauasync.cli.options import DataOpt, JsonOpt

cache_app = typer.Typer(
    help="Look after the response cache.", no_args_is_help=True, rich_markup_mode=None
)

CacheOpt = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", readable=False, help="The cache's folder (`cache.dir`)."),
]
RunsOpt = Annotated[
    Path,
    typer.Option(
        "--runs", metavar="DIR", readable=False, help="The folder of run files that use it."
    ),
]
_CACHE = Path("cache/responses")
_RUNS = Path("runs")


@cache_app.command("stats")
def cache_stats(folder: CacheOpt = _CACHE, runs: RunsOpt = _RUNS, as_json: JsonOpt = False) -> None:
    """Show what the cache holds: answers, size, money, by model, age and payer."""
    from tauasync.cli.cache import show_stats

    raise typer.Exit(show_stats(folder, runs=runs, as_json=as_json))


@cache_app.command("verify")
def cache_verify(folder: CacheOpt = _CACHE, as_json: JsonOpt = False) -> None:
    """Read every answer, and exit with 8 where one is damaged."""
    from tauasync.cli.cache import verify

    raise typer.Exit(verify(folder, as_json=as_json))


@cache_app.command("prune")
def cache_prune(
    *,
    folder: CacheOpt = _CACHE,
    runs: RunsOpt = _RUNS,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Only older ones: 30d, 12h, 2w."),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model", metavar="MODEL", help="Only of this model, by its name on the wire."
        ),
    ] = None,
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="Keep what any run of the folder has used.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove; else only say what would go.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take also what an unfinished run goes on from.")
    ] = False,
) -> None:
    """Remove answers; says what would go unless --yes is given."""
    from tauasync.cli.cache import prune

    raise typer.Exit(
        prune(
            folder,
            runs=runs,
            older_than=older_than,
            models=models or [],
            keep_runs=keep_runs,
            yes=yes,
            force=force,
        )
    )


@cache_app.command("explain")
def cache_explain(
    call: Annotated[
        str,
        typer.Argument(
            metavar="CALL", help="A key, or RUN:CELL:INDEX (the place in the transcript)."
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", readable=False, help="The cache's folder. Default: the run's."
        ),
    ] = None,
    data_dir: DataOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Show what a call's key is made of, whether the cache has it, and what differs if not."""
    from tauasync.cli.explain import explain

    raise typer.Exit(explain(call, folder=folder, data_dir=data_dir, as_json=as_json))
