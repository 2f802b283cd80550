"""Field reports on data: seeds, shared state, odd values, other backends, changed files."""

from __future__ import annotations

import ast
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

import tauasync
from tauasync.assembly.domains import set_stage
from tauasync.assembly.run_file import check_identity, make_manifest
from tauasync.errors import ResumeRefusedError
from tauasync.store.reader import RunReader
from tauasync.types import Message, Transcript
from tests.field.sweeps import (
    LOOK,
    TELECOM,
    TOGGLE,
    WRITE,
    Asked,
    Played,
    Reply,
    answers_of,
    call,
    faulty,
    lines,
    played,
    say,
    talk,
    turns_of,
)
from tests.laws.harness import configure, recording

HI = lines("My phone is dead.", "And now?", "###STOP###")


def seeds_of(path: Path) -> dict[str, int]:
    """Cell key -> the seed of its finished episode."""
    with RunReader(path) as reader:
        rows = reader._rows("SELECT cell_id, seed FROM episode WHERE outcome = 'finished'")
        found = {row["cell_id"]: row["seed"] for row in rows}
        return {cell.key: found[cell_id] for cell_id, cell in reader.cells()}


async def test_runs_side_by_side_have_the_seeds_of_runs_one_after_another(tmp_path: Path) -> None:
    """Report 28: a seed is a hash of the cell, and nobody's random state is touched."""
    config = faulty(tmp_path, run={"trials": 3}, cache={"enabled": False})
    random.seed(7)
    before = random.getstate()
    alone = await played(config, tmp_path / "alone.sqlite")
    together: list[Played] = []

    async def play(number: int) -> None:
        together.append(await played(config, tmp_path / f"{number}.sqlite"))

    async with anyio.create_task_group() as group:
        for number in range(2):
            group.start_soon(play, number)
    expected = seeds_of(alone.path)
    assert len(set(expected.values())) == len(expected) == 6
    assert all(seeds_of(done.path) == expected for done in together)
    assert all(done.transcripts() == alone.transcripts() for done in together)
    assert random.getstate() == before


