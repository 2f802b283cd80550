"""Whether an endpoint refuses by chance, however slowly it is asked; pure.

    heeding ──(short episodes in a row)──► experiment ──(refused as before)──► forgiving
       ▲                                    │      ▲                               │
       └──────(no refusal for long)─────────┘      └─────────────(time)────────────┘

A limit refuses less when less is sent; a gateway that refuses a share of everything does not.
Nothing but an experiment tells them apart, because a limit that is exceeded by a little refuses
just as seldom and as scattered. So when short episodes follow each other closely, less than
was let through goes out for a while. Where that is refused as often, refusals say nothing about
the pace: the limits from before are restored and refusals are forgiven, as long as they are no
more than twice as frequent as measured. More are an episode again, as are all after some time.
"""

from __future__ import annotations

import math
from enum import Enum

SHORT, SHORT_S = 8, 12.0
"""An episode of so many refusals, or seconds, may be chance; a limit that is used up refuses more
and for longer."""
CLOSE, CLOSE_S = 300, 20.0
"""Episodes are close when no more requests, or seconds, lie between them."""
FIRST_DISTANCE = 100
"""Added to the sum of the distances of a series: their mean is of two or three, and a mean that
is too small by luck makes an experiment give up before it can be refused."""
SUSPICIOUS = 3
MOST_SUSPICIOUS = 64
"""So many close episodes call for an experiment; each experiment that finds a limit asks for half
as many more, up to the second number."""
CONFIRMING = 2
"""So many episodes in an experiment confirm that they come by chance."""
SLOWER = 0.8
"""The pace of an experiment, in terms of what was let through, which is what a limit allows."""
COLLAPSING, COLLAPSED = 3, 0.5
"""What a limit lets through while it refuses is the limit. No experiment is needed where so many
episodes end with this share of the flow that the first so many had, and are as close."""
SILENCE = 5.0
"""An experiment finds a limit when so many times the usual distance passes without a refusal:
by chance that happens once in 150 distances."""
EXPECTED_S, LONGEST_S = 200.0, 300.0
"""None begins that would be expected to take so long; one that takes longer says nothing."""
CRAWLING, CRAWLERS_PATIENCE = 0.25, 12.0
"""Where so small a share is left of what was let through before the series, both times are so many
times as long: an experiment there costs little, and a night at that pace everything."""
MOST_SHARE = 0.25
"""No experiment finds a greater share of refusals to be chance, nor is more of it forgiven."""
FORGIVEN = 8
"""How far refusals may run ahead of twice their measured share: several bursts, or bad luck."""
FORGIVING_S, LONGEST_FORGIVING_S = 600.0, 9600.0
"""How long the finding holds; each time it is confirmed, twice as long."""


class Finding(Enum):
    """What the end of an episode says."""

    PACE = "pace"
    """It may be a limit: heed it."""
    NOTHING = "nothing"
    """Wait for the experiment."""
    CHANCE = "chance"
    """Refusals do not depend on the pace."""


