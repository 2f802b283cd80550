"""Which policy a model name stands for, and in which role it can be asked."""

from __future__ import annotations

from collections.abc import Callable

from tauasync.simulated.agents import ScriptShelf, noisy, oracle, probability_in, silent
from tauasync.simulated.judge import judge
from tauasync.simulated.scripted_user import scripted
from tauasync.simulated.wire import Answer, Ask, Refusal

Policy = Callable[[Ask], Answer]

ECHO = "echo"
EMBEDDING = "hashed-words"
MODELS = ("oracle", "noisy:0.5", "silent", "scripted", "judge", ECHO, EMBEDDING)
"""What `GET /models` lists; of the family `noisy:p` one member."""

_ROLES = {
    "oracle": "agent",
    "noisy": "agent",
    "silent": "agent",
    "scripted": "user",
    "judge": "judge",
}
"""Which role a policy plays."""


def check_model(model: str) -> None:
    """Make sure that a chat model exists.

    Raises:
        Refusal: 404, with the models that do.
    """
    family = model.partition(":")[0]
    if family == "noisy":
        probability_in(model)
    elif model != ECHO and model not in _ROLES:
        raise Refusal(
            f"the embedded endpoint has no chat model '{model}'; it has oracle, noisy:<p>, "
            "silent (agents), scripted (user), judge, echo",
            status=404,
            code="model_not_found",
            param="model",
        )


def policy_for(model: str, role: str, shelf: ScriptShelf) -> Policy:
    """The policy behind an existing model.

    Raises:
        Refusal: the model cannot play this role.
    """
    family = model.partition(":")[0]
    if (plays := _ROLES[family]) != role:
        raise Refusal(
            f"the model '{model}' plays the role '{plays}', but was asked in the role '{role}'",
            param="model",
        )
    match family:
        case "oracle":
            return oracle(shelf)
        case "noisy":
            return noisy(probability_in(model), shelf)
        case "silent":
            return silent
        case "scripted":
            return scripted
        case _:
            return judge
