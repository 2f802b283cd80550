"""How long to wait, in every notation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tauasync.endpoint.retry_after import exhausted_for_s, reset_s, retry_after_s, told_limits

NOW = datetime(2026, 10, 21, 7, 0, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "75"}, 75.0),
        ({"retry-after": "60"}, 60.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "86400"}, 86400.0),
        ({"retry-after-ms": "4321"}, 4.321),
        ({"retry-after-ms": "4321", "retry-after": "5"}, 4.321),
        ({"retry-after-ms": "0", "retry-after": "5"}, 5.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, 28 * 60.0),
        ({"retry-after": "Wed, 21 Oct 2026 06:28:00 GMT"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2.5s"}, 62.5),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "1m2.5s"}, None),
        ({"x-ratelimit-reset": "30"}, 30.0),
    ],
)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, None, NOW) == (
        None if seconds is None else pytest.approx(seconds)
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1m2.5s", 62.5),
        ("1h2m3s", 3723.0),
        ("1d", 86400.0),
        ("17s", 17.0),
        ("17", 17.0),
        (str(int(NOW) + 90), 90.0),
        (str((int(NOW) + 90) * 1000), 90.0),
        ("2026-10-21T07:01:00Z", 60.0),
        ("2026-10-21T07:01:00", 60.0),
        ("0s", None),
        ("0", None),
        ("-5", None),
        (str(int(NOW) - 90), None),
        ("6m0", None),
        ("", None),
        (None, None),
    ],
)
def test_reset_values(text: str | None, seconds: float | None) -> None:
    assert reset_s(text, NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({"metadata": {"headers": {"X-RateLimit-Reset": str(int((NOW + 42) * 1000))}}}, 42.0),
        ({"metadata": {"headers": {"Retry-After": "9"}}}, 9.0),
        ({"details": [{"@type": "x"}, {"retryDelay": "17.5s"}]}, 17.5),
        ({"retry_after": 3}, 3.0),
        ({"metadata": {"headers": "x"}, "details": "y"}, None),
        (None, None),
        ("text", None),
        ([1], None),
    ],
)
def test_error_bodies(error: Any, seconds: float | None) -> None:
    assert retry_after_s({}, error, NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    "date",
    [
        "Fri, 31 Dec 99999999999999999999 23:59:59 GMT",
        "Fri, 99 Zzz 2026 07:01:00 GMT",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_an_absurd_date_is_no_wish_or_a_long_one_and_never_a_failure(date: str) -> None:
    told = retry_after_s({"retry-after": date}, None, NOW)
    assert told is None or told > 0


def test_a_header_wins_over_the_body() -> None:
    assert retry_after_s({"retry-after": "5"}, {"retry_after": 9}, NOW) == 5.0


def test_only_the_share_of_a_limit_that_is_needed_is_waited_for() -> None:
    headers = {
        "x-ratelimit-limit-tokens": "60000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "60s",
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
    }
    assert exhausted_for_s(headers, NOW, tokens=6000) == pytest.approx(6.0)
    assert exhausted_for_s(headers, NOW, tokens=10**6) == pytest.approx(60.0)
    assert exhausted_for_s({}, NOW, tokens=1) is None


@given(st.text(max_size=20))
def test_no_header_is_fatal_or_negative(text: str) -> None:
    for name in ("retry-after", "retry-after-ms", "x-ratelimit-reset"):
        found = retry_after_s({name: text}, None, NOW)
        assert found is None or found > 0


@pytest.mark.parametrize(
    ("limit", "left", "reset", "told"),
    [
        ("600", "590", "1s", 600.0),
        ("600", "300", "20s", 600.0),
        ("600", "0", "1m0s", 600.0),
        ("14400", "14370", "2m59.56s", None),
        ("5", "3", "600ms", None),
        ("600", "600", "0s", None),
        ("600", "590", None, None),
        ("0", "0", "1s", None),
        ("many", "1", "1s", None),
        ("600", "599", "0.1", 600.0),
    ],
)
def test_a_told_limit_is_adopted_only_where_it_is_one_a_minute(
    limit: str, left: str, reset: str | None, told: float | None
) -> None:
    headers = {
        "x-ratelimit-limit-tokens": limit,
        "x-ratelimit-remaining-tokens": left,
        **({"x-ratelimit-reset-tokens": reset} if reset is not None else {}),
    }
    assert told_limits(headers, 0.0) == (None, told)
