"""The law of the written workflow: whoever follows it solves every task, and no more."""

from __future__ import annotations

import re
from pathlib import Path

from tauasync.environment.domain import Domain
from tauasync.factory.telecom import Composite, Scenarios, build_task
from tests.factory import follower as follower_module
from tests.factory.follower import Follower, Ticket, Transferred


def test_following_the_workflow_solves_every_task(
    domain: Domain, scenarios: Scenarios, everything: tuple[Composite, ...]
) -> None:
    """It hands over exactly the tasks that nobody can solve."""
    for composite in everything:
        if composite.hidden:
            continue
        task = build_task(composite, scenarios)
        world = domain.environment()
        world.prepare(task.initial_state)
        number = scenarios.customer.phone_number
        follower = Follower(world, Ticket(phone_number=number, abroad=composite.abroad))
        transferred = False
        try:
            follower.solve(composite.intent.name)
        except Transferred:
            transferred = True
        assert transferred != composite.solvable, task.id
        assert task.evaluation_criteria is not None
        for assertion in task.evaluation_criteria.env_assertions or ():
            assert world.holds(assertion), (task.id, assertion)


def test_the_follower_takes_every_written_step(data: Path) -> None:
    source = Path(follower_module.__file__).read_text("utf-8")
    taken = set(re.findall(r"  # (\d(?:\.\d)+)$", source, re.MULTILINE))
    for name in ("tech_support_workflow.md", "tech_support_workflow_solo.md"):
        text = (data / name).read_text("utf-8")
        written = set(re.findall(r"^#+ Step (\d(?:\.\d)+):", text, re.MULTILINE))
        # The talk version begins two paths by asking whether there is a problem at all.
        assert taken == written - {"1.0", "3.0"}, name
