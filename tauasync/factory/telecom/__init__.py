"""Composing telecom tasks from atomic sub-issues (arXiv 2506.07982, section 4).

`generate` gives all 2285 tasks, `splits` the parts that are played; `verify` proves a task sound
in its environment; `full_tasks` is `generate` for a data folder.
"""

from tauasync.factory.telecom.build import build_task
from tauasync.factory.telecom.composite import PERSONAS, Composite, composites
from tauasync.factory.telecom.files import full_tasks, stale_files, task_files
from tauasync.factory.telecom.intent import Intent, intents
from tauasync.factory.telecom.scenarios import Customer, Scenarios, load_scenarios
from tauasync.factory.telecom.sub_issue import SubIssue, sub_issues
from tauasync.factory.telecom.task_set import balanced, generate, splits
from tauasync.factory.telecom.verify import Violation, redundant_steps, verify, verify_all

__all__ = [
    "PERSONAS",
    "Composite",
    "Customer",
    "Intent",
    "Scenarios",
    "SubIssue",
    "Violation",
    "balanced",
    "build_task",
    "composites",
    "full_tasks",
    "generate",
    "intents",
    "load_scenarios",
    "redundant_steps",
    "splits",
    "stale_files",
    "sub_issues",
    "task_files",
    "verify",
    "verify_all",
]
