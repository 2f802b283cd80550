"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataOpt = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        readable=False,
        help="Folder of the upstream benchmark's data (holds `domains/`); "
        "also TAUASYNC_TAU2_DATA or run.data_dir.",
    ),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
