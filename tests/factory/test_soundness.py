"""Laws of the tasks in their world: unsolved until the last step, solved by it, no step idle."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tauasync.environment.domain import Domain
from tauasync.environment.telecom import load
from tauasync.factory.telecom import (
    PERSONAS,
    Composite,
    Intent,
    Scenarios,
    build_task,
    intents,
    redundant_steps,
    sub_issues,
    verify,
    verify_all,
)
from tauasync.task import ReferenceAction, Task
from tests.factory.upstream import upstream_folder, upstream_scenarios
from tests.shared import needs_shared


def with_actions(task: Task, *actions: ReferenceAction) -> Task:
    """The task with another reference solution."""
    assert task.evaluation_criteria is not None
    criteria = msgspec.structs.replace(task.evaluation_criteria, actions=actions)
    return msgspec.structs.replace(task, evaluation_criteria=criteria)


def composite_of(everything: tuple[Composite, ...], intent: str, *names: str) -> Composite:
    """The combination of an intent that has exactly these sub-issues."""
    return next(
        composite
        for composite in everything
        if composite.intent.name == intent
        and tuple(issue.name for issue in composite.issues) == tuple(sorted(names))
    )


def test_every_task_is_sound(domain: Domain, scenarios: Scenarios) -> None:
    """All 2285, hand-overs included."""
    assert verify_all(scenarios, domain.environment) == ()


def test_only_a_reboot_before_another_network_search_is_idle(
    domain: Domain, scenarios: Scenarios, everything: tuple[Composite, ...]
) -> None:
    """Each sub-issue brings the reboot its own fix needs; two of them may need only one."""
    idle = {}
    for composite in everything:
        if composite.intent.name == "service_issue" and composite.solvable:
            task = build_task(composite, scenarios)
            if steps := redundant_steps(task, domain.environment):
                idle[composite.id] = [task.reference_actions[step].name for step in steps]
    assert len(idle) == 6
    for task_id, names in idle.items():
        assert set(names) == {"reboot_device"}
        assert "overdue_bill_suspension" in task_id
        assert "break_apn_settings" in task_id or "unseat_sim_card" in task_id


@st.composite
def legal_choices(draw: st.DrawFn, intent: Intent) -> tuple[str, ...]:
    """Names of sub-issues, at most one of a group, at least one of the intent's own."""
    names = [draw(st.sampled_from([*group, None])) for group in intent.groups]
    own = draw(st.sampled_from(intent.own))
    position = intent.groups.index(own)
    names[position] = names[position] or draw(st.sampled_from(own))
    return tuple(sorted(name for name in names if name is not None))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_legal_combination_is_sound(
    data: st.DataObject, domain: Domain, scenarios: Scenarios
) -> None:
    """Hidden sub-issues included, drawn without the enumeration."""
    intent = data.draw(st.sampled_from(list(intents(scenarios.customer).values())))
    issues = sub_issues(scenarios.customer)
    composite = Composite(
        intent=intent,
        issues=tuple(issues[name] for name in data.draw(legal_choices(intent))),
        persona=data.draw(st.sampled_from(PERSONAS)),
    )
    assert verify(composite, build_task(composite, scenarios), domain.environment) == ()


def test_a_missing_step_is_found(
    domain: Domain, scenarios: Scenarios, everything: tuple[Composite, ...]
) -> None:
    composite = composite_of(everything, "mms_issue", "bad_wifi_calling", "data_mode_off")
    task = build_task(composite, scenarios)
    shortened = with_actions(task, *task.reference_actions[:-1])
    found = verify(composite, shortened, domain.environment)
    assert found
    assert {violation.step for violation in found} == {"end"}
    assert all(violation.task_id == task.id for violation in found)


def test_an_idle_step_is_found(
    domain: Domain, scenarios: Scenarios, everything: tuple[Composite, ...]
) -> None:
    composite = composite_of(everything, "mms_issue", "bad_wifi_calling")
    task = build_task(composite, scenarios)
    idle = ReferenceAction(action_id="check_status_bar", name="check_status_bar", requestor="user")
    padded = with_actions(task, idle, *task.reference_actions)
    (violation,) = verify(composite, padded, domain.environment)
    assert violation.step == "0 check_status_bar"
    assert "left out" in violation.message


def test_a_step_after_the_solution_is_found(
    domain: Domain, scenarios: Scenarios, everything: tuple[Composite, ...]
) -> None:
    composite = composite_of(everything, "service_issue", "airplane_mode_on")
    task = build_task(composite, scenarios)
    late = ReferenceAction(action_id="reboot_device_1", name="reboot_device", requestor="user")
    found = verify(composite, with_actions(task, *task.reference_actions, late), domain.environment)
    assert ("1 reboot_device", "the task is solved already") in {
        (violation.step, violation.message) for violation in found
    }


def test_a_step_that_fails_is_found(
    domain: Domain, scenarios: Scenarios, everything: tuple[Composite, ...]
) -> None:
    composite = composite_of(everything, "service_issue", "airplane_mode_on")
    task = build_task(composite, scenarios)
    wrong = ReferenceAction(action_id="fly_home", name="fly_home", requestor="user")
    found = verify(
        composite, with_actions(task, wrong, *task.reference_actions), domain.environment
    )
    assert any(v.step == "0 fly_home" and "Error" in v.message for v in found)


def test_a_sub_issue_that_does_not_show_is_found(
    domain: Domain, scenarios: Scenarios, everything: tuple[Composite, ...]
) -> None:
    composite = composite_of(everything, "service_issue", "airplane_mode_on")
    (airplane,) = composite.issues
    tame = msgspec.structs.replace(airplane, breaks=())
    changed = msgspec.structs.replace(composite, issues=(tame,))
    found = verify(changed, build_task(changed, scenarios), domain.environment)
    assert "airplane_mode_on" in {violation.step for violation in found}


@needs_shared
def test_the_benchmarks_tasks_are_sound_in_its_own_world() -> None:
    upstream = load(upstream_folder(), "upstream")
    assert verify_all(upstream_scenarios(), upstream.environment) == ()


def test_the_customers_facts_are_those_of_the_data(domain: Domain, scenarios: Scenarios) -> None:
    customer = scenarios.customer
    agent = domain.environment().agent
    line = agent.use("get_details_by_id", {"id": customer.line_id})
    plan = agent.use("get_details_by_id", {"id": line.plan_id})
    owner = agent.use("get_customer_by_phone", {"phone_number": customer.phone_number})
    bills = [agent.use("get_details_by_id", {"id": bill_id}) for bill_id in owner.bill_ids]
    assert (owner.customer_id, owner.full_name) == (customer.customer_id, customer.full_name)
    assert line.line_id in owner.line_ids
    assert line.phone_number == customer.phone_number
    assert line.status == "Active"
    assert line.roaming_enabled
    assert line.contract_end_date.year > 2025
    assert line.data_used_gb < plan.data_limit_gb < customer.overused_gb
    assert line.data_refueling_gb == customer.refuelled_gb
    assert plan.price_per_month > 0
    assert "Overdue" not in {bill.status for bill in bills}
    assert sum(bill.status == "Draft" for bill in bills) == 1
    assert customer.overdue_bill_id not in owner.bill_ids
