"""The commands and their flags; each command's work is imported only when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from tauasync import __version__
from tauasync.cli import leaving_at_once, was_interrupted
from tauasync.cli.cache_app import cache_app
from tauasync.cli.options import DataOpt, JsonOpt
from tauasync.errors import TauasyncError

app = typer.Typer(
    name="tauasync",
    help="Evaluate conversational agents on the tau-bench family: plan, run, resume, report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
tasks_app = typer.Typer(
    help="Look at the tasks of a domain.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(tasks_app, name="tasks")
app.add_typer(cache_app, name="cache")

# `readable=False` throughout: whoever opens a file says what is wrong with it, in the one form that
# all failures have.
ConfigArg = Annotated[
    Path, typer.Argument(metavar="CONFIG", readable=False, help="A TOML file; see configs/.")
]
RunArg = Annotated[
    Path,
    typer.Argument(metavar="RUN", readable=False, help="A run file, e.g. runs/demo.sqlite."),
]
SetOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override one key of the configuration (repeatable), e.g. --set run.trials=1.",
    ),
]
UsdOpt = Annotated[
    float | None,
    typer.Option(
        "--budget-usd",
        metavar="USD",
        help="The most the run may spend, earlier sessions included; short for --set budget.usd=.",
    ),
]
TokensOpt = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens",
        metavar="N",
        help="The most tokens the run may use, earlier sessions included.",
    ),
]
QuietOpt = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no report at the end.")
]
NoReportOpt = Annotated[bool, typer.Option("--quiet", "-q", help="No report at the end.")]


def _version(*, value: bool) -> None:
    if value:
        typer.echo(f"tauasync {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda value: _version(value=value),
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    del version


@app.command()
def run(
    config: ConfigArg,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="RUN",
            readable=False,
            help="The run file to create. Default: runs/NAME-DATE.",
        ),
    ] = None,
    budget_usd: UsdOpt = None,
    budget_tokens: TokensOpt = None,
    overrides: SetOpt = None,
    data_dir: DataOpt = None,
    quiet: QuietOpt = False,
) -> None:
    """Play a configuration's grid into a new run file, then report."""
    with leaving_at_once():
        from tauasync.cli.sweep import start

    raise typer.Exit(
        start(
            config,
            out=out,
            overrides=_with_budget(overrides, budget_usd, budget_tokens),
            data_dir=data_dir,
            quiet=quiet,
        )
    )


@app.command()
def resume(
    run_file: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", readable=False, help="A run file, e.g. runs/demo.sqlite."),
    ] = None,
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="CONFIG",
            readable=False,
            help="Take throughput, budget and key settings from this file; what decides results "
            "must be equal.",
        ),
    ] = None,
    budget_usd: UsdOpt = None,
    budget_tokens: TokensOpt = None,
    overrides: SetOpt = None,
    data_dir: DataOpt = None,
    quiet: QuietOpt = False,
) -> None:
    """Go on with a run: play what is open, score what is unscored."""
    with leaving_at_once():
        from tauasync.cli.sweep import go_on, offer_runs

    if run_file is None:
        raise typer.Exit(offer_runs())
    raise typer.Exit(
        go_on(
            run_file,
            config=config,
            overrides=_with_budget(overrides, budget_usd, budget_tokens),
            data_dir=data_dir,
            quiet=quiet,
        )
    )


def _with_budget(overrides: list[str] | None, usd: float | None, tokens: int | None) -> list[str]:
    """Overrides with the flags of the budget among them."""
    found = list(overrides or ())
    if usd is not None:
        found.append(f"budget.usd={usd!r}")
    if tokens is not None:
        found.append(f"budget.tokens={tokens}")
    return found


@app.command()
def rescore(
    run_file: RunArg,
    overrides: SetOpt = None,
    data_dir: DataOpt = None,
    quiet: NoReportOpt = False,
) -> None:
    """Score every finished conversation of a run again; none is played."""
    from tauasync.cli.rescore import rescore_run

    raise typer.Exit(
        rescore_run(run_file, overrides=overrides or [], data_dir=data_dir, quiet=quiet)
    )


@app.command()
def recost(
    run_file: RunArg,
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="CONFIG",
            readable=False,
            help="Take the models' prices from this file.",
        ),
    ] = None,
    overrides: SetOpt = None,
    data_dir: DataOpt = None,
    quiet: NoReportOpt = False,
) -> None:
    """Compute the costs of a run again, at present prices, from its recorded usage."""
    from tauasync.cli.recost import recost_run

    raise typer.Exit(
        recost_run(
            run_file, config=config, overrides=overrides or [], data_dir=data_dir, quiet=quiet
        )
    )


@app.command()
def plan(
    config: ConfigArg,
    *,
    budget_usd: UsdOpt = None,
    budget_tokens: TokensOpt = None,
    overrides: SetOpt = None,
    data_dir: DataOpt = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="RUN",
            readable=False,
            help="Tell it from this earlier run (repeatable). Default: what fits of runs/.",
        ),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Show the grid and the calls, tokens, cost and time to expect; nothing is sent."""
    from tauasync.cli.plan import show_plan

    raise typer.Exit(
        show_plan(
            config,
            overrides=_with_budget(overrides, budget_usd, budget_tokens),
            data_dir=data_dir,
            runs=runs or [],
            as_json=as_json,
        )
    )


@app.command()
def check(
    config: ConfigArg,
    overrides: SetOpt = None,
    data_dir: DataOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Send one tiny probe to every model of a configuration, a tool call included."""
    from tauasync.cli.check import probe_all

    raise typer.Exit(
        probe_all(config, overrides=overrides or [], data_dir=data_dir, as_json=as_json)
    )


