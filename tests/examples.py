"""How many examples a property is tried on: each run draws others, so many small runs see what a large one does.

`pytest --hypothesis-profile=thorough` tries them all at once, after a change of what they are about.
"""

from __future__ import annotations

from hypothesis import settings

THOROUGH = "thorough"
settings.register_profile(THOROUGH, max_examples=1000)


def examples(thorough: int) -> int:
    """A third of them, unless the run is a thorough one."""
    return thorough if settings.get_current_profile_name() == THOROUGH else thorough // 3
