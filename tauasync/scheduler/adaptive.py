"""How many requests of a model may be in flight, and how fast, found from its answers; pure.

    open ──(a refusal)──► held ──(time)──► probing ──(not refused)──► open, limits cut once
                           ▲                  │
                           └────(refused)─────┘   each time longer

One *episode* of rate limiting is everything from the first refusal to the first request that is
not refused. Nothing but probes goes out in between, so it costs a handful of refusals however
many calls wait, and the limits are cut once, at its end, when what the endpoint served meanwhile
is known. Refusals of what was sent before the episode began belong to it; answers to that count
for nothing.

What is cut depends on where the refusal came. With about as many in flight as the endpoint was
ever seen to serve, it is the number in flight. With fewer, it is a rate: then the pace becomes
what was let through from the end of the last episode to the end of this one. Whatever the
endpoint counts in (a sliding minute, a fixed one, a bucket), no more than that was to be had.
Short episodes may have nothing to do with limits; `chance` finds that out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

from tauasync.scheduler.answer_times import AnswerTimes
from tauasync.scheduler.chance import MOST_SHARE, SHORT, SHORT_S, Chance, Finding
from tauasync.scheduler.level import DECREASE, Level
from tauasync.scheduler.pace import Pace
from tauasync.scheduler.ramp import Ramp
from tauasync.scheduler.tally import Tally

ADAPTIVE_CEILING = 512
"""The most in flight to an endpoint whose `max_in_flight` nobody declared; below the number of
open files that a process is usually allowed."""
START_IN_FLIGHT = 4
"""Where the search begins; it doubles with every round of answers."""

SPREAD = 2.0
SPREAD_SLACK = 8
"""Where no pace is known, requests go out at up to so many times the speed that the limit and the
time of an answer allow, but for so many at once: when many answers come together, the requests
that follow do not go in one burst, of which an exhausted limit would refuse every one."""

FULL = 0.97
"""A refusal with this share of the number known to hold at work was to be expected."""
USED_SHARE = 0.8
"""A limit grows only while so much of it is used."""
FIRST_HOLD_S = 0.1
LONGEST_HOLD_S = 15.0
PROBE_SHARE = 0.01
"""Probes quadruple their distance from the first to the longest, but need not be rarer than this
share of the rate before: at that rate they cannot become a noticeable part of all requests."""
SUSPICIOUS_HOLD_S = 1.0
"""The longest, while an episode may be the next in a series of short ones."""
ESTIMATE_S = 60.0
FLOW_S = 5.0
"""The pace is estimated over a minute, and over this much flow at least."""
SLOTS_FEEDBACK_S, RATE_FEEDBACK_S = 0.0, 30.0
"""How long more is tried before still more is: too many at once are refused at once, too many a
minute when the minute is full."""
SLOTS_PATIENCE, RATE_PATIENCE = 150, 300
"""Answers at a limit that holds before more is tried for the first time."""
RATE_PAUSE_S = 2.0
"""Who asks for a longer pause than this counts by the minute: nobody knows when a slot is free."""
MILD_PAUSE_S = 10.0
"""A refusal or two that ask for no longer than this may be chance: they cut little."""
TELLING, TELLING_S = 20, 10.0
"""So many requests, or seconds, between two episodes say something about a rate."""
LEAST_SHARE = 0.3
"""No episode cuts a pace to less than this."""
LEAST_PER_S = 0.05
GROWTH_PAUSE_S = 5.0
"""No growth for so long after a server's failure."""


@dataclass(slots=True)
class Sent:
    """One request on its way.

    Attributes:
        in_flight: requests of the model in flight with it, this one included.
        beside: requests of other models to the same endpoint in flight with it.
        probe: whether it was sent to see if an episode is over.
    """

    at_s: float
    in_flight: int
    tokens: float
    probe: bool
    beside: int = 0


@dataclass(slots=True)
class _Episode:
    began: float
    held_until: float
    hold_s: float
    fewest_others: int
    is_rate: bool
    rate_before: float
    probe: Sent | None = None
    refused: int = 0
    told_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """What an episode ended with.

    Attributes:
        what: "in_flight", or "requests_per_min".
    """

    what: str
    before: float | None
    after: float
    refused: int


