"""Loading the mock domain from its folder of files."""

from __future__ import annotations

from pathlib import Path

from tauasync.environment.domain import AnyEnvironment, Domain
from tauasync.environment.environment import Environment
from tauasync.environment.files import DataFolder
from tauasync.environment.mock.records import Inbox, TaskList
from tauasync.environment.mock.tools import MockTools, MockUserTools


def load(data: Path, source: str) -> Domain:
    """Read the domain.

    Args:
        data: the folder with `db.json`, `user_db.json`, `policy.md`, `policy_solo.md`,
            `tasks.json` and `split_tasks.json`.
        source: "project" or "upstream".

    Raises:
        DataError: a file is missing, unreadable or does not hold what it should.
    """
    folder = DataFolder(data)
    task_list = TaskList.load(folder.json("db.json"), source=str(data / "db.json"))
    inbox = Inbox.load(folder.json("user_db.json"), source=str(data / "user_db.json"))

    def build(solo: bool) -> AnyEnvironment:
        return Environment(
            agent=MockTools(task_list.fork()),
            user=MockUserTools(inbox.fork()),
            solo=solo,
            patch_joins_sides=True,
        )

    return Domain(
        name="mock",
        build=build,
        policies={
            ("manual", False): folder.text("policy.md"),
            ("manual", True): folder.text("policy_solo.md"),
        },
        tasks=folder.tasks(),
        splits=folder.splits(),
        default_split=None,
        fingerprint=folder.fingerprint,
        source=source,
    )