def test_no_module_uses_the_random_state_of_the_process() -> None:
    """Report 28, for all of the package: only generators of one's own."""
    own = {"Random", "SystemRandom"}
    for path in sorted(Path(tauasync.__file__).parent.rglob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "random":
                assert {name.name for name in node.names} <= own, path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                imported = node.value.id == "random" and "import random\n" in text
                assert not imported or node.attr in own, path


async def test_a_call_of_the_other_sides_tool_is_an_ordinary_error_counted_by_its_owner(
    tmp_path: Path,
) -> None:
    """Report 37: a policy may name tools that the agent does not hold."""
    agent = lines(call(TOGGLE, ("no_such_tool", {}), LOOK), "I see.", "Bye.")
    user = lines("It is dead.", call(LOOK, WRITE), "I cannot.", "###STOP###")
    done, _ = await talk(tmp_path, agent, user)
    assert done.ended_by == ({"user_stop": 1}, {})
    mine, theirs = done.group.calls["agent"], done.group.calls["user"]
    assert (mine.made, mine.failed, mine.foreign, mine.unknown) == (3, 2, 1, 1)
    assert (theirs.made, theirs.failed, theirs.foreign, theirs.unknown) == (2, 2, 2, 0)
    alone = configure(
        tmp_path / "alone", domains=[{**TELECOM, "task_limit": 6, "modes": ["no-user"]}]
    )
    solo = await played(alone, tmp_path / "alone.sqlite")
    counted = solo.group.calls["agent"]
    assert counted.made > 6
    assert (counted.failed, counted.foreign, counted.unknown) == (0, 0, 0)


async def test_two_policies_are_two_rows_under_their_names(tmp_path: Path) -> None:
    """Report 38: never pooled, never guessed."""
    grid = [{**TELECOM, "task_limit": 2, "policies": ["manual", "workflow"]}]
    done = await played(faulty(tmp_path, domains=grid), tmp_path / "run.sqlite")
    rows = [(group.domain, group.policy, group.planned) for group in done.report.groups]
    assert rows == [("telecom", "manual", 2), ("telecom", "workflow", 2)]


def test_changed_data_is_noticed_before_a_run_goes_on(tmp_path: Path) -> None:
    """Report 112: the hash of the files is the run's, and another one is refused by name."""
    config = faulty(tmp_path)
    stage = set_stage(config)
    manifest = make_manifest(config, stage)
    assert manifest.data_fingerprints["telecom"] == stage.domains["telecom"].fingerprint
    check_identity(manifest, stage)
    edited = msgspec.structs.replace(stage.domains["telecom"], fingerprint="0" * 64)
    with pytest.raises(ResumeRefusedError, match="telecom"):
        check_identity(manifest, replace(stage, domains={"telecom": edited}))


async def test_a_gateway_that_changes_backends_within_a_row_is_pointed_out(
    tmp_path: Path,
) -> None:
    """Report 136: who answered is kept with each completion, and more than one is warned of."""

    def agent(asked: Asked) -> Reply:
        backend = "AB"[asked.turn % 2]
        return say("Go on.", extra={"provider": backend, "system_fingerprint": f"fp-{backend}"})

    user = lines("One.", "Two.", "Three.", "###STOP###")
    done, _ = await talk(tmp_path, agent, user)
    backends = [(one.role, one.provider, one.completions) for one in done.group.answered_by]
    assert Counter(backends) == Counter([("agent", "B", 2), ("agent", "A", 1), ("user", None, 4)])
    told = " ".join(done.group.warnings)
    assert "more than one provider (A, B)" in told
    assert "more than one system fingerprint (fp-A, fp-B)" in told


async def test_nothing_a_model_can_say_keeps_an_episode_from_being_stored_and_scored(
    tmp_path: Path,
) -> None:
    """Report 145: integers beyond 64 bits, half surrogates, depth, control characters, size."""
    big = 18528528433540659662000
    surrogate = b'{"choices":[{"message":{"content":"cut \\ud83d\\u0000 here"}}]}'
    odd = [
        f'{{"phone_number": {big}}}',
        f'{{"phone_number": {{"deep": [{{"n": {big}, "x": 1e400}}]}}}}',
        '{"phone_number": "\\ud83d", "\\ud83d": 1}',
        '{"phone_number": 1e300}',
        *['{"phone_number":' + "[" * n + "]" * n + "}" for n in (90, 101, 260, 480, 490, 2000)],
        '{"phone_number": "' + "x" * 300_000 + '"}',
    ]
    agent = lines(*[call((LOOK[0], text)) for text in odd], Reply(raw=surrogate), "Bye.")
    done, _ = await talk(tmp_path, agent, HI, limits={"max_errors": 100})
    assert done.ended_by == ({"user_stop": 1}, {})
    assert all(answer.error for answer in answers_of(done.transcript))
    made = [one for turn in turns_of(done.transcript, "assistant") for one in turn.tool_calls]
    assert made[0].arguments == {"phone_number": big}
    # What nests deeply is refused at one depth, long before any encoder gives out somewhere.
    assert [one.malformed is not None for one in made] == [*[False] * 5, *[True] * 5, False]
    assert str(big) in answers_of(done.transcript)[0].content
    spoken = [
        turn.content for turn in turns_of(done.transcript, "assistant") if not turn.tool_calls
    ]
    assert "cut \ufffd\x00 here" in spoken
    assert done.group.scored == 1


async def test_lone_surrogates_everywhere_change_no_result(tmp_path: Path) -> None:
    """Report 145, in whole sweeps."""
    rule = {"what": "lone-surrogate", "times": "always"}
    done = await played(faulty(tmp_path, rule, tasks=4), tmp_path / "run.sqlite")
    assert (done.group.successes, done.end.open_cells) == (4, 0)
    texts = [
        item.content or ""
        for transcript in done.transcripts().values()
        for item in transcript
        if isinstance(item, Message)
    ]
    assert any("\ufffd" in text for text in texts)


async def test_twenty_trials_at_once_do_not_see_each_others_writes(tmp_path: Path) -> None:
    """Report 152: conversations, answers of tools and verdicts are those of a serial run."""
    tasks = ["[service_issue]overdue_bill_suspension[PERSONA:Easy]"]
    given: dict[str, Any] = {
        "endpoints": {"sim": {"kind": "embedded", "latency_s": 0.002, "latency_spread": 1.0}},
        "domains": [{**TELECOM, "tasks": tasks}],
        "run": {"trials": 20},
    }
    runs = {
        open_episodes: await played(
            configure(
                tmp_path,
                **given,
                cache={"enabled": False},
                limits={"open_episodes": open_episodes},
            ),
            tmp_path / f"{open_episodes}.sqlite",
        )
        for open_episodes in (20, 1)
    }
    assert runs[20].group.successes == 20
    assert runs[20].transcripts() == runs[1].transcripts()
    assert runs[20].verdicts() == runs[1].verdicts()
    ends = [
        {end_of(done, tasks[0], transcript) for transcript in done.transcripts().values()}
        for done in runs.values()
    ]
    assert ends[0] == ends[1]
    assert len(ends[0]) == 1


def end_of(done: Played, task_id: str, transcript: Transcript) -> tuple[str, str | None]:
    """The digests of the world that a conversation leaves behind."""
    world = done.stage.domains["telecom"].environment()
    world.prepare(done.stage.task("telecom", task_id).initial_state)
    world.replay(transcript, strict=False)
    return world.digests


async def test_a_parallel_run_is_the_serial_run_and_no_prompt_knows_the_time(
    tmp_path: Path,
) -> None:
    """Reports 152 and 28: the same requests, byte for byte, in every order and at every hour."""
    asked: list[Counter[str]] = []
    finished: list[dict[str, Transcript]] = []
    for open_episodes in (64, 1):
        folder = tmp_path / str(open_episodes)
        folder.mkdir()
        grid = [{**TELECOM, "task_limit": 3, "modes": ["default", "no-user", "oracle-plan"]}]
        async with recording(set_stage(configure(folder, domains=grid))) as (url, recorder):
            config = configure(
                folder,
                domains=grid,
                endpoints={"sim": {"kind": "embedded", "base_url": url}},
                limits={"open_episodes": open_episodes},
            )
            done = await played(config, folder / "run.sqlite")
        asked.append(Counter(map(repr, recorder.requests)))
        finished.append(done.transcripts())
    assert asked[0] == asked[1]
    assert finished[0] == finished[1]
    assert len(finished[0]) == 9
