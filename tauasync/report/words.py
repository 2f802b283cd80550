"""Numbers and foreign text as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `plain` serves every command, and most need no model of a report
    from tauasync.report.model import Cost

DASH = "–"

_CONTROLS = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_CONTROLS |= {127: "\u2421"} | dict.fromkeys(range(128, 160), "\ufffd")


def plain(text: str) -> str:
    """Text of a model without the characters that command a terminal; they are shown instead."""
    return text.translate(_CONTROLS)


def one_line(text: str, limit_chars: int = 160) -> str:
    """The beginning of a text on one line."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= limit_chars else f"{flat[: limit_chars - 1]}…"


def share(value: float | None) -> str:
    """A share or mean with three decimals."""
    return DASH if value is None else f"{value:.3f}"


def of(part: int, whole: int) -> str:
    """A part with its denominator."""
    return f"{part}/{whole}"


def usd(cost: Cost) -> str:
    """Money; what is not known is said to be unknown, never left out."""
    if cost.usd is not None:
        return dollars(cost.usd)
    if cost.known_usd:
        return f"unknown, ≥ {dollars(cost.known_usd)}"
    return "unknown"


def usd_known(micro_usd: int | None, *, known: int) -> str:
    """Micro-dollars; where a price is unknown, the part that is known."""
    if micro_usd is not None:
        return dollars(micro_usd / 1e6)
    return f"unknown, ≥ {dollars(known / 1e6)}" if known else "unknown"


def duration(seconds: float | None) -> str:
    """A time span in the two largest units that matter."""
    if seconds is None:
        return DASH
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def moment(seconds: float) -> str:
    """A time in UTC."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"at {seconds:g} s"  # no time of any calendar


def size(count_bytes: int) -> str:
    """Bytes in a unit that fits."""
    if count_bytes < 2**20:
        return f"{count_bytes / 2**10:.0f} kB"
    return f"{count_bytes / 2**20:.1f} MB"


def dollars(amount: float) -> str:
    """US dollars, small sums to a hundredth of a cent."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"
