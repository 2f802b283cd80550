"""Where the reference material lies, and the mark for tests that need it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[1]
_SHARED = Path(os.environ.get("TAUASYNC_SHARED", _ROOT.parent / "shared"))

SHARED: Path | None = _SHARED if _SHARED.is_dir() else None
TAU2_DATA: Path | None = SHARED / "tau2-data" if SHARED else None
CONFORMANCE: Path | None = SHARED / "conformance" if SHARED else None

needs_shared = pytest.mark.skipif(
    SHARED is None,
    reason="needs the reference folder: put it beside the checkout or set TAUASYNC_SHARED",
)