@app.command()
def status(run_file: RunArg, as_json: JsonOpt = False) -> None:
    """Show how far a run is, while it runs or after."""
    from tauasync.cli.read import show_status

    raise typer.Exit(show_status(run_file, as_json=as_json))


@app.command()
def watch(
    run_file: RunArg,
    once: Annotated[bool, typer.Option("--once", help="Look only once.")] = False,
) -> None:
    """Watch a run from another terminal until it ends; nothing is written."""
    from tauasync.cli.watch import watch_run

    raise typer.Exit(watch_run(run_file, once=once))


@app.command()
def tune(
    run_file: RunArg,
    *,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint", metavar="NAME", help="Whose limits; needed where the run uses several."
        ),
    ] = None,
    max_in_flight: Annotated[
        int | None,
        typer.Option("--max-in-flight", min=1, metavar="N", help="Requests on the wire at once."),
    ] = None,
    requests_per_min: Annotated[
        float | None,
        typer.Option("--requests-per-min", min=0, metavar="N", help="0 takes the limit away."),
    ] = None,
    tokens_per_min: Annotated[
        float | None,
        typer.Option("--tokens-per-min", min=0, metavar="N", help="0 takes the limit away."),
    ] = None,
    open_episodes: Annotated[
        int | None,
        typer.Option(
            "--open-episodes",
            min=0,
            metavar="N",
            help="Conversations open at once, of the whole run; 0 takes the limit away.",
        ),
    ] = None,
) -> None:
    """Change the limits of a run while it is being played; the next session has its own."""
    from tauasync.cli.tune import tune_run

    raise typer.Exit(
        tune_run(
            run_file,
            endpoint=endpoint,
            max_in_flight=max_in_flight,
            requests_per_min=requests_per_min,
            tokens_per_min=tokens_per_min,
            open_episodes=open_episodes,
        )
    )


@app.command()
def report(run_file: RunArg, as_json: JsonOpt = False) -> None:
    """Report a run: pass^k with its denominators, cost, tokens, terminations, breakdowns."""
    from tauasync.cli.read import show_report

    raise typer.Exit(show_report(run_file, as_json=as_json))


@app.command()
def show(
    run_file: RunArg,
    cell: Annotated[
        str | None,
        typer.Argument(
            metavar="[CELL]",
            help="A cell's number, TASK_ID or TASK_ID:TRIAL; left out, cells are listed.",
        ),
    ] = None,
    unsolved: Annotated[
        bool, typer.Option("--unsolved", help="List only cells that are not solved.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Show one cell's conversation and verdict, or list the cells of a run."""
    from tauasync.cli.cells import list_cells
    from tauasync.cli.read import show_cell

    if cell is None:
        raise typer.Exit(list_cells(run_file, only_unsolved=unsolved, as_json=as_json))
    raise typer.Exit(show_cell(run_file, cell, as_json=as_json))


SourceOpt = Annotated[
    str, typer.Option("--source", metavar="project|upstream", help="Whose data to read.")
]


@tasks_app.command("list")
def tasks_list(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN")],
    split: Annotated[str | None, typer.Option("--split", help="Only this split.")] = None,
    source: SourceOpt = "project",
    data_dir: DataOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """List task ids of a domain, and its splits."""
    from tauasync.cli.tasks import list_tasks

    raise typer.Exit(
        list_tasks(domain, split=split, source=source, data_dir=data_dir, as_json=as_json)
    )


@tasks_app.command("show")
def tasks_show(
    domain: Annotated[str, typer.Argument(metavar="DOMAIN")],
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID")],
    source: SourceOpt = "project",
    data_dir: DataOpt = None,
) -> None:
    """Show one task as JSON."""
    from tauasync.cli.tasks import show_task

    raise typer.Exit(show_task(domain, task_id, source=source, data_dir=data_dir))


@app.command("simulate-endpoint")
def simulate_endpoint(
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="CONFIG",
            readable=False,
            help="Take domains and embedded limits from this file.",
        ),
    ] = None,
    overrides: SetOpt = None,
    data_dir: DataOpt = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")
    ] = 8199,
) -> None:
    """Serve the simulated models over HTTP, for load and kill tests."""
    from tauasync.cli.simulate import serve_endpoint

    raise typer.Exit(
        serve_endpoint(config, overrides=overrides or [], data_dir=data_dir, host=host, port=port)
    )


def run_app(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit; known failures become one message and their exit code.

    Args:
        arguments: the command line without the program; None for that of the process.
    """
    with leaving_at_once():
        from tauasync.cli.exit_codes import ExitCode
        from tauasync.cli.outlets import steady_output

    with steady_output() as outlets:
        code = _outcome(arguments)
        lost = outlets.lost()
        if lost is not None:
            print(f"error: output was lost: {lost.strerror or lost}", file=sys.stderr)
            code = code or ExitCode.STORAGE
    sys.exit(code)


def _outcome(arguments: list[str] | None) -> int:
    from tauasync.cli.exit_codes import ExitCode, exit_code_for, known_failures

    try:
        app(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else ExitCode.COMPLETE
    except (TauasyncError, OSError, BaseExceptionGroup) as error:
        # Many tasks may fail of one cause, which is told once.
        for message in dict.fromkeys(str(leaf) for leaf in known_failures(error)):
            print(f"error: {message}" if message else "interrupted", file=sys.stderr)
        code = exit_code_for(error)
        if code is ExitCode.UNEXPECTED:
            raise
        return code
    except BaseException as error:
        if not was_interrupted(error):
            raise
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    return ExitCode.COMPLETE
