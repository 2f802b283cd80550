"""The same examples every time: a suite that finds something new only sometimes blocks nobody.

`HYPOTHESIS_PROFILE=explore make test` draws new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
