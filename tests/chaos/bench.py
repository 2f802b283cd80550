"""A place for one scenario: its folder, its endpoint, its sweeps, and what must hold of them."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.checks import Check, Law, check
from tests.chaos.processes import PATIENCE_S, TAUASYNC, Child, Server
from tests.chaos.reports import (
    broken_cells,
    cells,
    comparable,
    conversations,
    differences,
    kept_answers,
)
from tests.chaos.settings import (
    INPUT_USD,
    OUTPUT_USD,
    Fault,
    server_config,
    sweep_config,
    write_toml,
)

SOON_S = 15.0
"""Within which a process has to end once it cannot go on. Most take about one; the machine may
be busy."""

AGENTS = ("noisy",)


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large the sweeps of a chaos run are.

    Attributes:
        tasks, trials: of most sweeps; with one agent their product is the number of cells.
        kills, kill_trials: how often the one long sweep under a cap is killed, and its trials.
        uncapped_kills: the same without a cap.
        stops: signals after which a run ends in order.
    """

    tasks: int = 20
    trials: int = 1
    kills: int = 50
    kill_trials: int = 12
    uncapped_kills: int = 12
    stops: int = 24


QUICK = Size(tasks=8, kills=4, kill_trials=2, uncapped_kills=2, stops=2)


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A sweep that nothing disturbed.

    Attributes:
        answers: how many the endpoint gave.
        bill: what they cost by the endpoint's own count, in micro-dollars.
    """

    report: Any
    conversations: Mapping[str, str]
    named: Mapping[str, str]
    answers: int
    bill: int
    peak_mb: float
    seconds: float


@dataclass(kw_only=True)
class Bench:
    """What all scenarios of a chaos run share.

    Attributes:
        folder: holds a folder for each scenario.
        patience: factor to every time that a process has; more than 1 on a busy machine.
    """

    folder: Path
    seed: int
    size: Size
    patience: float = 1.0
    _wholes: dict[tuple[int, int, tuple[str, ...]], Whole] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def room(self, name: str) -> Room:
        """The place of one scenario; everything random in it follows from seed and name."""
        folder = self.folder / name.replace(" ", "-")
        folder.mkdir(parents=True)
        return Room(bench=self, folder=folder, rng=random.Random(f"{self.seed}/{name}"))

    def whole(self, tasks: int, trials: int, agents: tuple[str, ...] = AGENTS) -> Whole:
        """The undisturbed sweep of a size, played once."""
        with self._lock:
            known = self._wholes.get((tasks, trials, agents))
            if known is None:
                known = self._undisturbed(tasks, trials, agents)
                self._wholes[tasks, trials, agents] = known
            return known

    def _undisturbed(self, tasks: int, trials: int, agents: tuple[str, ...]) -> Whole:
        room = self.room(f"undisturbed {tasks}x{trials} {' '.join(agents)}")
        with room.serve() as server:
            sweep = room.sweep(server, tasks=tasks, trials=trials, agents=agents)
            child = sweep.start()
            if child.wait(PATIENCE_S * self.patience) != 0:
                raise RuntimeError(f"the undisturbed sweep failed: {child.err}")
            counted = server.stats()
        return Whole(
            report=sweep.report(),
            conversations=conversations(sweep.run),
            named=conversations(sweep.run, ids=False),
            answers=counted["answered"],
            bill=bill(counted),
            peak_mb=child.peak_mb,
            seconds=time.monotonic() - child.started_at,
        )


@dataclass(frozen=True, kw_only=True)
class Room:
    """The place of one scenario."""

    bench: Bench
    folder: Path
    rng: random.Random

    @property
    def size(self) -> Size:
        """How large sweeps are."""
        return self.bench.size

    @property
    def patient_s(self) -> float:
        """After which a process that should have ended is taken for one that hangs."""
        return PATIENCE_S * self.bench.patience

    @contextmanager
    def serve(
        self, *faults: Fault, latency_s: float = 0.0, port: int = 0, name: str = "server"
    ) -> Iterator[Server]:
        """An endpoint in a process of its own; its faults are drawn by the chaos seed."""
        config = server_config(faults, seed=self.bench.seed, latency_s=latency_s)
        path = write_toml(self.folder / f"{name}.toml", config)
        with Server(path, port=port, name=name) as server:
            yield server

    def sweep(
        self,
        server: Server | str,
        *,
        name: str = "run",
        tasks: int = 0,
        trials: int = 0,
        run: Path | None = None,
        environ: Mapping[str, str] | None = None,
        agents: tuple[str, ...] = AGENTS,
        **changes: Any,
    ) -> Sweep:
        """A sweep, not started yet.

        Args:
            agents: `noisy`, `oracle`.
            run: the run file; None for one in this room.
            changes: of the configuration, see `sweep_config`.
        """
        tasks, trials = tasks or self.size.tasks, trials or self.size.trials
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        url = server if isinstance(server, str) else server.url
        config = sweep_config(
            folder, url, seed=self.bench.seed, tasks=tasks, trials=trials, agents=agents, **changes
        )
        return Sweep(
            folder=folder,
            config=write_toml(folder / "sweep.toml", config),
            run=run or folder / "run.sqlite",
            cache=Path(config["cache"]["dir"]),
            whole=lambda: self.bench.whole(tasks, trials, agents),
            planned=tasks * trials * len(agents),
            patience=self.bench.patience,
            environ=dict(environ or {}),
        )


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One run file and the commands that work on it.

    Attributes:
        whole: gives the same sweep as nothing disturbed it.
        planned: its cells.
        patience: factor to the times that its processes have.
    """

    folder: Path
    config: Path
    run: Path
    cache: Path
    whole: Any
    planned: int
    patience: float
    environ: Mapping[str, str]

    def start(self, *more: str, program: Sequence[str] = TAUASYNC) -> Child:
        """`run`, or `resume` where the run file is there."""
        if self.run.exists():
            return self.command("resume", str(self.run), "--quiet", *more, program=program)
        arguments = ("run", str(self.config), "--out", str(self.run), "--quiet")
        return self.command(*arguments, *more, program=program)

    def command(self, *arguments: str, program: Sequence[str] = TAUASYNC) -> Child:
        """Any command."""
        return Child(arguments, folder=self.folder, program=program, environ=self.environ)

    def report(self) -> Any:
        """`report --json`, without what is not compared."""
        child = self.command("report", str(self.run), "--json")
        if child.wait(PATIENCE_S * self.patience) != 0:
            return {"no report": child.err}
        return comparable(json.loads(child.out))

    # ---- what must hold

    def ends(self, child: Child, *codes: int, seconds: float = PATIENCE_S) -> list[Check]:
        """The process ends in time, with one of these codes, and without a traceback."""
        seconds *= self.patience
        code = child.wait(seconds)
        told = child.err.strip()
        return [
            check(Law.TIME, code is not None, f"no end within {seconds:g} s"),
            check(Law.EXIT, code in codes, f"exit {code}, expected {codes}: {told[-300:]}"),
            check(Law.MESSAGE, "Traceback" not in told, f"a traceback: {told[-600:]}"),
        ]

    def says_once(self, child: Child, *words: str) -> list[Check]:
        """There is one message about what went wrong, it holds these words.

        Where models were given up there is one for each.
        """
        told = child.err.splitlines()
        lines = [line for line in told if line.startswith(("error:", "stopped (", "given up:"))]
        about = {line.split(",")[0] if line.startswith("given up:") else "" for line in lines}
        missing = [word for word in words if word.lower() not in child.err.lower()]
        once = bool(lines) and len(lines) == len(about) and not ("" in about and len(about) > 1)
        return [
            check(Law.MESSAGE, once, f"{len(lines)} messages: {lines[:3]}"),
            check(Law.MESSAGE, not missing, f"{missing} not in: {child.err.strip()[:300]}"),
        ]

    def is_whole(self, *, without: tuple[str, ...] = (), ids: bool = True) -> list[Check]:
        """The run is what it would have been undisturbed.

        Args:
            without: further fields of the report that may differ.
            ids: whether the ids of tool calls have to be the same.
        """
        whole: Whole = self.whole()
        expected = whole.conversations if ids else whole.named
        return [
            *self.is_sound(),
            *same_report(self.report(), whole.report, without),
            *same_conversations(conversations(self.run, ids=ids), expected),
        ]

    def is_sound(self) -> list[Check]:
        """No cell is lost, doubled or half done."""
        wrong = broken_cells(self.run)
        number = sum(cells(self.run).values())
        return [
            check(Law.CELLS, number == self.planned, f"{number} cells of {self.planned}"),
            check(Law.CELLS, not wrong, "; ".join(wrong)),
        ]

    def paid_once(self, counted: Mapping[str, Any], *, lost: int = 0) -> list[Check]:
        """Each answer was given once, and lies in the cache.

        Args:
            lost: answers that were on the wire at a kill; only those may be asked for again,
                under the same idempotency key.
        """
        repeated, replayed = counted["repeated"], counted["replayed"]
        kept = kept_answers(self.cache)
        return [
            check(Law.PAID_ONCE, repeated == 0, f"{repeated} answers were paid twice"),
            check(
                Law.PAID_ONCE,
                replayed <= lost,
                f"{replayed} answers were asked for again, {lost} had not arrived",
            ),
            check(
                Law.PAID_ONCE,
                kept == counted["answered"],
                f"{counted['answered']} answers were given, {kept} are kept",
            ),
        ]


def bill(counted: Mapping[str, Any]) -> int:
    """What the endpoint would charge for what it counted, in micro-dollars."""
    prompt, completion = int(counted["prompt_tokens"]), int(counted["completion_tokens"])
    return round(prompt * INPUT_USD + completion * OUTPUT_USD)


def same_report(mine: Any, other: Any, without: tuple[str, ...] = ()) -> list[Check]:
    """Two reports are equal where they are compared."""
    pair = (comparable(mine, without=without), comparable(other, without=without))
    found = list(differences(*pair))
    return [check(Law.REPORT, not found, f"reports differ: {'; '.join(found[:4])}")]


def same_conversations(mine: Mapping[str, str], other: Mapping[str, str]) -> list[Check]:
    """Two runs hold the same conversations and verdicts."""
    found = sorted(key for key in mine.keys() | other.keys() if mine.get(key) != other.get(key))
    told = f"{len(found)} conversations differ: {', '.join(found[:3])}"
    return [check(Law.REPORT, not found, told)]