class Chance:
    """What is known about the refusals of one model.

    Attributes:
        per_s: the pace of the experiment that goes on; None while there is none.
        share: of the requests, refused by chance; None where nothing of the kind was found.
    """

    def __init__(self) -> None:
        self.per_s: float | None = None
        self.share: float | None = None
        self._sent = self._refused = 0
        self._episodes = 0
        self._last_sent, self._last_s = 0, -math.inf
        self._distance = 0.0
        self._flow_before = 0.0
        self._longest_s = LONGEST_S
        self._marks: list[tuple[float, int, int]] = []
        self._confirmed = self._distances = 0
        self._began_s = 0.0
        self._series_s = 0.0
        self._suspicious = SUSPICIOUS
        self._holds_s = FORGIVING_S
        self._until = -math.inf
        self._debt = 0.0
        self._debt_sent = 0
        self._shows_limit = False

    @property
    def episodes(self) -> int:
        """Close episodes so far."""
        return self._episodes

    def sent(self, now: float) -> None:
        """A request went out."""
        self._sent += 1
        if self.per_s is None:
            if self._episodes and self._sent - self._last_sent > SILENCE * self._usual_distance():
                self._found_limit(now)
        elif self._sent - self._last_sent > SILENCE * self._distance:
            self._found_limit(now)
        elif now > self._began_s + self._longest_s:
            self._heed(now)

    def shows_limit(self) -> bool:
        """Whether a limit has shown itself since this was last asked."""
        shown, self._shows_limit = self._shows_limit, False
        return shown

    def refused(self, now: float) -> bool:
        """A request was refused; true where that is forgiven."""
        self._refused += 1
        if not self.is_forgiving(now):
            return False
        drained = self._allowed() * (self._sent - self._debt_sent)
        self._debt = max(0.0, self._debt - drained) + 1
        self._debt_sent = self._sent
        if self._debt <= FORGIVEN:
            return True
        self._debt = 0.0
        return False

    def is_forgiving(self, now: float) -> bool:
        """Whether refusals are taken for chance, as long as they are not too many."""
        return self.share is not None and now < self._until

    def is_seldom(self, refused: int, share: float) -> bool:
        """Whether so many refusals are no greater share of what went out since the last episode."""
        return refused <= share * (self._sent - self._last_sent)

    def ended(self, now: float, *, is_short: bool, per_s: float) -> Finding:
        """An episode ended.

        Args:
            is_short: whether it may have been chance.
            per_s: requests let through in the minute before.
        """
        distance = self._sent - self._last_sent
        is_close = distance <= CLOSE or now - self._last_s <= CLOSE_S or self.is_forgiving(now)
        self._last_sent, self._last_s = self._sent, now
        if not is_short:
            self._shows_limit = True
            self._heed(now)
            return Finding.PACE
        if self.per_s is not None:
            self._confirmed += 1
            self._distances += 1
            return self._judge(now) if self._confirmed >= CONFIRMING else Finding.NOTHING
        if self.share is not None and now >= self._until:
            # What was measured counts as one more distance.
            self._longest_s = LONGEST_S
            self._restart(now, per_s)
            self._sent = self._last_sent = self._debt_sent = int(self._distance)
            self._refused = round(self.share * self._distance)
            self._distances = 1
            return self._try(now, self._distance, per_s)
        if self._episodes == 0 or not is_close:
            self._restart(now, per_s)
            return Finding.PACE
        self._episodes += 1
        self._distances += 1
        self._marks.append((now, self._sent, self._refused))
        if self._episodes < self._suspicious:
            return Finding.PACE
        if self._has_collapsed():
            return self._found(now)
        if self._measured() > MOST_SHARE or self.is_forgiving(now):
            return Finding.PACE
        mean = (self._sent + FIRST_DISTANCE) / self._distances
        flow = (self._sent - self._refused) / max(1.0, now - self._series_s)
        is_crawling = flow <= CRAWLING * self._flow_before
        patience = CRAWLERS_PATIENCE if is_crawling else 1.0
        if CONFIRMING * mean > patience * EXPECTED_S * SLOWER * flow:
            return Finding.PACE
        self._longest_s = patience * LONGEST_S
        return self._try(now, mean, flow)

    # ---- inside

    def _usual_distance(self) -> float:
        """Requests between the episodes of a series; so few of them say only that it is close."""
        if self._distances < SUSPICIOUS:
            return float(CLOSE)
        return self._sent / self._distances

    def _found_limit(self, now: float) -> None:
        """Refusals ceased when less was sent."""
        self._shows_limit = True
        self._suspicious = min(MOST_SUSPICIOUS, self._suspicious + (self._suspicious + 1) // 2)
        self._heed(now)

    def _measured(self) -> float:
        return self._refused / max(1, self._sent)

    def _allowed(self) -> float:
        assert self.share is not None
        share = max(self.share, min(self._measured(), 2 * self.share, MOST_SHARE))
        return 2 * share + 0.02

    def _has_collapsed(self) -> bool:
        """Whether the cuts of the series have been the experiment."""
        marks = self._marks
        if len(marks) <= 2 * COLLAPSING:
            return False
        early, late = (marks[0], marks[COLLAPSING]), (marks[-1 - COLLAPSING], marks[-1])
        (sent_early, flow_early), (sent_late, flow_late) = _between(*early), _between(*late)
        return flow_late <= COLLAPSED * flow_early and sent_late <= 3 * sent_early

    def _restart(self, now: float, per_s: float) -> None:
        """Count from this episode on."""
        self._sent, self._refused = 0, 0
        self._last_sent = self._debt_sent = 0
        self._episodes, self._distances = 1, 0
        self._marks = [(now, 0, 0)]
        self._flow_before = per_s
        self._series_s = now

    def _try(self, now: float, distance: float, per_s: float) -> Finding:
        self.per_s = SLOWER * per_s
        self._distance = distance
        self._confirmed = self._distances = 0
        self._began_s = now
        return Finding.NOTHING

    def _judge(self, now: float) -> Finding:
        if self._measured() > MOST_SHARE:
            self._heed(now)
            return Finding.PACE
        return self._found(now)

    def _found(self, now: float) -> Finding:
        """Refusals come by chance."""
        self._distance = self._sent / max(1, self._distances)
        self.per_s = None
        self._episodes = self._confirmed = 0
        if self.share is not None:
            self._holds_s = min(LONGEST_FORGIVING_S, 2 * self._holds_s)
        self.share = min(MOST_SHARE, self._measured())
        self._until = now + self._holds_s
        self._suspicious = SUSPICIOUS
        return Finding.CHANCE

    def _heed(self, now: float) -> None:
        """Begin anew; what was found by an earlier experiment holds for its time."""
        if self.per_s is not None and now >= self._until:
            self.share = None
            self._holds_s = FORGIVING_S
        self.per_s = None
        self._episodes = 0


def _between(start: tuple[float, int, int], end: tuple[float, int, int]) -> tuple[int, float]:
    """Requests sent from one end of an episode to another, and those let through a second."""
    sent = end[1] - start[1]
    return sent, (sent - end[2] + start[2]) / max(1e-3, end[0] - start[0])
