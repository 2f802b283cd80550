"""Field reports on security: what an agent can reach, and where a key can get to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tauasync.assembly.domains import open_domain
from tauasync.types import Requestor, ToolCall, ToolSpec
from tests.field.sweeps import Reply, against, call, fail, lines, played, say, serving

KEY = "3f0c7a51d2b94e6e8a7f"
"""Shaped like no provider's key, so that only knowing it can hide it."""

HOSTILE = (
    "'; cat $HOME/.env; echo '",
    "$(touch owned) `touch owned` | touch owned",
    "../../../../etc/passwd",
    "file:///etc/passwd",
    "${TAUASYNC_MARKED}",
    "{0.__class__.__init__.__globals__} %(TAUASYNC_MARKED)s",
    "__import__('os').environ",
    "tasks.json",
    "\x00",
)
"""What a shell, a path, a template or an interpreter would fall for."""

_REACHES = ("open", "os.", "subprocess.", "socket.", "shutil.", "sqlite3.", "pty.", "exec")
_watched: list[str] = []
_watching = [False]


def _hook(event: str, _: tuple[Any, ...]) -> None:
    if _watching[0] and event.startswith(_REACHES):
        _watched.append(event)


sys.addaudithook(_hook)  # silent but for the time of a test: a hook cannot be taken away


@contextmanager
def watched() -> Iterator[list[str]]:
    """Whatever reaches out of this process meanwhile."""
    _watched.clear()
    _watching[0] = True
    try:
        yield _watched
    finally:
        _watching[0] = False


def hostile_calls(tool: ToolSpec, requestor: Requestor) -> Iterator[ToolCall]:
    names = list(tool.parameters.get("properties", {})) or ["anything"]
    for text in HOSTILE:
        for value in (text, [text], {text: text}):
            arguments = dict.fromkeys(names, value)
            yield ToolCall(id="c", name=tool.name, arguments=arguments, requestor=requestor)
        yield ToolCall(id="c", name=text, arguments={names[0]: text}, requestor=requestor)


@pytest.mark.parametrize("name", ["telecom", "mock"])
@pytest.mark.parametrize("solo", [False, True])
def test_no_tool_reaches_a_file_a_shell_or_a_key_whatever_it_is_given(
    name: str, solo: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report 142: names, paths and templates are text to every tool of either side."""
    monkeypatch.setenv("TAUASYNC_MARKED", KEY)
    monkeypatch.chdir(tmp_path)
    domain = open_domain(name, source="project", data_dir=None)
    environment = domain.environment(solo=solo)
    sides: list[tuple[ToolSpec, Requestor]] = [(t, "assistant") for t in environment.agent_tools]
    if not solo:
        sides += [(tool, "user") for tool in environment.user_tools()]
    made = [one for tool, side in sides for one in hostile_calls(tool, side)]
    assert len(made) > 100
    with watched() as reached:
        answers = [environment.call(one) for one in made]
    assert reached == []
    assert os.listdir(tmp_path) == []
    assert not any(KEY in answer.content for answer in answers)


def test_the_watch_sees_what_reaches_out(tmp_path: Path) -> None:
    with watched() as reached:
        (tmp_path / "x").write_text("")
        os.listdir(tmp_path)
    assert {"open", "os.listdir"} <= set(reached)


@pytest.mark.parametrize(
    "refusal",
    [
        fail(401, f"Incorrect API key provided: {KEY}."),
        fail(403, "forbidden", metadata={"raw": f'{{"authorization": "Bearer {KEY}"}}'}),
        fail(400, f"bad header Authorization: Bearer {KEY}", code="never_seen"),
        fail(500, f"Traceback: headers={{'authorization': 'Bearer {KEY}'}}"),
        Reply(raw=f'{{"error": "key {KEY} is over its limit", "code": 402}}'.encode()),
        Reply(raw=f"<html>Authorization: Bearer {KEY}</html>".encode()),
        Reply(raw=f'{{"id": "x", "choices": null, "echo": "{KEY}"}}'.encode()),
    ],
)
async def test_a_key_that_an_endpoint_repeats_is_in_nothing_that_is_kept_or_told(
    refusal: Reply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any, capsys: Any
) -> None:
    """Report 142, of the same kind: the key stays between the environment and the wire."""
    monkeypatch.setenv("MARKED_KEY", KEY)
    agent = lines(call(("get_customer_by_phone", {"phone_number": "1"})), say("Hm."), refusal)
    user = lines("It is dead.", "And now?")
    async with serving({"agent": agent, "user": user}) as (app, url):
        endpoint = {"base_url": url, "attempts": 2, "api_key_env": "MARKED_KEY"}
        config = against(tmp_path, url, endpoints={"served": endpoint})
        done = await played(config, tmp_path / "run.sqlite")
    assert app.of("agent")[-1].turn == 3
    assert done.end.open_cells == 1
    (error,) = done.errors()
    told = [str(done.end.error), repr(error), caplog.text, *capsys.readouterr()]
    assert "[redacted]" in repr(error)
    assert not any(KEY in text for text in told)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) >= 2
    assert not any(KEY.encode() in path.read_bytes() for path in kept)
