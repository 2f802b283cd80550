"""What a run that could not end says next: nothing that would be refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.command import call

NEW_RUN = "start a new run"


@pytest.fixture
def stranger() -> Iterator[str]:
    """A web server that is no model endpoint; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(405)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def advice(
    capsys: pytest.CaptureFixture[str], config: Path, *sets: str, code: int
) -> tuple[Path, str]:
    run = config.with_name("run.sqlite")
    overrides = [part for one in sets for part in ("--set", one)]
    got, told = call(capsys, "run", str(config), "--out", str(run), "--quiet", *overrides)
    assert got == code, told
    assert f"tauasync resume {run}" in told
    return run, told


def test_a_wrong_name_of_a_model_needs_a_new_run_and_it_is_said(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = "models.oracle.model=orakle"
    run, told = advice(capsys, config, wrong, code=5)
    assert NEW_RUN in told
    assert "models.oracle.model (orakle)" in told
    code, refusal = call(capsys, "resume", str(run), "--set", "models.oracle.model=oracle")
    assert code == 4
    assert NEW_RUN in refusal


def test_a_wrong_address_needs_a_new_run_and_it_is_said(
    config: Path, capsys: pytest.CaptureFixture[str], stranger: str
) -> None:
    _, told = advice(capsys, config, f"endpoints.sim.base_url={stranger}", code=7)
    assert NEW_RUN in told
    assert f"endpoints.sim.base_url ({stranger})" in told


def test_a_model_that_was_heard_once_is_not_doubted(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = '[{what="status", status=404, nth=10, times="always"}]'
    believed = "endpoints.sim.doubt_s=1"
    _, told = advice(capsys, config, f"endpoints.sim.faults={fault}", believed, code=5)
    assert NEW_RUN not in told


def test_an_account_that_ran_dry_does_not_put_the_configuration_in_doubt(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = '[{what="quota", times="always"}]'
    _, told = advice(capsys, config, f"endpoints.sim.faults={fault}", code=5)
    assert NEW_RUN not in told
