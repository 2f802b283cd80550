"""Keys are read by name, and shown nowhere."""

from __future__ import annotations

import pytest

from tauasync.endpoint.credentials import read_credentials
from tauasync.errors import ConfigError
from tests.endpoint.builders import ENVIRON, KEY, endpoint, gate, spec


def test_the_key_comes_from_the_variable_named() -> None:
    found = read_credentials(spec(), {"TEST_KEY": f" {KEY}\n"})
    assert found.headers == {"authorization": f"Bearer {KEY}"}
    assert found.secrets == (KEY,)


def test_headers_are_filled_in() -> None:
    given = spec(api_key_env=None, headers={"Api-Key": "${TEST_KEY}", "X-Title": "tau"})
    assert read_credentials(given, ENVIRON).headers == {"api-key": KEY, "x-title": "tau"}


@pytest.mark.parametrize(
    "environ", [{}, {"TEST_KEY": ""}, {"TEST_KEY": "  "}, {"TEST_KEY": "a\nb"}]
)
def test_a_missing_key_names_the_variable_and_the_configuration_key(
    environ: dict[str, str],
) -> None:
    with pytest.raises(ConfigError, match="TEST_KEY") as caught:
        read_credentials(spec(), environ)
    assert caught.value.key == "endpoints.cloud.api_key_env"
    assert caught.value.hint


async def test_an_endpoint_without_its_key_does_not_open() -> None:
    from tauasync.endpoint.client import Endpoint

    with pytest.raises(ConfigError, match="TEST_KEY"):
        async with Endpoint(spec(), (), lane=gate(), environ={}):
            pass


async def test_no_text_form_shows_the_key() -> None:
    opened = endpoint(lambda request: pytest.fail("nothing is sent"))
    async with opened:
        agent = opened.model("agent")
        shown = [repr(value) for value in (opened, agent, opened._http, opened.spec)]
        shown.append(repr(read_credentials(spec(), ENVIRON)))
    assert not any(KEY in text for text in shown)
