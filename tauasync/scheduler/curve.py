"""What cells take, told from their expected lengths: a line and a square, by least squares.

A conversation of twice the length takes twice the answers, yet more than twice the tokens, since
each request repeats what was said. Through the origin, so that what is told of short cells from
long ones stays sane; while all lengths are alike the two cannot be told apart, and the square is
taken for nothing or, of tokens, for half.
"""

from __future__ import annotations

from dataclasses import dataclass

APART = 1e-5
"""Least determinant, as part of what it is a difference of, at which lengths count as different."""


@dataclass(slots=True)
class Lengths:
    """Expected lengths of some cells: the sums of their first four powers."""

    first: float = 0.0
    second: float = 0.0
    third: float = 0.0
    fourth: float = 0.0

    def add(self, length: float, cells: float = 1.0) -> None:
        """Count cells of a length; negative numbers take them away."""
        self.first += cells * length
        self.second += cells * length**2
        self.third += cells * length**3
        self.fourth += cells * length**4

    def less(self, other: Lengths) -> Lengths:
        """Those that are not in another sum; never less than none."""
        return Lengths(
            max(0.0, self.first - other.first),
            max(0.0, self.second - other.second),
            max(0.0, self.third - other.third),
            max(0.0, self.fourth - other.fourth),
        )


@dataclass(frozen=True, slots=True)
class Curve:
    """What a cell takes, by its length."""

    line: float
    square: float

    def at(self, length: float) -> float:
        """What one cell takes."""
        return (self.line + self.square * length) * length

    def over(self, lengths: Lengths) -> float:
        """What some cells take together."""
        return self.line * lengths.first + self.square * lengths.second


@dataclass(slots=True)
class Taken:
    """What cells of known lengths took."""

    total: float = 0.0
    by_length: float = 0.0
    by_square: float = 0.0

    def add(self, length: float, took: float) -> None:
        """Count one cell."""
        self.total += took
        self.by_length += length * took
        self.by_square += length**2 * took

    def curve(self, known: Lengths, *, grows: bool) -> Curve:
        """What other cells will take by their lengths.

        Args:
            known: the lengths of the cells counted here.
            grows: whether a cell takes more for each part of its length the longer it is.
        """
        if known.first <= 0:
            return Curve(0.0, 0.0)
        determinant = known.second * known.fourth - known.third**2
        tells_apart = determinant > APART * known.second * known.fourth
        if tells_apart:
            line = (self.by_length * known.fourth - self.by_square * known.third) / determinant
            square = (self.by_square * known.second - self.by_length * known.third) / determinant
            if line >= 0 and square >= 0:
                return Curve(line, square)
            if line < 0:
                return Curve(0.0, self.by_square / known.fourth)
        evenly = self.total / known.first
        if not grows or tells_apart:
            return Curve(evenly, 0.0)
        return Curve(evenly / 2, self.total / known.second / 2)
