"""The project's telecom data and its world, loaded once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tauasync.environment.domain import Domain
from tauasync.environment.telecom import load
from tauasync.factory.telecom import Composite, Scenarios, composites, load_scenarios

DATA = Path(__file__).resolve().parents[2] / "tasks" / "telecom"


@pytest.fixture(scope="session")
def data() -> Path:
    """The project's telecom folder."""
    return DATA


@pytest.fixture(scope="session")
def scenarios() -> Scenarios:
    """The project's scenario file."""
    return load_scenarios(DATA)


@pytest.fixture(scope="session")
def everything(scenarios: Scenarios) -> tuple[Composite, ...]:
    """Every legal combination, hidden ones included."""
    return composites(scenarios.customer)


@pytest.fixture(scope="session")
def domain() -> Domain:
    """The project's telecom domain."""
    return load(DATA, "project")
