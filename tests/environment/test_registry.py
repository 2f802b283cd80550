"""Finding and loading domains, and what is said when that fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tauasync.environment.domain import Domain
from tauasync.environment.registry import BUILT_IN, find_project_data, load_domain
from tauasync.errors import DataError

PROJECT = find_project_data()


def load(name: str, **changes: object) -> Domain:
    """Load a domain from the project's data, unless something else is asked for."""
    given: dict[str, object] = {"source": "project", "project_data": PROJECT, "upstream_data": None}
    return load_domain(name, **(given | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_projects_tasks_can_be_prepared_and_name_real_tools(name: str) -> None:
    domain = load(name)
    assert domain.name == name
    assert domain.source == "project"
    assert domain.default_split in (None, *domain.splits)
    for ids in domain.splits.values():
        assert set(ids) <= domain.tasks.keys()
    for task in domain.tasks.values():
        world = domain.environment()
        state = task.initial_state
        world.prepare(state)
        for action in task.reference_actions:
            side = world.agent if action.requestor == "assistant" else world.user
            assert side is not None
            assert action.name in side.tools, (task.id, action.name)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("telecon", {}, "'telecon'; did you mean `telecom`"),
        ("mock", {"source": "web"}, "project, upstream"),
        ("mock", {"source": "upstream"}, r"data_dir"),
        ("mock", {"source": "upstream", "upstream_data": Path("nowhere")}, "nowhere: no such"),
        ("mock", {"source": "upstream", "upstream_data": PROJECT}, "domains/mock"),
        ("mock", {"project_data": Path("nowhere")}, "no data of its own"),
    ],
)
def test_what_cannot_be_loaded_is_named(name: str, changes: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        load(name, **changes)


def test_a_stranger_registers_like_a_built_in() -> None:
    def mine(data: Path, source: str) -> Domain:
        return msgspec.structs.replace(BUILT_IN["mock"](data, source), name="mine")

    loaders = {**BUILT_IN, "mock": mine}
    assert load("mock", loaders=loaders).name == "mine"
    assert load("mock").name == "mock"


@pytest.mark.parametrize("root", ["domains", "tau2/domains", "data/tau2/domains"])
def test_upstream_data_is_found_in_an_excerpt_and_in_a_clone(root: str, tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "mock", tmp_path / root / "mock")
    domain = load("mock", source="upstream", upstream_data=tmp_path)
    assert domain.source == "upstream"
    assert domain.fingerprint == load("mock").fingerprint


def without(name: str) -> Callable[[Path], None]:
    """Damage: the file is gone."""
    return lambda folder: (folder / name).unlink()


def holding(name: str, content: bytes) -> Callable[[Path], None]:
    """Damage: the file holds something else."""

    def damage(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return damage


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("mock", without("policy.md"), r"policy\.md: no such file"),
        ("mock", holding("policy.md", b"\xff"), r"policy\.md: expected UTF-8"),
        ("mock", holding("db.json", b"{"), r"db\.json: expected JSON"),
        ("mock", holding("db.json", b'{"tasks": {}}'), r"db\.json: .*users"),
        ("mock", holding("tasks.json", b"{}"), r"tasks\.json: expected a JSON list of tasks"),
        ("mock", holding("tasks.json", b'[{"id": "a"}]'), r"tasks\.json: .*user_scenario"),
        ("mock", holding("split_tasks.json", b"[]"), r"split_tasks\.json: expected a JSON object"),
        ("telecom", holding("db.toml", b"= 1"), r"db\.toml: expected TOML"),
        ("telecom", holding("user_db.toml", b"[device]\ncolour = 1"), r"user_db\.toml: .*colour"),
        (
            "telecom",
            holding("user_db.toml", b"[surroundings]\nphone_number = '1'"),
            "phone number 1",
        ),
        ("telecom", without("tech_support_workflow_solo.md"), r"workflow_solo\.md: no such file"),
    ],
)
def test_a_damaged_file_is_named(
    name: str, damage: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    folder = tmp_path / name
    shutil.copytree(PROJECT / name, folder)
    damage(folder)
    with pytest.raises(DataError, match=said):
        load(name, project_data=tmp_path)


def test_a_reference_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "telecom", tmp_path / "telecom")
    path = tmp_path / "telecom" / "db.toml"
    text = path.read_text("utf-8")
    path.write_text(text.replace("[[plans]]\nplan_id = ", "[[plans]]\nplan_id = 'X' #", 1), "utf-8")
    with pytest.raises(DataError, match=r"db\.toml: line .* unknown plan"):
        load("telecom", project_data=tmp_path)


def test_equal_files_have_equal_fingerprints_and_others_not(tmp_path: Path) -> None:
    shutil.copytree(PROJECT / "mock", tmp_path / "mock")
    assert load("mock", project_data=tmp_path).fingerprint == load("mock").fingerprint
    with (tmp_path / "mock" / "policy.md").open("a", encoding="utf-8") as policy:
        policy.write("\n")
    assert load("mock", project_data=tmp_path).fingerprint != load("mock").fingerprint


# ---- what a domain knows


def test_policies_come_by_variant_and_play() -> None:
    domain = load("telecom")
    texts = {domain.policy(v, solo=s) for v in ("manual", "workflow") for s in (False, True)}
    assert len(texts) == 4
    for text in texts:
        assert text.startswith("<main_policy>\n")
        assert "\n</main_policy>\n<tech_support_policy>\n" in text
        assert text.endswith("\n</tech_support_policy>")
    with pytest.raises(DataError, match="manual, workflow"):
        domain.policy("prose")
