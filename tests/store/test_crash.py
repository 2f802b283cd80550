"""Laws of sudden death: kill -9 at any instant loses nothing acknowledged and tears nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tauasync.store.reader import RunReader
from tauasync.store.records import CellStatus, Outcome
from tauasync.store.run_store import RunStore
from tests.store.builders import CONVERSATION
from tests.store.processes import start

_WRITE = """
async def main():
    tasks = [str(number) for number in range(400)]
    async with RunStore.create(path, manifest(), grid(tasks)) as store:
        cells = iter(await store.open_cells())

        async def worker():
            for cell_id, _ in cells:
                episode_id = await store.begin_episode(cell_id, seed=cell_id)
                say("began", episode_id, cell_id)
                for idx, item in enumerate(CONVERSATION):
                    await store.add_item(episode_id, idx, item)
                    await store.add_completion(completion(episode_id, idx))
                await store.end_episode(finish(episode_id))
                say("ended", episode_id, cell_id)
                await store.add_verdict(episode_id, verdict(1.0))
                say("scored", episode_id, cell_id)

        await asyncio.gather(*(worker() for _ in range(20)))
asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged", [1, 40, 333])
async def test_kill_at_any_instant_loses_no_acknowledged_row(
    tmp_path: Path, acknowledged: int
) -> None:
    path = tmp_path / "run.sqlite"
    process = start(_WRITE, path)
    assert process.stdout is not None
    said = [process.stdout.readline().split() for _ in range(acknowledged)]
    process.kill()
    # What the pipe still holds was acknowledged too; its last line may be cut.
    rest = [line.split() for line in process.stdout if line.endswith("\n")]
    process.communicate()
    said += [words for words in rest if len(words) == 3]

    with RunReader(path) as reader:
        assert reader.counts()[CellStatus.PENDING] > 0, "readers need no repair"
    async with RunStore.open(path) as store:
        with RunReader(path) as reader:
            assert reader.counts()[CellStatus.RUNNING] == 0
            outcomes: dict[int, Outcome] = {}
            for cell_id, _ in reader.cells():
                for attempt in reader.attempts(cell_id):
                    outcomes[attempt.episode_id] = attempt.outcome
                    if attempt.outcome is Outcome.FINISHED:
                        assert reader.transcript(attempt.episode_id) == CONVERSATION
                        assert len(list(reader.ledger(attempt.episode_id))) == len(CONVERSATION)
            for what, episode_id, _ in said:
                if what == "began":
                    assert outcomes[int(episode_id)] in (Outcome.FINISHED, Outcome.INTERRUPTED)
                else:
                    assert outcomes[int(episode_id)] is Outcome.FINISHED
                if what == "scored":
                    assert reader.verdict(int(episode_id)) is not None
        began = {int(cell_id) for what, _, cell_id in said if what == "began"}
        ended = {int(cell_id) for what, _, cell_id in said if what == "ended"}
        still_open = {cell_id for cell_id, _ in await store.open_cells()}
        assert not ended & still_open, "nothing finished is played again"
        assert store.taken_back >= len((began - ended) & still_open)


async def test_killed_twice_still_repeats_nothing_finished(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    finished: list[set[int]] = []
    again = _WRITE.replace("RunStore.create(path, manifest(), grid(tasks))", "RunStore.open(path)")
    for body in (_WRITE, again, again):
        process = start(body, path)
        assert process.stdout is not None
        for _ in range(60):
            process.stdout.readline()
        process.kill()
        process.communicate()
        with RunReader(path) as reader:
            finished.append({ended.cell_id for ended in reader.finished()})
    assert finished[0] < finished[1] < finished[2]
    with sqlite3.connect(path) as connection:
        most = connection.execute(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM episode WHERE outcome = 'finished'"
            " GROUP BY cell_id)"
        ).fetchone()
        assert most == (1,)
    connection.close()


def test_killed_while_creating_leaves_no_half_made_run(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    body = """
    import tauasync.store.upkeep as upkeep
    real = upkeep.publish
    def die(draft, path):
        os.kill(os.getpid(), signal.SIGKILL)
    upkeep.publish = die
    async def main():
        async with RunStore.create(path, manifest(), grid()):
            pass
    asyncio.run(main())
    """
    process = start(body, path)
    process.communicate()
    assert process.returncode < 0
    assert not path.exists()
    ok = start(body.replace("upkeep.publish = die", ""), path)
    assert ok.communicate()[1] == ""
    assert {file.name for file in tmp_path.iterdir()} == {path.name}
