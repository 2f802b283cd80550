"""The cache as its owner looks through it: everything is seen, nobody is held up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tauasync.endpoint.cache import ResponseCache
from tauasync.endpoint.explain import differences, fields_of, nearest
from tauasync.endpoint.keys import KeyParts, key_parts, sampled_key
from tauasync.endpoint.shelf import Entry, encode
from tauasync.endpoint.stock import PAGE_ROWS, check, find, remove, stock
from tauasync.errors import ConfigError, StorageError
from tests.endpoint.builders import completion, origin

BODY: dict[str, Any] = {
    "model": "m",
    "temperature": 0,
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}],
}


def parts(salt: str = origin().salt, **changes: object) -> KeyParts:
    return key_parts(
        base_url="http://cloud.test/v1/", model="m", body={**BODY, **changes}, salt=salt
    )


async def filled(folder: Path, count: int) -> None:
    async with ResponseCache(folder) as cache:
        for number in range(count):
            await cache.put(f"{number:064}", "m", completion(str(number)), parts=parts())


async def test_every_entry_is_seen_once_with_what_its_key_is_made_of(tmp_path: Path) -> None:
    await filled(tmp_path, 2 * PAGE_ROWS + 1)
    items = list(stock(tmp_path))
    assert [item.key for item in items] == [f"{number:064}" for number in range(len(items))]
    assert len(items) == 2 * PAGE_ROWS + 1
    assert all(item.parts == parts() and item.damage is None for item in items)
    assert find(tmp_path, "0" * 64) == items[0]
    assert find(tmp_path, "x" * 64) is None
    assert check(tmp_path) is None


async def test_a_run_plays_on_while_its_cache_is_looked_through_and_pruned(tmp_path: Path) -> None:
    async with ResponseCache(tmp_path) as cache:
        for number in range(PAGE_ROWS + 50):
            await cache.put(f"{number:064}", "m", completion(str(number)))
        looking = stock(tmp_path)
        first = next(looking)
        for number in range(500, 600):
            await cache.put(f"{number:064}", "m", completion(str(number)))
        assert remove(tmp_path, [first]) == 1
        assert await cache.get(first.key, "m") is None
        assert await cache.get(f"{599:064}", "m") is not None
        assert len(list(looking)) == PAGE_ROWS + 50 + 100 - 1


async def test_what_was_replaced_since_it_was_looked_at_is_not_removed(tmp_path: Path) -> None:
    await filled(tmp_path, 2)
    old, other = stock(tmp_path)
    with closing(sqlite3.connect(tmp_path / "cache.db")) as connection, connection:
        connection.execute("UPDATE Cache SET store_time = store_time + 1 WHERE key = ?", (old.key,))
    assert remove(tmp_path, [old, other]) == 1
    assert [item.key for item in stock(tmp_path)] == [old.key]


async def test_each_kind_of_damage_is_told_and_hides_no_other_entry(tmp_path: Path) -> None:
    await filled(tmp_path, 6)
    entry = Entry(key="wrong", model="m", completion=completion())
    with closing(sqlite3.connect(tmp_path / "cache.db")) as connection, connection:
        for key, change, value in (
            (0, "value", b"jgarbage"),
            (1, "value", encode(entry)),
            (2, "mode", 4),
            (3, "value", "text"),
            (4, "key", b"bytes"),
        ):
            sql = f"UPDATE Cache SET {change} = ? WHERE key = ?"
            connection.execute(sql, (value, f"{key:064}"))
    damages = [item.damage for item in stock(tmp_path)]
    assert damages[5] is None
    assert all(damages[:5])
    assert "another request" in str(damages[1])


def test_a_folder_without_a_cache_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no response cache"):
        list(stock(tmp_path))


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache.db").write_bytes(b"hello" * 1000)
    with pytest.raises(StorageError, match="cannot read"):
        list(stock(tmp_path))
    assert check(tmp_path) is not None


def test_rows_from_before_parts_were_kept_are_still_answers() -> None:
    from tauasync.endpoint.shelf import decode

    old = msgspec.json.encode(
        {
            "schema": 1,
            "key": "k",
            "model": "m",
            "completion": msgspec.to_builtins(completion("kept")),
        }
    )
    assert decode(b"j" + old, "k", "m").content == "kept"


# ---- explaining


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        (parts(temperature=0.7), "settings.temperature"),
        (parts(seed=1), "settings.seed"),
        (parts(tools=[]), "tools"),
        (
            parts(messages=[{"role": "system", "content": "Be long."}, BODY["messages"][1]]),
            "system prompt",
        ),
        (parts(messages=[BODY["messages"][0], {"role": "user", "content": "bye"}]), "conversation"),
        (parts(messages=BODY["messages"][:1]), "messages"),
        (parts(salt=origin(seed=301).salt), "salt.seed"),
        (parts(salt=origin(trial=1).salt), "salt.trial"),
        (msgspec.structs.replace(parts(), schema=0), "key schema"),
        (msgspec.structs.replace(parts(), model="n"), "model"),
    ],
)
def test_what_differs_between_two_keys_is_named(changed: KeyParts, field: str) -> None:
    """Report 79."""
    assert [one.field for one in differences(parts(), changed)] == [field]


def test_keys_are_equal_exactly_where_nothing_they_are_made_of_differs() -> None:
    variants = [
        (origin().salt, BODY),
        (origin().salt, dict(reversed(list(BODY.items())))),
        (origin(trial=2).salt, BODY),
        (origin().salt, {**BODY, "temperature": 1}),
        (origin().salt, {**BODY, "messages": BODY["messages"][:1]}),
    ]
    for one_salt, one in variants:
        for other_salt, other in variants:
            url = "http://cloud.test/v1"
            same = sampled_key(base_url=url, model="m", body=one, salt=one_salt) == sampled_key(
                base_url=url, model="m", body=other, salt=other_salt
            )
            mine = key_parts(base_url=url, model="m", body=one, salt=one_salt)
            theirs = key_parts(base_url=url, model="m", body=other, salt=other_salt)
            assert same == (differences(mine, theirs) == ())


def test_the_nearest_is_the_same_turn_elsewhere_before_another_turn_here() -> None:
    elsewhere = parts(salt=origin(seed=301).salt)
    later = parts(messages=[*BODY["messages"], {"role": "assistant", "content": "x"}])
    far = parts(salt=origin(seed=301, trial=3).salt)
    others = [("a", later), ("b", far), ("c", elsewhere), ("mine", parts())]
    assert nearest(parts(), "mine", others) == ("c", elsewhere)
    assert nearest(parts(), "mine", []) is None


def test_a_salt_is_read_field_by_field_whichever_form_it_has() -> None:
    plain = fields_of(parts())
    assert plain["salt.task_id"] == "t1"
    embedded = fields_of(parts(salt=msgspec.json.encode(origin()).decode()))
    assert embedded["salt.task_id"] == "t1"
    assert embedded["salt.role"] == "agent"
    assert fields_of(parts(salt="odd"))["salt.text"] == "odd"
