"""The cycle collector during a sweep."""

from __future__ import annotations

import gc

import pytest

from tauasync.scheduler.collector import THRESHOLDS, rare_collections


def test_collections_are_rare_inside_and_as_before_outside() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with pytest.raises(RuntimeError), rare_collections():
        assert gc.get_threshold() == THRESHOLDS
        assert gc.get_freeze_count() > frozen
        raise RuntimeError
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
