"""Mock: a task list and an inbox; small enough to read, complete enough to test with."""

from tauasync.environment.mock.domain import load

__all__ = ["load"]
