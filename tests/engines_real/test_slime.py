"""tests/engines/test_slime.py over the engine itself."""

from engines.test_slime import *  # noqa: F403
