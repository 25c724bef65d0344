"""What all tests share: how many examples Hypothesis tries."""

from __future__ import annotations

import os

from hypothesis import settings
from numba import config

settings.register_profile("ci", deadline=None, derandomize=False, print_blob=True, max_examples=200)
# Without the JIT a kernel is about a hundred times slower.
settings.register_profile("jit_off", settings.get_profile("ci"), max_examples=60)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=5_000)
settings.load_profile("jit_off" if config.DISABLE_JIT else os.getenv("HYPOTHESIS_PROFILE", "ci"))
