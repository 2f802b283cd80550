"""The words and the customer a set of composed tasks is written with, read from one TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tauasync.environment.files import DataFolder
from tauasync.errors import DataError

FILE_NAME = "scenarios.toml"
INTENTS = ("mobile_data_issue", "service_issue", "mms_issue")
DESCRIBED_PERSONAS = ("Easy", "Hard")


class Customer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who calls, and the facts of the data that the sub-issues build upon.

    Attributes:
        phone_number: the number of the line `line_id`.
        overdue_bill_id: the id given to the bill that a suspension creates; unused in the data.
        overused_gb: a use of data, in GB, just beyond the allowance of the line's plan.
        refuelled_gb: what the line has been refuelled by before the task, in GB.
    """

    full_name: str
    phone_number: str
    customer_id: str
    line_id: str
    overdue_bill_id: str
    overused_gb: float
    refuelled_gb: float = 0.0


class Location(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the caller is, as it is said in a sentence."""

    home: str
    abroad: str


class IntentWording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts of one intent.

    Each may hold the placeholders {full_name}, {phone_number}, {location} and {common}.

    Attributes:
        ticket: what the agent is given where it works without a user.
        messages: notes on the intent's assertions of success, by function name.
    """

    purpose: str
    reason_for_call: str
    known_info: str
    ticket: str
    task_instructions: str
    messages: dict[str, str] = msgspec.field(default_factory=dict)


class Scenarios(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything of a composed task that is not structure.

    Attributes:
        personas: a description of the caller for each of `DESCRIBED_PERSONAS`.
        intents: the texts of each of `INTENTS`.
        transfer_summary: the argument of the hand-over in a task nobody can solve.
        common: a text that the intents' texts may include as {common}.
    """

    customer: Customer
    location: Location
    personas: dict[str, str]
    intents: dict[str, IntentWording]
    transfer_summary: str
    common: str = ""

    def fill(self, template: str, *, abroad: bool) -> str:
        """Put the facts into a text.

        Raises:
            KeyError: the text names an unknown placeholder.
        """
        return template.format(
            full_name=self.customer.full_name,
            phone_number=self.customer.phone_number,
            location=self.location.abroad if abroad else self.location.home,
            common=self.common,
        )


def load_scenarios(data: Path) -> Scenarios:
    """Read the scenario file of a domain's data folder.

    Raises:
        DataError: the file is missing, is no TOML, lacks a key or holds an unknown one.
    """
    path = data / FILE_NAME
    try:
        scenarios = msgspec.convert(DataFolder(data).toml(FILE_NAME), Scenarios)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}") from error
    _check_names(scenarios.personas, DESCRIBED_PERSONAS, f"{path}: personas")
    _check_names(scenarios.intents, INTENTS, f"{path}: intents")
    for name, wording in scenarios.intents.items():
        _check_placeholders(scenarios, msgspec.structs.asdict(wording), f"{path}: intents.{name}")
    return scenarios


def _check_names(table: Mapping[str, object], expected: Sequence[str], where: str) -> None:
    if set(table) != set(expected):
        found = ", ".join(table) or "nothing"
        raise DataError(f"{where}: expected exactly {', '.join(expected)}; found {found}")


def _check_placeholders(scenarios: Scenarios, texts: Mapping[str, object], where: str) -> None:
    for key, text in texts.items():
        if not isinstance(text, str):
            continue
        try:
            scenarios.fill(text, abroad=False)
        except (LookupError, ValueError, AttributeError, TypeError) as error:
            raise DataError(
                f"{where}.{key}: unusable placeholder ({error}); a text may name {{full_name}}, "
                "{phone_number}, {location} and {common}, other braces are written twice"
            ) from error
