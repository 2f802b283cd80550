"""Field reports on the simulated user: how it begins, stops, acts, and is kept apart."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tauasync.assembly.domains import set_stage
from tauasync.assembly.run_file import check_identity, identity, make_manifest
from tauasync.config.fingerprint import differences
from tauasync.errors import ResumeRefusedError
from tauasync.evaluator.conduct import stopped_while_agreeing
from tauasync.evaluator.verdict import Remark
from tauasync.report.render import report_view
from tauasync.store.reader import RunReader
from tauasync.store.run_store import RunStore
from tauasync.types import OUT_OF_SCOPE, STOP, TRANSFER, Message
from tests.field.sweeps import (
    LOOK,
    TOGGLE,
    call,
    faulty,
    lines,
    say,
    talk,
    turns_of,
)
from tests.laws.harness import reported
from tests.report.test_views import shown
from tests.store.builders import grid, manifest, play


async def test_leaving_in_the_message_that_agrees_is_pointed_out_as_the_users_mistake(
    tmp_path: Path,
) -> None:
    """Report 22: the write never happens; the score stands, and the report counts it."""
    agent = lines("I can reset your line now. Shall I go ahead?")
    done, _ = await talk(tmp_path, agent, lines("It is dead.", f"Yes, please proceed. {STOP}"))
    assert done.ended_by == ({"user_stop": 1}, {})
    assert done.verdict.conduct.remarks == (Remark.STOPPED_WHILE_AGREEING,)
    assert done.group.remarks == {Remark.STOPPED_WHILE_AGREEING.value: 1}
    assert "stopped while agreeing 1" in shown(report_view(done.report))


@pytest.mark.parametrize(
    ("asked", "answered", "found"),
    [
        ("Shall I cancel it?", f"Yes, go ahead {STOP}", True),
        ("Do you confirm?", f"I confirm. {TRANSFER}", True),
        ("Is that fine?", f"ok{STOP}", True),
        ("Shall I cancel it?", "Yes, go ahead", False),
        ("Anything else?", f"No, thank you. {STOP}", False),
        ("Anything else?", f"Yes, that's all. {STOP}", False),
        ("It is done.", f"Yes, great, thanks. {STOP}", False),
        ("Shall I cancel it?", STOP, False),
        ("Shall I?", f"No. {OUT_OF_SCOPE}", False),
    ],
)
def test_only_a_yes_to_a_question_beside_a_stop_is_meant(
    asked: str, answered: str, found: bool
) -> None:
    """Report 22: what the rule takes for agreement and what it does not."""
    said = (Message(role="assistant", content=asked), Message(role="user", content=answered))
    assert stopped_while_agreeing(said) is found


async def test_two_users_are_two_rows_and_no_resume_changes_the_user(tmp_path: Path) -> None:
    """Report 23: the simulator and its prompts are part of the result's key."""
    path = tmp_path / "run.sqlite"
    async with RunStore.create(path, manifest(), grid(["a"], users=("weak",))) as store:
        await store.add_cells(grid(["a"], users=("weak", "strong")))
        await play(store, 1, reward=0.0)
        await play(store, 2, reward=1.0)
    groups = reported(path).groups
    assert [(group.user, group.successes) for group in groups] == [("weak", 0), ("strong", 1)]
    one = faulty(tmp_path)
    other = faulty(tmp_path, roles={"agents": ["oracle"], "user": "oracle", "judge": "judge"})
    assert "roles.user" in {difference.key for difference in differences(one, other)}
    stage = set_stage(one)
    known = make_manifest(one, stage)
    assert "user" in identity(stage)["prompts"]
    stale = {**known.data_fingerprints, "prompts": "agent 1, user 0, judge 1"}
    with pytest.raises(ResumeRefusedError, match="prompts"):
        check_identity(msgspec.structs.replace(known, data_fingerprints=stale), stage)


async def test_stop_tokens_count_on_every_message_of_the_user_and_nowhere_else(
    tmp_path: Path,
) -> None:
    """Report 25: on the first message; not in thoughts, not from the agent, not beside a call."""
    for number, token in enumerate((STOP, TRANSFER, OUT_OF_SCOPE)):
        done, app = await talk(tmp_path / f"first{number}", lines("Hm."), lines(token))
        assert done.ended_by == ({"user_stop": 1}, {})
        assert app.of("agent") == []
        assert done.group.scored == 1
    thought = say("<think>I could say ###STOP### now</think>Go on.")
    hidden = say("Go on.", message={"reasoning_content": STOP})
    beside = call(TOGGLE, text=STOP)
    user = lines("It is dead.", thought, hidden, beside, "I toggled it.", STOP)
    done, app = await talk(
        tmp_path / "within", lines(f"Goodbye. {STOP}", f"<think>{STOP}</think>Hi"), user
    )
    assert done.ended_by == ({"user_stop": 1}, {})
    assert len(app.of("agent")) == 4
    assert [turn.content for turn in turns_of(done.transcript, "assistant")][2:] == ["Hi"] * 3


async def test_the_step_limit_counts_the_messages_of_both_sides_and_the_environment(
    tmp_path: Path,
) -> None:
    """Report 25: a port that counts turns of the agent alone plays another benchmark."""
    agent, user = lines(call(LOOK), "One."), lines("Hi.", "Two.")
    for limit in (3, 4, 9):
        done, _ = await talk(tmp_path / str(limit), agent, user, limits={"max_steps": limit})
        assert done.ended_by == ({"max_steps": 1}, {})
        assert len(done.transcript) == 1 + limit
        with RunReader(done.path) as reader:
            assert reader.attempts(1)[0].steps == limit


async def test_what_the_user_said_beside_a_call_reaches_the_agent_if_nothing_follows(
    tmp_path: Path,
) -> None:
    """Report 115: an empty turn after a call is no crash and no failure of the infrastructure."""
    user = lines(call(TOGGLE, text="Please transfer me."), "", STOP)
    done, app = await talk(tmp_path, lines("I will."), user)
    assert done.ended_by == ({"user_stop": 1}, {})
    assert app.of("agent")[0].messages[-1] == {"role": "user", "content": "Please transfer me."}
    nothing, _ = await talk(tmp_path / "nothing", lines("I will."), lines(call(TOGGLE), "", STOP))
    assert nothing.ended_by == ({"user_error": 1}, {"user: empty_message": 1})
    assert (nothing.end.open_cells, nothing.group.scored) == (0, 1)


async def test_an_opening_that_calls_tools_is_routed_like_any_other_turn(tmp_path: Path) -> None:
    """Report 116: tools first, then the utterance; any number of times."""
    user = lines(call(TOGGLE), call(TOGGLE, ("no_such_tool", {})), "It is still dead.", STOP)
    done, app = await talk(tmp_path, lines("Hm."), user)
    assert done.ended_by == ({"user_stop": 1}, {})
    roles = [m["role"] for m in app.of("agent")[0].messages]
    assert roles == ["system", "assistant", "user"]
    calls = done.group.calls["user"]
    assert (calls.made, calls.failed, calls.unknown) == (3, 1, 1)
    errors, _ = await talk(
        tmp_path / "errors", lines("Hm."), lines(call(LOOK)), limits={"max_errors": 3}
    )
    assert errors.ended_by == ({"too_many_errors": 1}, {})
    assert errors.group.calls["user"].foreign == 3
