"""How long a run will still take, told from the work left on each lane; no clock of its own.

A cell is so much work on a lane: answers, or tokens where tokens a minute are what binds. What
finished cells took, by the length that their tasks are expected to have, tells what the others
will take; each lane works it off at the pace it has had, and the slowest lane decides. So
a throttled run does not look faster at first because its conversations are young and cheap, nor
because the short ones end first, and a lane that finishes early hides no slower one.

A pace is measured over the time in which the lane could be asked: pauses and outages delay the
end by their own length and do not make the lane look slow for long after.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tauasync.scheduler.curve import Lengths, Taken
from tauasync.scheduler.snapshot import LanePulse

SPAN_S = 900.0
"""Seconds that a pace is measured over: some refills of any per-minute limit, and less than the
time in which the mix of a run changes."""
SAMPLE_EVERY_S = 5.0
TOKENS_BIND_FOR_S = 120.0
"""How long after calls were last seen to wait for tokens these count as what binds."""
LEAST_LEFT = 0.1
"""Part of a mean cell that an open one has left at least, however long it has gone on."""


@dataclass(slots=True)
class Work:
    """What was done on a lane.

    Attributes:
        answers, tokens: all of them.
        sent, sent_tokens: those that did not come from the response cache.
    """

    answers: float = 0.0
    tokens: float = 0.0
    sent: float = 0.0
    sent_tokens: float = 0.0

    def add(self, other: Work) -> None:
        """Add up."""
        self.answers += other.answers
        self.tokens += other.tokens
        self.sent += other.sent
        self.sent_tokens += other.sent_tokens

    def amount(self, *, tokens: bool) -> float:
        """In the unit that binds."""
        return self.tokens if tokens else self.answers

    def sent_amount(self, *, tokens: bool) -> float:
        """In the unit that binds, of what was sent."""
        return self.sent_tokens if tokens else self.sent


@dataclass(slots=True)
class _Open:
    agent: str
    length: float
    work: dict[str, Work] = field(default_factory=dict)


@dataclass(slots=True)
class _Done:
    """What finished cells took of one lane, each part of it."""

    answers: Taken = field(default_factory=Taken)
    tokens: Taken = field(default_factory=Taken)
    sent: Taken = field(default_factory=Taken)
    sent_tokens: Taken = field(default_factory=Taken)

    def add(self, length: float, work: Work) -> None:
        self.answers.add(length, work.answers)
        self.tokens.add(length, work.tokens)
        self.sent.add(length, work.sent)
        self.sent_tokens.add(length, work.sent_tokens)

    def taken(self, *, tokens: bool, is_sent: bool) -> Taken:
        if is_sent:
            return self.sent_tokens if tokens else self.sent
        return self.tokens if tokens else self.answers


@dataclass(slots=True)
class _Agent:
    """The cells of one agent.

    Attributes:
        left: those that are not finished, open ones included.
        opened: the episodes in progress.
        finished: the cells played.
        lanes: what these took.
    """

    left: Lengths
    opened: dict[int, _Open] = field(default_factory=dict)
    finished: Lengths = field(default_factory=Lengths)
    lanes: dict[str, _Done] = field(default_factory=dict)

    def in_progress(self) -> Lengths:
        """Of the opened cells."""
        found = Lengths()
        for one in self.opened.values():
            found.add(one.length)
        return found


class _Lane:
    def __init__(self, now_s: float) -> None:
        self.done = Work()
        self.active_s = 0.0
        self.looked_at = now_s
        self.tokens_until = float("-inf")
        self.samples: deque[tuple[float, Work]] = deque([(0.0, Work())])

    def pace(self, *, tokens: bool) -> tuple[float, bool]:
        """Work a second, and whether it is of answers that were sent."""
        since_s, then = self.samples[0]
        seconds = self.active_s - since_s
        if seconds <= 0:
            return 0.0, True
        sent = self.done.sent_amount(tokens=tokens) - then.sent_amount(tokens=tokens)
        if sent > 0:
            return sent / seconds, True
        return (self.done.amount(tokens=tokens) - then.amount(tokens=tokens)) / seconds, False


class Eta:
    """The work of one session.

    Args:
        left: agent -> expected lengths of the cells to be played.

    Times are seconds of one monotonic clock, given by the caller.
    """

    def __init__(self, left: Mapping[str, Lengths], *, now_s: float) -> None:
        self._agents = {agent: _Agent(replace(lengths)) for agent, lengths in left.items()}
        self._open: dict[int, _Open] = {}
        self._lanes: dict[str, _Lane] = {}
        self._limits: dict[str, LanePulse] = {}
        self._started_s = now_s

    def begin(self, episode: int, agent: str, length: float) -> None:
        """An episode is opened."""
        self._open[episode] = self._agent(agent).opened[episode] = _Open(agent, length)

    def answered(self, episode: int, lane: str, *, tokens: int, is_sent: bool) -> None:
        """An answer came, from the lane or from the response cache."""
        work = Work(1.0, tokens, float(is_sent), tokens if is_sent else 0.0)
        self._lane(lane).done.add(work)
        if episode in self._open:
            self._open[episode].work.setdefault(lane, Work()).add(work)

    def end(self, episode: int, *, is_played: bool) -> None:
        """An episode has ended; what is not played now will not be in this session."""
        one = self._open.pop(episode)
        agent = self._agent(one.agent)
        del agent.opened[episode]
        agent.left.add(one.length, -1)
        if not is_played:
            return
        agent.finished.add(one.length)
        # What a resume found in the cache is what a new cell must ask for. A cell that was found
        # there whole tells of others that are.
        was_sent = any(work.sent for work in one.work.values())
        for lane, work in one.work.items():
            took = Work(work.answers, work.tokens, work.answers, work.tokens) if was_sent else work
            agent.lanes.setdefault(lane, _Done()).add(one.length, took)

    def give_up(self, model: str) -> None:
        """No further cell of an agent is begun."""
        if model in self._agents:
            self._agents[model].left = self._agents[model].in_progress()

    def look(self, now_s: float, lanes: Iterable[LanePulse]) -> None:
        """Take note of how the lanes are; often enough that little happens between two looks."""
        for pulse in lanes:
            lane = self._lane(pulse.endpoint)
            self._limits[pulse.endpoint] = pulse
            if pulse.down_s is None and not pulse.paused_s:
                lane.active_s += now_s - lane.looked_at
            lane.looked_at = now_s
            if pulse.held_by == "tokens_per_min":
                lane.tokens_until = now_s + TOKENS_BIND_FOR_S
            if lane.active_s >= lane.samples[-1][0] + SAMPLE_EVERY_S:
                copy = Work()
                copy.add(lane.done)
                lane.samples.append((lane.active_s, copy))
            while len(lane.samples) > 2 and lane.samples[1][0] <= lane.active_s - SPAN_S:
                lane.samples.popleft()

    def left_s(self, now_s: float) -> float | None:
        """Seconds to the end; None while nothing tells: no finished cell of some agent, or a lane
        that is down."""
        agents = {name: one for name, one in self._agents.items() if one.left.first > 0}
        if not agents:
            return 0.0
        if any(not one.finished.first for one in agents.values()):
            return None
        names = {lane for one in agents.values() for lane in one.lanes}
        times = [self._lane_left_s(name, agents, now_s) for name in names]
        if not times or None in times:
            return None
        return max(time for time in times if time is not None)

    def _lane_left_s(self, name: str, agents: Mapping[str, _Agent], now_s: float) -> float | None:
        lane, pulse = self._lane(name), self._limits.get(name)
        if pulse is not None and pulse.down_s is not None:
            return None
        tokens = now_s <= lane.tokens_until
        pace, is_sent = lane.pace(tokens=tokens)
        if pulse is not None and is_sent:
            limit = pulse.tokens_per_min if tokens else pulse.requests_per_min
            pace = pace if limit is None else min(pace, limit / 60)
        left = sum(_work_left(name, one, tokens=tokens, is_sent=is_sent) for one in agents.values())
        if left <= 0:
            return 0.0
        if pace <= 0:
            return None
        pause_s = 0.0 if pulse is None else max(pulse.paused_s.values(), default=0.0)
        return pause_s + left / pace

    def _agent(self, name: str) -> _Agent:
        return self._agents.setdefault(name, _Agent(Lengths()))

    def _lane(self, name: str) -> _Lane:
        if name not in self._lanes:
            self._lanes[name] = _Lane(self._started_s)
        return self._lanes[name]


def _work_left(lane: str, agent: _Agent, *, tokens: bool, is_sent: bool) -> float:
    """What the cells of one agent still take of a lane."""
    done = agent.lanes.get(lane)
    if done is None:
        return 0.0
    curve = done.taken(tokens=tokens, is_sent=is_sent).curve(agent.finished, grows=tokens)
    left = curve.over(agent.left.less(agent.in_progress()))
    nothing = Work()
    for one in agent.opened.values():
        whole = curve.at(one.length)
        left += max(whole - one.work.get(lane, nothing).amount(tokens=tokens), LEAST_LEFT * whole)
    return left
