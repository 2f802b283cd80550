"""Loading the telecom domain from its folder of files."""

from __future__ import annotations

from pathlib import Path

from tauasync.environment.domain import AnyEnvironment, Domain
from tauasync.environment.environment import Environment
from tauasync.environment.files import DataFolder
from tauasync.environment.telecom.agent_helpers import TelecomTools
from tauasync.environment.telecom.crm import Crm
from tauasync.environment.telecom.phone import Phone
from tauasync.environment.telecom.sync import sync
from tauasync.environment.telecom.user_helpers import TelecomUserTools
from tauasync.errors import DataError

POLICY_FILES = {
    ("manual", False): ("main_policy.md", "tech_support_manual.md"),
    ("manual", True): ("main_policy_solo.md", "tech_support_manual.md"),
    ("workflow", False): ("main_policy.md", "tech_support_workflow.md"),
    ("workflow", True): ("main_policy_solo.md", "tech_support_workflow_solo.md"),
}
"""Main file and technical file of each (variant, solo); the manual has no solo version."""


def load(data: Path, source: str) -> Domain:
    """Read the domain.

    Args:
        data: the folder with `db.toml`, `user_db.toml`, the policies, `tasks.json` and
            `split_tasks.json`.
        source: "project" or "upstream".

    Raises:
        DataError: a file is missing, unreadable or does not hold what it should.
    """
    folder = DataFolder(data)
    crm = Crm.load(folder.toml("db.toml"), source=str(data / "db.toml"))
    phone = Phone.load(folder.toml("user_db.toml"), source=str(data / "user_db.toml"))
    if problem := next(crm.dangling(), None):
        raise DataError(f"{data / 'db.toml'}: {problem}")

    def build(solo: bool) -> AnyEnvironment:
        return Environment(
            agent=TelecomTools(crm.fork()),
            user=TelecomUserTools(phone.fork()),
            sync=sync,
            solo=solo,
        )

    try:
        build(False)
    except ValueError as error:  # the phone's number leads nowhere in the customer database
        raise DataError(f"{data / 'user_db.toml'}: {error}") from error
    return Domain(
        name="telecom",
        build=build,
        policies={
            key: wrap_policy(folder.text(main), folder.text(technical))
            for key, (main, technical) in POLICY_FILES.items()
        },
        tasks=folder.tasks(),
        splits=folder.splits(),
        default_split="base",
        fingerprint=folder.fingerprint,
        source=source,
    )


def wrap_policy(main: str, technical: str) -> str:
    """The agent's policy: both documents, each between its tags."""
    return (
        f"<main_policy>\n{main}\n</main_policy>\n"
        f"<tech_support_policy>\n{technical}\n</tech_support_policy>"
    )