class Adaptive:
    """The limits of one model.

    Args:
        ceiling: the most in flight.
        declared: whether somebody declared that number: then the search begins there.
        spread: a random number from 0 to 1.
    """

    def __init__(self, ceiling: int, *, declared: bool, spread: Callable[[], float]) -> None:
        start = ceiling if declared else self.start(ceiling)
        self._in_flight = Level(
            start, most=ceiling, least=1, feedback_s=SLOTS_FEEDBACK_S, patience=SLOTS_PATIENCE
        )
        self._rate = Level(
            math.inf,
            most=math.inf,
            least=LEAST_PER_S,
            feedback_s=RATE_FEEDBACK_S,
            patience=RATE_PATIENCE,
            below=0.95,
        )
        self._pace: Pace | None = None
        self._spread = spread
        self._declared = declared
        self._tally = Tally()
        self._episode: _Episode | None = None
        self._cut: Cut | None = None
        self._found: float | None = None
        self._chance = Chance()
        self._experiment: Pace | None = None
        self._saved: tuple[Level, Level] | None = None
        self._began = self._cycle_began = math.inf
        self._valid_from = -math.inf
        self._proved = self._proved_with_others = 0.0
        self._times = AnswerTimes()
        self._no_growth_until = -math.inf
        self._ramp = Ramp()
        self._next_at = -math.inf
        self._minute_until = -math.inf
        self._minute_checked = -1
        self._minute_left = 0.0
        self.has_answered = False

    # ---- what may go

    @property
    def in_flight_limit(self) -> int:
        """How many may be in flight, the ramp apart."""
        episode = self._episode
        limit = self._in_flight.value
        if self._chance.per_s is not None and self._saved is not None:
            limit = max(limit, min(self._saved[0].value, self._in_flight.most))
        if episode is not None and not episode.is_rate:
            limit = min(limit, 0.8 * episode.fewest_others)
        return max(1, int(limit))

    @property
    def per_s(self) -> float | None:
        """The pace found, in requests a second; None where none was needed."""
        return self._rate.value if self._rate.value < math.inf else None

    @staticmethod
    def start(ceiling: int) -> int:
        """Where the search for the number in flight begins."""
        return min(START_IN_FLIGHT, ceiling)

    @property
    def has_cut(self) -> bool:
        """Whether any limit was found by trial."""
        return self._in_flight.mark is not None or self._pace is not None

    def level(self, what: str) -> float:
        """A limit by the name that a `Cut` has for it."""
        return self._in_flight.value if what == "in_flight" else 60 * self._rate.value

    @property
    def is_limiting(self) -> bool:
        """Whether an episode of rate limiting goes on."""
        return self._episode is not None

    def free_at(self, now: float, in_flight: int) -> float:
        """The earliest time at which a request may go; infinity until something is answered.

        Ends an episode whose probe has proved itself.
        """
        if self._episode is not None:
            self._look(now)
        episode = self._episode
        if episode is not None:
            if episode.probe is not None:
                return episode.probe.at_s + self._times.grace_s
            if in_flight >= self.in_flight_limit:
                return math.inf
            return max(now, episode.held_until)
        if in_flight >= self.in_flight_limit:
            return math.inf
        at = self._ramp.free_at(now, in_flight)
        if self._chance.per_s is not None and self._experiment is not None:
            return max(at, self._experiment.free_at(now, 1))
        if self._pace is not None:
            at = max(at, self._pace.free_at(now, 1))
            return at if at > now else self._minute_free_at(now)
        return max(at, self._next_at)

    def sent(self, now: float, in_flight: int, tokens: float, *, beside: int = 0) -> Sent:
        """A request goes out; `in_flight` counts it, `beside` those of the other models."""
        if self._cycle_began == math.inf:
            self._began = self._cycle_began = now
        self._ramp.sent(now)
        self._tally.add(now, 1, tokens)
        self._chance.sent(now)
        if self._chance.per_s is not None and self._experiment is not None:
            self._experiment.take(now, 1)
        if self._pace is not None:
            self._pace.take(now, 1)
            self._minute_left -= 1
        elif self._times.answers:
            apart_s = self._times.mean_s / (SPREAD * self._in_flight.value)
            self._next_at = max(self._next_at, now - SPREAD_SLACK * apart_s) + apart_s
        sent = Sent(now, in_flight, tokens, self._episode is not None, beside)
        if self._episode is not None:
            self._episode.probe = sent
        return sent

    # ---- what came back

    def answered(self, sent: Sent, now: float) -> None:
        """A usable answer, or any that shows that the request was let in."""
        self.has_answered = True
        self._proved = max(self._proved, sent.in_flight)
        with_others = sent.in_flight + sent.beside
        self._proved_with_others = max(self._proved_with_others, with_others)
        if self._episode is not None:
            if sent is self._episode.probe:
                self._end(now)
            return
        self._times.answered(now - sent.at_s)
        if sent.at_s < self._valid_from or now < self._no_growth_until:
            return
        if self._chance.per_s is not None:
            return
        self._grow(sent, now)

    def refused(
        self,
        sent: Sent,
        now: float,
        in_flight: int,
        *,
        pause_s: float | None,
        is_rate: bool,
        beside: int = 0,
    ) -> bool:
        """A refusal for being too many.

        Args:
            in_flight: requests of the model still in flight, this one no longer included.
            beside: requests of other models to the same endpoint in flight.
            pause_s: how long the endpoint asked to wait.
            is_rate: whether the endpoint says that a rate was exceeded.

        Returns:
            Whether it is taken for chance.
        """
        self._tally.add(now, -1, -sent.tokens)
        self._times.refused(now - sent.at_s)
        others = min(in_flight, sent.in_flight - 1)
        is_rate |= pause_s is not None and pause_s >= RATE_PAUSE_S
        rate = is_rate or others < USED_SHARE * self._proved or others == 0
        beside = min(beside, sent.beside)
        if beside and others and not is_rate:
            # Others may have taken the slots of a server that counts all of its models together.
            rate &= others + beside < USED_SHARE * self._proved_with_others
        episode = self._episode
        if self._chance.refused(now) and episode is None:
            return True
        if episode is None:
            if sent.at_s < self._valid_from:
                return False
            if not self.has_answered and in_flight == 0:
                return False
            hold = max(FIRST_HOLD_S * (0.75 + self._spread() / 2), pause_s or 0.0)
            self._episode = _Episode(
                began=now,
                held_until=now + hold,
                hold_s=FIRST_HOLD_S,
                fewest_others=others,
                is_rate=rate,
                rate_before=self._tally.since(now - FLOW_S)[0] / FLOW_S,
                refused=1,
                told_s=pause_s or 0.0,
            )
            return False
        episode.refused += 1
        episode.fewest_others = min(episode.fewest_others, others)
        episode.is_rate |= rate
        if not self.has_answered and in_flight == 0:
            self._episode = None
            return False
        if sent is episode.probe:
            episode.probe = None
            rarest = min(1 / max(PROBE_SHARE * episode.rate_before, 1e-9), LONGEST_HOLD_S)
            if self._chance.episodes and episode.refused <= SHORT:
                rarest = min(rarest, SUSPICIOUS_HOLD_S)
            episode.hold_s = min(4 * episode.hold_s, max(rarest, FIRST_HOLD_S))
            episode.held_until = now + episode.hold_s * (0.75 + self._spread() / 2)
        if pause_s is not None:
            told_s = now + pause_s - max(now, episode.held_until)
            episode.told_s += max(0.0, told_s)
            episode.held_until = max(episode.held_until, now + pause_s)
        return False

    def failed(self, sent: Sent, now: float) -> None:
        """A server's failure, or no answer: nothing about limits, but now is no time to grow."""
        self._no_growth_until = now + GROWTH_PAUSE_S
        if self._episode is not None and sent is self._episode.probe:
            self._episode.probe = None
            self._episode.held_until = now + self._episode.hold_s

    def gone(self, sent: Sent, now: float) -> None:
        """A request is no longer in flight; where nothing was said of it, it proved nothing."""
        if self._episode is not None and sent is self._episode.probe:
            self._episode.probe = None
            self._episode.held_until = max(self._episode.held_until, now)

    def reopen(self, now: float) -> None:
        """The endpoint is back after an outage: few at first."""
        self._ramp.reopen(now)
        self._episode = None

    def set_ceiling(self, ceiling: int, *, declared: bool) -> None:
        """Change the most in flight."""
        self._in_flight.bound(ceiling)
        if declared and not self._declared and self._in_flight.mark is None:
            self._in_flight.value = ceiling
        self._declared = declared

    def last_cut(self) -> Cut | None:
        """What the last episode ended with; told once."""
        cut, self._cut = self._cut, None
        return cut

    def last_chance(self) -> float | None:
        """The share of requests that was found to be refused by chance; told once."""
        found, self._found = self._found, None
        return found

    def forgives(self, now: float) -> bool:
        """Whether refusals are taken for chance, unless they become too many."""
        return self._chance.is_forgiving(now)

    # ---- inside

    def _look(self, now: float) -> None:
        episode = self._episode
        if episode is None or episode.probe is None:
            return
        if now >= episode.probe.at_s + self._times.grace_s:
            self._end(now)

    def _end(self, now: float) -> None:
        episode = self._episode
        if episode is None:
            return
        self._episode = None
        self._valid_from = now
        chance = self._chance
        is_short = episode.refused <= SHORT and now - episode.began - episode.told_s <= SHORT_S
        is_mild = (
            is_short
            and episode.told_s <= MILD_PAUSE_S
            and chance.is_seldom(episode.refused, MOST_SHARE)
        )
        minute_s = max(1.0, min(ESTIMATE_S, now - self._began))
        per_s = self._tally.since(now - minute_s)[0] / minute_s
        was_trying = chance.per_s is not None
        finding = Finding.PACE
        if was_trying or not self._asked_for(episode):
            finding = chance.ended(now, is_short=is_short, per_s=per_s)
        if chance.shows_limit():
            self._saved = None
        if finding is Finding.CHANCE:
            self._restore(now)
            self._found = chance.share
        else:
            self._save()
            if finding is Finding.PACE:
                self._heed(episode, now, is_short=is_short, is_mild=is_mild)
            elif chance.per_s is not None and not was_trying:
                per_s = max(LEAST_PER_S, chance.per_s)
                self._experiment = Pace(per_s, max(1.0, per_s / 4))
        self._cycle_began = now

    def _asked_for(self, episode: _Episode) -> bool:
        """Whether no more was refused than was to be expected: at more than is known to hold, or
        at the number that is."""
        if episode.is_rate:
            return self._rate.is_trying
        level = self._in_flight
        is_full = level.mark is not None and episode.fewest_others >= FULL * level.mark
        return level.is_trying or is_full

    def _save(self) -> None:
        """Keep the limits in force, unless better ones from before have not been disproved."""
        if self._saved is None:
            self._saved = (copy(self._in_flight), copy(self._rate))
            return
        in_flight, rate = self._saved
        if self._in_flight.value > in_flight.value:
            in_flight = copy(self._in_flight)
        if self._rate.value > rate.value:
            rate = copy(self._rate)
        self._saved = in_flight, rate

    def _restore(self, now: float) -> None:
        """Go back to the limits from before the refusals that came by chance."""
        if self._saved is None:
            return
        in_flight, rate = self._saved
        self._saved = None
        if in_flight.value > self._in_flight.value:
            in_flight.bound(self._in_flight.most)
            self._in_flight = in_flight
        if rate.value > self._rate.value:
            self._rate = rate
            if rate.value < math.inf:
                self._set_pace(now)
            else:
                self._pace = None

    def _heed(self, episode: _Episode, now: float, *, is_short: bool, is_mild: bool) -> None:
        """Take an episode for a limit, unless it says nothing so early."""
        # So early, few requests in flight or a second say nothing about what is too many.
        is_first = self._chance.episodes == 1 and not self.has_cut
        is_early = not self._times.is_settled and (is_first or episode.is_rate)
        if not (is_short and is_early):
            self._lower(episode, now, is_mild=is_mild)
        elif not episode.is_rate:
            # The search goes on from what was served: a declared number would all be refused.
            served = max(1, episode.fewest_others)
            self._proved = min(self._proved, served)
            self._in_flight.value = min(self._in_flight.value, max(START_IN_FLIGHT, served))

    def _lower(self, episode: _Episode, now: float, *, is_mild: bool) -> None:
        """Cut what the episode was about."""
        if episode.is_rate:
            before = self.per_s
            # The first estimate looks past an episode that was taken for one of too many at once.
            cycle = self._began if before is None else self._cycle_began
            start = max(cycle, episode.began - ESTIMATE_S)
            took_s = max(min(now - start, ESTIMATE_S), 1.0)
            let_through = self._tally.since(start + 0.5)[0]
            served = let_through / took_s
            is_little = let_through < TELLING and took_s < TELLING_S
            if before is None and is_little:
                return  # a first refusal or two after a second say nothing about a minute
            known = 0.0
            if before is not None:
                # What was cut just now has not had time to show; it may be sought again soon.
                known = (self._rate.mark or 0.0) if is_little and is_mild else 0.0
                served = max(served, before * (DECREASE if is_little or is_mild else LEAST_SHARE))
            elif is_mild:
                # What was let through since the beginning was on its way up.
                served = max(served, episode.rate_before)
            if self._rate.value == math.inf:
                self._rate.value = max(episode.rate_before, served)
            self._rate.cut(now, served, sustained=max(known, self._sustained(episode.began)))
            self._minute_until = now + ESTIMATE_S
            self._set_pace(now)
            self._cut = Cut(
                what="requests_per_min",
                before=None if before is None else 60 * before,
                after=60 * self._rate.value,
                refused=episode.refused,
            )
        else:
            before = self._in_flight.value
            self._in_flight.cut(now, episode.fewest_others)
            self._proved = min(self._proved, max(1, episode.fewest_others))
            self._cut = Cut(
                what="in_flight",
                before=int(before),
                after=int(self._in_flight.value),
                refused=episode.refused,
            )

    def _sustained(self, until: float) -> float:
        """Requests a second over the minute before, where no refusal fell into it."""
        if until - self._cycle_began < ESTIMATE_S:
            return 0.0
        return self._tally.since(until - ESTIMATE_S)[0] / ESTIMATE_S

    def _grow(self, sent: Sent, now: float) -> None:
        level = self._in_flight
        is_used = sent.in_flight >= USED_SHARE * int(level.value)
        if level.value < level.most and is_used and not self._times.is_queueing:
            level.grow(now, max(1.0, level.value), double=True)
        rate = self._rate
        if self._pace is not None and self._pace.level(now) <= 0.5 * self._pace.burst:
            per_s = rate.value
            before = per_s
            rate.grow(now, max(min(10.0, FLOW_S * per_s), per_s), double=False)
            if rate.value != before:
                self._set_pace(now)

    def _set_pace(self, now: float) -> None:
        per_s = self._rate.value
        burst = max(1.0, per_s / 4)
        if self._pace is None:
            self._pace = Pace(per_s, burst)
            self._pace.take(now, burst)
        else:
            self._pace.change(now, per_s, burst)

    def _minute_free_at(self, now: float) -> float:
        """For a minute after a cut: when the minute before holds less than the limit found.

        What went out before the cut still counts in a sliding minute, unevenly as it went; a
        pace alone would be refused again and again until all of that has passed.
        """
        if now >= self._minute_until or self._rate.mark is None:
            return now
        second = int(now)
        if second != self._minute_checked:
            self._minute_checked = second
            self._minute_left = 60 * self._rate.mark - self._tally.since(now - ESTIMATE_S - 1)[0]
        return now if self._minute_left >= 1 else float(second + 1)
